"""V47: V30 with expansion around the retrieved event anchors in the place of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from policies.blocks.events import EventMemory
from policies.blocks.expansion import beside
from policies.blocks.formats import five_fields
from policies.blocks.frequency import frequency
from policies.blocks.packing import pack
from policies.blocks.relational import relational
from policies.blocks.rewrite import FIVE_FIELDS, Rewriter
from policies.blocks.route import characters, direct_answer, metadata, structured_event
from policies.blocks.scoring import score
from policies.blocks.temporal_delta import temporal_delta
from policies.contract import Asking, Query, Setup, Window


class Policy:
    """Structured anchors, each with what stands right before and after it."""

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
        """The specialists in turn; where all abstain, f over anchors and their neighbours."""
        self.rewriter.answer()
        scored = score(self.memory, query)
        notes = metadata(query, scored, self.rewriter.label)
        direct = (
            temporal_delta(self.memory, query)
            or frequency(self.memory, query, scored)
            or relational(self.memory, query)
        )
        if direct is not None:
            return direct_answer(self.memory, direct, notes, self.budget)
        limit = characters(self.budget)
        packed = pack(self.memory, query, scored, self.show, "structured event memory", limit, beside=self.beside)
        return (yield from structured_event(self.memory, query, packed, notes, self.budget))

    def show(self, position: int) -> str:
        """A record as one line."""
        return five_fields(self.memory, position)

    def beside(self, position: int) -> Iterator[tuple[int, str]]:
        """The windows next to a record."""
        return beside(self.memory, position)
