"""The offline author: an evolutionary recombiner over the building blocks. No model; real code, real branches.

It mutates the parent's recipe, or crosses it with the recipe of an earlier success, and prefers what raised the
development accuracy before. It reads nothing but the brief, so everything that it learned stands in meta-memory.
Not from the source: it is the control beside which a language model's search is to be compared.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from harness.agents.interface import Brief, Hypothesis, Malformed, Proposal
from harness.agents.recipes import COMPONENTS, Recipe, parse_text, recover
from harness.agents.render import render
from meta_memory.records import AttemptView

CROSSOVER = 0.2
"""Share of proposals that cross two recipes."""
STACK = 0.3
"""Share of proposals that put several changes together which each helped before: alone they may be lost in chance."""
STACKED = (2, 2, 3, 4)
"""Numbers of changes put together, drawn evenly."""
CHANGES = (1, 1, 1, 2, 2, 3)
"""Numbers of components that a mutation changes, drawn evenly."""
REPEAT = 0.15
"""Chance that a recipe known from memory is proposed all the same: a verdict holds for one parent and one frontier."""
GREED = 40.0
"""How strongly the mean development gain of a value counts: 0.05 more makes it e^2 times as likely."""
CLOSE = 0.03
"""An earlier attempt is a mate if its development accuracy lies no further below the parent's."""
DRAWS = 40
"""Draws of one proposal before a repeat is taken."""

REASONS: Mapping[str, str] = {
    "retriever": "which windows are shown decides what can be answered at all",
    "match": "a window that fits the question but no choice cannot tell the choices apart",
    "pick": "evidence for every choice makes them comparable; the best windows overall save room",
    "weight": "question and choice do not say equally much about where the answer stands",
    "bonus": "question and choice in the same window are better evidence than in two",
    "recency": "a question for the last or first time is about one of several alike windows",
    "turn": "of several alike events only the last (first) one is asked for",
    "focus": "windows that match far worse than the best one distract",
    "slots": "the number of windows trades missed evidence against distraction and tokens",
    "around": "what precedes and follows a window often holds the missing detail",
    "lines": "lines that share no word with question or choices are noise around the evidence",
    "words": "choices speak of times as people do, captions as the clock does",
    "show": "the form of a window decides how much of it is evidence",
    "order": "a reader may weigh what stands first",
    "cap": "a shorter context costs fewer tokens",
    "habit": "a habit shows in how often something happened, not in one window",
    "route": "where one choice leads clearly, no model needs to be asked",
    "lead": "the margin of a direct answer trades model calls against mistakes",
}


@dataclass(frozen=True, slots=True)
class Known:
    """An earlier attempt as the author reads it."""

    recipe: Recipe
    changed: Mapping[str, str]
    """Component and its new value."""
    view: AttemptView

    @property
    def gain(self) -> float | None:
        """Development gain over its parent, a promotion counted as two points more; None where it was not measured."""
        if self.view.dev_delta is None:
            return None
        return self.view.dev_delta + (0.02 if self.view.outcome == "promoted" else 0.0)


class OfflineAuthor:
    """Deterministic: the same brief and seed, the same proposal."""

    name = "offline"

    def propose(self, brief: Brief, seed: int) -> Proposal | Malformed:
        """A child of the brief's parent."""
        draw = random.Random(seed)
        parent = recover(brief.parent_files)
        known = [k for attempt in brief.attempts if (k := _known(attempt)) is not None]
        values = _values(known)
        tried = {k.recipe for k in known}
        child, mate = parent, None
        for _ in range(DRAWS):
            child, mate = _child(brief, parent, known, values, draw)
            if child != parent and (child not in tried or draw.random() < REPEAT):
                break
        if child == parent:
            return Malformed(reason="no change of the parent's recipe was found", author=self.name, attempts=DRAWS)
        hypothesis = _hypothesis(parent, child, mate, values)
        return Proposal(hypothesis=hypothesis, files={"policy.py": render(child)}, author=self.name)


def _known(attempt: AttemptView) -> Known | None:
    recipe = parse_text(attempt.hypothesis)
    if recipe is None:
        return None
    changed = {}
    for part in attempt.hypothesis.partition("Recipe:")[0].split(";"):
        words = part.split()
        if len(words) >= 4 and words[-2] == "to" and words[-4] in COMPONENTS:
            changed[words[-4]] = words[-1].rstrip(".")
    return Known(recipe, changed, attempt)


