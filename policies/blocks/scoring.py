"""All lexical scores of one question: S_q, S_c, their total S after the temporal rerank, and the support counts."""

from __future__ import annotations

from dataclasses import dataclass

from policies.blocks.events import EventMemory
from policies.blocks.fields import GAMMA, fields_choices, fields_question, totals
from policies.blocks.postings import Floats
from policies.blocks.recency import temporal
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
    """S after the temporal rerank, shape (n, k)."""
    counts: tuple[int, ...]
    """n_c of each choice, over all eligible records."""


def score(memory: EventMemory, query: Query, bonus: float = GAMMA) -> Scored:
    """Score all records; ``bonus`` is the same-record bonus, 0 to go without."""
    asked, chosen = fields_question(memory, query), fields_choices(memory, query)
    total = temporal(totals(asked, chosen, bonus), query.question)
    return Scored(asked, chosen, total, tuple(support_counts(asked, chosen)))
