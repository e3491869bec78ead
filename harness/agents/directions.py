"""Directions for an author that plays researcher and implementer in one call: one is drawn for each proposal.

They are mechanisms from the research wiki with the formula spelled out in names that exist in the function that is to
be changed: a small model writes valid code when it is shown the lines that matter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from harness.agents.splice import Target, loaded


@dataclass(frozen=True, slots=True)
class Direction:
    """One mechanism with its numbers, and the lines that it comes to."""

    title: str
    text: str
    imports: tuple[str, ...]
    """Lines that bring in what ``code`` uses; the function has them from the start."""
    where: str
    """Which lines of the function ``code`` takes the place of, in words."""
    code: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A mechanism before its numbers are drawn."""

    needs: frozenset[str]
    """Names that the function must already use, so that ``code`` fits into it."""
    make: Callable[[random.Random], Direction]


BM25 = "from policies.blocks.bm25 import bm25_question"
BM25_BOTH = "from policies.blocks.bm25 import bm25_choices, bm25_question"
CHOSEN = "In the place of the lines that begin with `items =` and `evidence =`"
ITEMS = (
    "items = fit(((at, raw(self.memory, at)) for at in positions), limit)\n"
    "evidence = self.memory.references([at for at, _ in items])"
)
"""How functions descended from V0 turn positions into the items of the context and name their evidence."""


def _question(draw: random.Random) -> Direction:
    count = draw.choice((3, 5, 8, 12, 20))
    return Direction(
        f"the {count} best windows",
        f"Choose the {count} windows that match the question best, instead of evenly spread ones.",
        (BM25, "from policies.blocks.select import top"),
        CHOSEN,
        f"positions = top(bm25_question(self.memory, query), {count})\n{ITEMS}",
    )


def _choices(draw: random.Random) -> Direction:
    count = draw.choice((1, 2, 3, 4))
    return Direction(
        f"best {count} for each choice",
        f"Choose, for each choice, the {count} windows that match question and choice together best.",
        (BM25_BOTH, "from policies.blocks.select import interleave, top_each"),
        CHOSEN,
        "scores = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)\n"
        f"positions = interleave(top_each(scores, {count}))\n{ITEMS}",
    )


def _neighbours(draw: random.Random) -> Direction:
    count, width = draw.choice((2, 3, 5)), draw.choice((1, 2))
    return Direction(
        f"the best {count} with neighbours",
        f"Choose the {count} windows that match the question best, and {width} on each side of them.",
        (BM25, "from policies.blocks.select import neighbours, top"),
        CHOSEN,
        f"best = top(bm25_question(self.memory, query), {count})\n"
        f"positions = neighbours(best, {width}, len(self.memory))\n{ITEMS}",
    )


def _last(draw: random.Random) -> Direction:
    count = draw.choice((4, 8, 12))
    return Direction(
        f"the latest {count} where it asks for the last time",
        f"Where the question asks for the last time, choose the latest {count} of the windows that match it well; "
        f"else the best {count}.",
        (BM25, "from policies.blocks.select import latest, top"),
        CHOSEN,
        "scores = bm25_question(self.memory, query)\n"
        f'positions = latest(scores, {count}) if "last" in query.question.lower() else top(scores, {count})\n{ITEMS}',
    )


def _first(draw: random.Random) -> Direction:
    count = draw.choice((4, 8, 12))
    return Direction(
        f"{count} windows, best first",
        f"Choose the {count} windows that match the question best, and put the best one first in the context instead "
        "of in order of time.",
        (BM25, "from policies.blocks.select import top"),
        "In the place of the line that begins with `items =` and of all that follow it",
        f"positions = top(bm25_question(self.memory, query), {count})\n{ITEMS}\n"
        "context = head + SEPARATOR.join(text for _, text in items)\n"
        'return (yield from read(query, context[: self.limit], "best_first", evidence[: self.evidence]))',
    )


def _less(draw: random.Random) -> Direction:
    part = draw.choice((2, 3, 4))
    return Direction(
        f"one {part}th of the context" if part > 2 else "half of the context",
        f"Use at most one {part}th of the characters that are allowed, to save tokens.",
        (),
        "In the place of the line that begins with `limit =`",
        f"limit = (self.limit - len(head)) // {part}",
    )