def _values(known: Sequence[Known]) -> dict[tuple[str, str], tuple[float, int]]:
    """(mean gain, number of measurements) of every component value that was changed to."""
    gains: dict[tuple[str, str], list[float]] = defaultdict(list)
    for attempt in known:
        for change in attempt.changed.items():
            if attempt.gain is not None:
                gains[change].append(attempt.gain)
    return {change: (sum(found) / len(found), len(found)) for change, found in gains.items()}


def _child(
    brief: Brief,
    parent: Recipe,
    known: Sequence[Known],
    values: Mapping[tuple[str, str], tuple[float, int]],
    draw: random.Random,
) -> tuple[Recipe, str | None]:
    """A new recipe, and the number of the mate that it was crossed with."""
    kind = draw.random()
    if kind < CROSSOVER and (mates := _mates(brief, parent, known)):
        mate = draw.choice(mates)
        taken = {c: getattr(mate.recipe, c) for c in _differing(parent, mate.recipe) if draw.random() < 0.5}
        return replace(parent, **taken).normal(), mate.view.label
    if CROSSOVER <= kind < CROSSOVER + STACK:
        helped = [change for change, (mean, _) in values.items() if mean > 0 and _plays(parent, *change)]
        if len(helped) > 1:
            count = min(len(helped), draw.choice(STACKED))
            ranked = sorted(helped, key=lambda change: -_weight(values[change], change) * draw.random())
            return replace(parent, **dict(ranked[:count])).normal(), None
    child = parent
    for _ in range(draw.choice(CHANGES)):
        options = [(c, v) for c, found in COMPONENTS.items() for v in found if _plays(child, c, v)]
        weights = [_weight(values.get(option), option) for option in options]
        component, value = draw.choices(options, weights)[0]
        child = replace(child, **{component: value}).normal()
    return child, None


def _mates(brief: Brief, parent: Recipe, known: Sequence[Known]) -> list[Known]:
    """Earlier attempts about as accurate as the parent, or more."""
    floor = brief.parent.dev_accuracy - CLOSE
    return [k for k in known if k.recipe != parent and (k.view.dev_accuracy or 0.0) >= floor]


def _plays(recipe: Recipe, component: str, value: str) -> bool:
    """Whether setting the component makes another policy."""
    return replace(recipe, **{component: value}).normal() != recipe


def _weight(value: tuple[float, int] | None, option: tuple[str, str]) -> float:
    """Likelihood of a change; every component has the same share to begin with, whatever its number of values."""
    share = 1.0 / len(COMPONENTS[option[0]])
    if value is None:
        return share
    mean, count = value
    shrunk = mean * count / (count + 1)
    return share * math.exp(max(-3.0, min(3.0, GREED * shrunk)))


def _differing(a: Recipe, b: Recipe) -> list[str]:
    return [f.name for f in fields(a) if getattr(a, f.name) != getattr(b, f.name)]


def _hypothesis(
    parent: Recipe, child: Recipe, mate: str | None, values: Mapping[tuple[str, str], tuple[float, int]]
) -> Hypothesis:
    changed = _differing(parent, child)
    moves = "; ".join(f"{c} {getattr(parent, c)} to {getattr(child, c)}" for c in changed)
    crossed = f"Crossed with attempt {mate}; " if mate is not None else ""
    measured = [values[c, getattr(child, c)] for c in changed if (c, getattr(child, c)) in values]
    if measured:
        mean = sum(mean for mean, _ in measured) / len(measured)
        accuracy = f"{100 * mean:+.1f} points, the mean of {sum(n for _, n in measured)} earlier measurements"
    else:
        accuracy = "a gain, not measured before"
    return Hypothesis(
        title=", ".join(f"{c} {getattr(child, c)}".replace("_", " ") for c in changed[:3]),
        what=f"{crossed}{moves}. Recipe: {child.text()}",
        why="; ".join(REASONS[c] for c in changed) + ".",
        expected_accuracy=accuracy,
        expected_tokens=_expected_tokens(parent, child),
        expected_latency="about the same; a direct answer takes no model call"
        if child.route == "direct"
        else "about the same",
        rule_at_risk="R05",
    )


def _expected_tokens(parent: Recipe, child: Recipe) -> str:
    """From the upper bound of the context: windows shown times passage width, within the cap."""

    def most(recipe: Recipe) -> float:
        size = {"raw": 500, "five_fields": 700, "headline": 120}[recipe.show]
        return min(float(recipe.cap), float(recipe.slots) * (1 + 2 * float(recipe.around)) * size)

    ratio = most(child) / most(parent)
    if child.route == "direct" and parent.route != "direct":
        return "fewer: clear questions need no context"
    return f"about {ratio:.1f} times the parent's" if abs(ratio - 1) > 0.05 else "about the same"
