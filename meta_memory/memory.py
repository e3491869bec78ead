"""Meta-memory: every attempt of a run, and what of it an author is shown before the next one.

Recall is lexical and deterministic. It serves three needs in turn until the token budget is used up: where the parent
came from, what was tried that is most like the present idea, and what failed from the same parent. That failures and
lessons are recalled is the source's (harness ablation); how they are selected is not given by it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest

from meta_memory.records import Attempt, AttemptView
from meta_memory.similarity import Similarity
from meta_memory.view import view

SAME_IDEA = 0.8
"""Similarity from which two hypotheses count as the same idea; not given by the source."""


class MetaMemory:
    """The attempts of a run in order of iteration; only ever appended to."""

    def __init__(self, attempts: Iterable[Attempt] = ()) -> None:
        self._attempts: list[Attempt] = []
        for attempt in attempts:
            self.append(attempt)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Every attempt, in order. Holds validation facts: for the loop and reports, never for an agent."""
        return tuple(self._attempts)

    def append(self, attempt: Attempt) -> None:
        """Remember one more attempt. Raises ValueError unless it is later than all before it."""
        if self._attempts and attempt.iteration <= self._attempts[-1].iteration:
            raise ValueError(f"iteration {attempt.iteration} is not later than {self._attempts[-1].iteration}")
        self._attempts.append(attempt)

    def recall(
        self,
        parent: int,
        weakest_type: str,
        hypothesis: str,
        token_budget: int,
        count_tokens: Callable[[str], int],
    ) -> tuple[AttemptView, ...]:
        """What the author of a child of ``parent`` is shown, in order of iteration, in at most ``token_budget`` tokens.

        ``weakest_type``: the parent's weakest question type, empty if unknown. ``hypothesis``: the idea at hand, empty
        if there is none yet. ``count_tokens`` counts the JSON text of a view.
        """
        chosen: dict[int, AttemptView] = {}
        left = token_budget
        costs: dict[int, tuple[AttemptView, int]] = {}
        for attempt in self._ranked(parent, weakest_type, hypothesis):
            if attempt.iteration not in costs:
                costs[attempt.iteration] = (seen := view(attempt)), count_tokens(seen.model_dump_json())
            shown, cost = costs[attempt.iteration]
            if attempt.iteration not in chosen and cost <= left:
                chosen[attempt.iteration] = shown
                left -= cost
        return tuple(chosen[iteration] for iteration in sorted(chosen))

    def similar_failure(self, hypothesis: str, parent: int) -> Attempt | None:
        """The failed attempt from the same parent whose hypothesis is the same idea, the most alike one; or None."""
        failures = [a for a in self._attempts if a.parent == parent and _failed(a) and a.hypothesis]
        scores = Similarity([_text(attempt) for attempt in failures]).to(hypothesis)
        best = max(range(len(failures)), key=lambda i: (scores[i], failures[i].iteration), default=None)
        return failures[best] if best is not None and scores[best] >= SAME_IDEA else None

    # ------------------------------------------------------------ order of recall

    def _ranked(self, parent: int, weakest_type: str, hypothesis: str) -> Iterator[Attempt]:
        """Attempts by usefulness, some twice: the three lists taken in turn."""
        queues = (self._lineage(parent), self._alike(parent, weakest_type, hypothesis), self._failures(parent))
        for row in zip_longest(*queues):
            yield from (attempt for attempt in row if attempt is not None)

    def _lineage(self, parent: int) -> list[Attempt]:
        """The parent, its parent, and so on: what made the policy what it is."""
        by_iteration = {attempt.iteration: attempt for attempt in self._attempts}
        line: list[Attempt] = []
        while (found := by_iteration.get(parent)) is not None:
            line.append(found)
            parent = found.parent if found.parent < found.iteration else -1
        return line

    def _alike(self, parent: int, weakest_type: str, hypothesis: str) -> list[Attempt]:
        """All attempts, those most like the idea at hand first; at a tie the newer one."""
        title = next((a.title for a in self._attempts if a.iteration == parent), "")
        asked = " ".join((hypothesis or title, weakest_type))
        scores = Similarity([_text(attempt) for attempt in self._attempts]).to(asked)
        order = sorted(range(len(scores)), key=lambda i: (-scores[i], -i))
        return [self._attempts[i] for i in order]

    def _failures(self, parent: int) -> list[Attempt]:
        """What failed from the same parent, the newest first."""
        return [a for a in reversed(self._attempts) if a.parent == parent and _failed(a)]


def _failed(attempt: Attempt) -> bool:
    return attempt.outcome != "promoted"


def _text(attempt: Attempt) -> str:
    return f"{attempt.title} {attempt.hypothesis}"