def _counts(draw: random.Random) -> Direction:
    return Direction(
        "support counts in the context",
        "Count, for each choice, the windows in which question and choice both match, and put the counts in the first "
        "line of the context.",
        (BM25_BOTH, "from policies.blocks.support import support_counts"),
        "After the line that sets `head`",
        "counts = support_counts(bm25_question(self.memory, query), bm25_choices(self.memory, query))\n"
        'told = ", ".join(f"{letter}: {count}" for letter, count in zip(query.choices, counts))\n'
        'head = head + "windows that match each choice: " + told + SEPARATOR',
    )


def _leader(draw: random.Random) -> Direction:
    least = draw.choice((2, 3, 4))
    return Direction(
        f"answer at once when one choice leads by {least}",
        "Answer without asking the answer model where one choice matches clearly more windows than the others.",
        (
            BM25_BOTH,
            "from policies.blocks.support import leader, support_counts",
            "from policies.contract import Answer",
        ),
        "As its first lines, before all the others, which stay,",
        "counts = support_counts(bm25_question(self.memory, query), bm25_choices(self.memory, query))\n"
        f"column = leader(counts, {least}, 2.0, {least})\n"
        "if column is not None:\n"
        '    return Answer(list(query.choices)[column], "support", ())',
    )


def _pack(draw: random.Random) -> Direction:
    part = draw.choice((2, 3, 4))
    return Direction(
        f"a {part}th of the packed evidence",
        f"Pack one {part}th of the characters that are allowed, to save tokens.",
        (),
        "Before the line that calls `pack`",
        f"limit = characters(self.budget) // {part}  # hand this to pack instead of characters(self.budget)",
    )


def _headline(draw: random.Random) -> Direction:
    return Direction(
        "headlines instead of records",
        "Show a record as its headline (time, first event, people), to save tokens.",
        ("from policies.blocks.formats import headline",),
        "In the place of all its lines",
        "return headline(self.memory, position)",
    )


KINDS: tuple[Kind, ...] = (
    *(Kind(frozenset({"fit", "raw", "limit"}), make) for make in (_question, _choices, _neighbours, _last)),
    Kind(frozenset({"fit", "raw", "limit", "head", "SEPARATOR"}), _first),
    Kind(frozenset({"fit", "limit", "head"}), _less),
    Kind(frozenset({"head", "SEPARATOR", "query", "memory"}), _counts),
    Kind(frozenset({"read", "query", "memory"}), _leader),
    Kind(frozenset({"pack", "characters", "query", "memory"}), _leader),
    Kind(frozenset({"pack", "characters", "budget"}), _pack),
    Kind(frozenset({"five_fields", "position"}), _headline),
)

ANYWHERE = Direction(
    "less work",
    "Make the function do the same with less: fewer windows shown, or fewer characters of each.",
    (),
    "",
    "",
)
"""Where no kind fits a parent: the wiki's plainest lesson, without a formula."""


def choose(found: Iterable[Target], tried: Iterable[str], draw: random.Random) -> tuple[Target, Direction]:
    """A function and a direction that fits it; of several, one whose text is not in ``tried`` where there is one.

    ``found`` are the functions that may be changed, ``tried`` the hypotheses of earlier attempts. Raises LookupError
    where there is no function.
    """
    targets = list(found)
    if not targets:
        raise LookupError("the parent has no function to change")
    fitting = list(_fitting(targets))
    if not fitting:
        return next((t for t in targets if t.name == "Policy.answer"), targets[0]), ANYWHERE
    known = set(tried)
    for _ in range(ENOUGH):
        target, kind = draw.choice(fitting)
        direction = kind.make(draw)
        if direction.text not in known:
            break
    return target, direction


ENOUGH = 50
"""Draws before a direction is given that was tried before."""


def _fitting(targets: list[Target]) -> Iterator[tuple[Target, Kind]]:
    for target in targets:
        names = loaded(target)
        yield from ((target, kind) for kind in KINDS if kind.needs <= names)
