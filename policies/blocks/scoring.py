"""All lexical scores of one question: S_q, S_c, their total S with its temporal rerank, the support counts.

S_c is kept for the records that match a choice alone: of all others S is S_q, and of those only the best can come up.
"""

from __future__ import annotations

from dataclasses import dataclass

from policies.blocks.events import EventMemory
from policies.blocks.fields import ALPHA, GAMMA, choice_matches, fields_question, totals
from policies.blocks.postings import Bools, Floats, Ints
from policies.blocks.recency import direction, ranked
from policies.blocks.support import support_counts
from policies.contract import Query

Ranking = list[tuple[int, float]]
"""(position, reranked score), best first, equals in order of time."""


@dataclass(frozen=True, slots=True)
class Matches:
    """The m records that match a choice, in order of time."""

    positions: Ints
    chosen: Floats
    """S_c, shape (m,), all above 0."""
    total: Floats
    """S before the temporal rerank, shape (m,)."""


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of the n eligible records for a question with k choices."""

    asked: Floats
    """S_q, shape (n,)."""
    choices: tuple[Matches, ...]
    counts: tuple[int, ...]
    """n_c of each choice, over all eligible records."""
    later: int
    """1 where the question asks for later records, -1 for earlier ones, else 0."""

    def best(self, column: int | None, count: int, among: Bools | None = None) -> Ranking:
        """The records with the highest S for a choice (None: with the highest S_q), matches only.

        ``among`` (n,) says which records may come up.
        """
        asked = ALPHA * self.asked if among is None else ALPHA * self.asked * among
        likely = ranked(asked, count, self.later, len(asked))
        return likely if column is None else self._merged(self.choices[column], likely, count, among)

    def each(self, count: int) -> list[Ranking]:
        """``best`` of every choice."""
        likely = self.best(None, count)
        return [self._merged(matches, likely, count) for matches in self.choices]

    def _merged(self, matches: Matches, likely: Ranking, count: int, among: Bools | None = None) -> Ranking:
        """The best of the records that match, and of those ``likely`` ones that do not."""
        positions, total = matches.positions, matches.total
        if among is not None:
            positions, total = positions[among[positions]], total[among[positions]]
        best = dict(likely) | dict(ranked(total, count, self.later, len(self.asked), positions))
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:count]


def overall(each: list[Ranking], count: int) -> Ranking:
    """The records with the highest S for any choice, from the rankings of all choices of at least that many."""
    best: dict[int, float] = {}
    for ranking in each:
        for position, score in ranking:
            best[position] = max(score, best.get(position, 0.0))
    return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:count]


def score(memory: EventMemory, query: Query, bonus: float = GAMMA) -> Scored:
    """Score all records; ``bonus`` is the same-record bonus, 0 to go without."""
    asked = fields_question(memory, query)
    choices, counts = [], []
    for text in query.choices.values():
        positions, chosen = choice_matches(memory, text)
        shared = asked[positions]
        choices.append(Matches(positions, chosen, totals(shared, chosen[:, None], bonus)[:, 0]))
        counts += support_counts(shared, chosen[:, None])
    return Scored(asked, tuple(choices), tuple(counts), direction(query.question))
