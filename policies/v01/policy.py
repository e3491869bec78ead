"""V1: structured event memory. Five-field records, matched by S_q and S_c, packed, answered by the fixed model."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.events import EventMemory
from policies.blocks.fields import fields_choices, fields_question, totals
from policies.blocks.formats import five_fields
from policies.blocks.instructions import STRUCTURED
from policies.blocks.packing import LIMIT, pack
from policies.blocks.reading import read
from policies.blocks.recency import temporal
from policies.blocks.support import support_counts
from policies.contract import Asking, Query, Setup, Window


class Policy:
    """A compact store instead of raw captions."""

    def __init__(self, setup: Setup) -> None:
        self.limit = min(LIMIT, setup.budget.context_chars)
        self.evidence = setup.budget.evidence
        self.memory = EventMemory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Rewrite each window as a record."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Score, rerank by time, pack, ask f."""
        asked = fields_question(self.memory, query)
        chosen = fields_choices(self.memory, query)
        scores = temporal(totals(asked, chosen), query.question)
        counts = support_counts(asked, chosen)
        packed = pack(
            self.memory,
            query,
            scores.max(axis=1),
            scores,
            counts,
            lambda at: five_fields(self.memory, at),
            "structured event memory",
            self.limit,
        )
        evidence = self.memory.references(packed.positions)[: self.evidence]
        notes = {"support": dict(zip(query.choices, counts, strict=True)), "dropped": packed.dropped}
        return (yield from read(query, packed.text, "structured_event", evidence, STRUCTURED, notes))
