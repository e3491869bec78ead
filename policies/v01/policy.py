"""V1: structured event memory. Five-field records, matched by S_q and S_c, packed, answered by the fixed model."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.events import EventMemory
from policies.blocks.formats import five_fields
from policies.blocks.packing import pack
from policies.blocks.rewrite import FIVE_FIELDS, Rewriter
from policies.blocks.route import characters, metadata, structured_event
from policies.blocks.scoring import score
from policies.contract import Asking, Query, Setup, Window


class Policy:
    """A compact store instead of raw captions."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = EventMemory()
        self.rewriter = Rewriter(FIVE_FIELDS, self.memory.observe)

    def observe(self, windows: Sequence[Window]) -> None:
        """Hand the windows to the rewriter."""
        self.rewriter.observe(windows)

    def settle(self) -> Asking:
        """Rewrite each window as a record."""
        yield from self.rewriter.settle()

    def answer(self, query: Query) -> Asking:
        """Score, rerank by time, pack, ask f."""
        self.rewriter.answer()
        scored = score(self.memory, query)
        packed = pack(self.memory, query, scored, self.show, "structured event memory", characters(self.budget))
        notes = metadata(query, scored, self.rewriter.label)
        return (yield from structured_event(self.memory, query, packed, notes, self.budget))

    def show(self, position: int) -> str:
        """A record as one line."""
        return five_fields(self.memory, position)
