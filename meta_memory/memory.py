"""Meta-memory: every attempt of a run, and what of it an author is shown before the next one.

Recall is lexical and deterministic. It serves several needs in turn until the token budget is used up: where the parent
came from, what was tried that is most like the idea at hand and like the parent's, what moved the parent's weakest
question type, what failed from the same parent, and what is new. That failures and lessons are recalled is the
source's (harness ablation); how they are selected is not given by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest

from meta_memory.records import Attempt, AttemptView
from meta_memory.similarity import Likeness, Similarity, likeness
from meta_memory.view import in_short, view

MEASURED = frozenset({"develop", "audit", "validate"})
"""Outcomes of an idea that was measured and found wanting. One that fell over a rule before says nothing of the idea:
it may be tried again within the rule."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a recall is for."""

    parent: int
    """Iteration of the policy that a child is made of."""
    parent_tree: str = ""
    weakest_type: str = ""
    """The parent's weakest question type in development; empty: not known."""
    idea: str = ""
    """The hypothesis at hand; empty: there is none yet."""


@dataclass(frozen=True, slots=True)
class Repeat:
    """A failed attempt that is the same idea."""

    attempt: Attempt
    likeness: Likeness


class MetaMemory:
    """The attempts of a run in order of iteration, after those of an earlier run where some were taken over."""

    def __init__(self, attempts: Iterable[Attempt] = (), inherited: Iterable[Attempt] = ()) -> None:
        self._inherited = tuple(inherited)
        self._own: list[Attempt] = []
        for attempt in attempts:
            self.append(attempt)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt, in order. Holds validation facts: for the loop and reports, never for an agent."""
        return (*self._inherited, *self._own)

    def append(self, attempt: Attempt) -> None:
        """Remember one more attempt. Raises ValueError unless it is later than all before it."""
        if self._own and attempt.iteration <= self._own[-1].iteration:
            raise ValueError(f"iteration {attempt.iteration} is not later than {self._own[-1].iteration}")
        self._own.append(attempt)

    def recall(self, need: Need, token_budget: int, count_tokens: Callable[[str], int]) -> tuple[AttemptView, ...]:
        """What an author is shown, in order, in at most ``token_budget`` tokens.

        ``count_tokens`` counts the JSON text of a view, which is more than what a prompt shows of it.
        """
        return _within(self._ranked(need), view, self.attempts, token_budget, count_tokens)

    def summary(self, token_budget: int, count_tokens: Callable[[str], int]) -> tuple[AttemptView, ...]:
        """The newest attempts in short, in order, in at most ``token_budget`` tokens: what a plain summary tells."""
        return _within(reversed(self.attempts), in_short, self.attempts, token_budget, count_tokens)

    def similar_failure(self, hypothesis: str, change: Mapping[str, int], need: Need) -> Repeat | None:
        """The attempt from the same parent that failed with the same idea, the most alike one; None: it is new.

        ``change`` is what the candidate changes of its parent, as ``Attempt.change``; where it is empty, nothing can
        be told.
        """
        if not change:
            return None
        failures = [a for a in self.attempts if a.outcome in MEASURED and a.change and _same_parent(a, need)]
        found = [Repeat(a, likeness((hypothesis, change), (idea(a), a.change))) for a in failures]
        same = [repeat for repeat in found if repeat.likeness.same]
        return max(same, key=lambda repeat: repeat.likeness.done + repeat.likeness.said, default=None)

    # ------------------------------------------------------------ order of recall

    def _ranked(self, need: Need) -> Iterator[Attempt]:
        """Attempts by usefulness, some twice: the lists taken in turn."""
        line = self._lineage(need)
        ideas = (need.idea, *(idea(parent) for parent in line[:1]))
        alike = [[a for a in self._alike(f"{text} {need.weakest_type}") if a not in line] for text in ideas if text]
        queues = (line, *alike, self._moved(need), self._failures(need), self.attempts[::-1])
        for row in zip_longest(*queues):
            yield from (attempt for attempt in row if attempt is not None)

    def _lineage(self, need: Need) -> list[Attempt]:
        """The parent, its parent, and so on: what made the policy what it is."""
        by_iteration = {attempt.iteration: attempt for attempt in self._own}
        line: list[Attempt] = []
        parent = need.parent
        while (found := by_iteration.get(parent)) is not None:
            line.append(found)
            parent = found.parent if found.parent < found.iteration else -1
        return line

    def _alike(self, asked: str) -> list[Attempt]:
        """All attempts, those most like ``asked`` first; at a tie the newer one."""
        scores = Similarity([f"{idea(a)} {a.lesson}" for a in self.attempts]).to(asked)
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], -i))
        return [self.attempts[i] for i in order]

    def _moved(self, need: Need) -> list[Attempt]:
        """What moved the weakest question type, up or down, the most first; at a tie the newer one."""
        moved = [(a.dev_delta_by_type.get(need.weakest_type, 0.0), n, a) for n, a in enumerate(self.attempts)]
        return [a for delta, _, a in sorted(moved, key=lambda m: (-abs(m[0]), -m[1])) if delta]

    def _failures(self, need: Need) -> list[Attempt]:
        """What failed from the same parent, the newest first."""
        return [a for a in reversed(self.attempts) if a.outcome != "promoted" and _same_parent(a, need)]


def idea(attempt: Attempt) -> str:
    """What an attempt says of itself."""
    return f"{attempt.title} {attempt.hypothesis}"


def _same_parent(attempt: Attempt, need: Need) -> bool:
    if attempt.run:
        return bool(need.parent_tree) and attempt.parent_tree == need.parent_tree
    return attempt.parent == need.parent


def _within(
    ranked: Iterable[Attempt],
    show: Callable[[Attempt], AttemptView],
    order: tuple[Attempt, ...],
    token_budget: int,
    count_tokens: Callable[[str], int],
) -> tuple[AttemptView, ...]:
    """What of ``ranked`` fits, first come first served, in ``order``; one that is too long is left out."""
    chosen: dict[str, AttemptView] = {}
    looked: set[str] = set()
    left = token_budget
    for attempt in ranked:
        if attempt.label in looked:
            continue
        looked.add(attempt.label)
        shown = show(attempt)
        cost = count_tokens(shown.model_dump_json())
        if cost <= left:
            chosen[attempt.label] = shown
            left -= cost
    return tuple(chosen[attempt.label] for attempt in order if attempt.label in chosen)
