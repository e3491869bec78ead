"""V44: V30 with raw captions in the place of the five fields. A regression."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.captions import CaptionMemory
from policies.blocks.expansion import ledger
from policies.blocks.formats import raw
from policies.blocks.frequency import frequency
from policies.blocks.packing import pack
from policies.blocks.relational import relational
from policies.blocks.route import characters, direct_answer, metadata, structured_event
from policies.blocks.scoring import score
from policies.blocks.temporal_delta import temporal_delta
from policies.contract import Asking, Query, Setup, Window


class Policy:
    """The same retrieval over the text of each window as one field."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = CaptionMemory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the captions as they are."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """As V30."""
        scored = score(self.memory, query)
        notes = metadata(query, scored, "captions")
        direct = (
            temporal_delta(self.memory, query)
            or frequency(self.memory, query, scored)
            or relational(self.memory, query)
        )
        if direct is not None:
            return direct_answer(self.memory, direct, notes, self.budget)
        limit, listed = characters(self.budget), ledger(self.memory, scored)
        packed = pack(self.memory, query, scored, self.show, "raw captions", limit, listed)
        return (yield from structured_event(self.memory, query, packed, notes, self.budget))

    def show(self, position: int) -> str:
        """A window as one line."""
        return raw(self.memory, position)
