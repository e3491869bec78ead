"""All lexical scores of one question: S_q, S_c, their total S with its temporal rerank, the support counts."""

from __future__ import annotations

from dataclasses import dataclass

from policies.blocks.events import EventMemory
from policies.blocks.fields import GAMMA, fields_choices, fields_question, totals
from policies.blocks.postings import Floats
from policies.blocks.recency import direction, ranked
from policies.blocks.support import support_counts
from policies.contract import Query


@dataclass(frozen=True, slots=True)
class Scored:
    """Scores of the n eligible records for a question with k choices."""

    asked: Floats
    """S_q, shape (n,)."""
    chosen: Floats
    """S_c, shape (n, k)."""
    total: Floats
    """S before the temporal rerank, shape (n, k)."""
    counts: tuple[int, ...]
    """n_c of each choice, over all eligible records."""
    later: int
    """1 where the question asks for later records, -1 for earlier ones, else 0."""

    def best(self, scores: Floats, count: int) -> list[tuple[int, float]]:
        """The best records by ``scores`` (n,), such as a column of ``total``, after the temporal rerank:
        (position, reranked score), best first, matches only."""
        return ranked(scores, count, self.later)

    def overall(self) -> Floats:
        """Each record's best total over the choices, shape (n,)."""
        return self.total.T.max(axis=0) if self.total.shape[1] else self.asked


def score(memory: EventMemory, query: Query, bonus: float = GAMMA) -> Scored:
    """Score all records; ``bonus`` is the same-record bonus, 0 to go without."""
    asked, chosen = fields_question(memory, query), fields_choices(memory, query)
    total, counts = totals(asked, chosen, bonus), tuple(support_counts(asked, chosen))
    return Scored(asked, chosen, total, counts, direction(query.question))
