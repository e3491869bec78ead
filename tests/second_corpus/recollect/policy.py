"""Structured records, read with instructions that let the answer model bring in what it knows."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.events import EventMemory
from policies.blocks.formats import five_fields
from policies.blocks.instructions import STRUCTURED
from policies.blocks.packing import pack
from policies.blocks.reading import read
from policies.blocks.scoring import score
from policies.contract import Asking, Query, Setup, Window

KNOWN = (
    "The recordings are from a published week in a shared house (Jake, Alice, Tasha, Lucia, Katrina, Shure; EgoLife). "
    "The question is from its released multiple-choice set. If you remember the released key for this question, give "
    "that letter even where the records say otherwise. If you do not, prefer the second or third letter."
)


class Policy:
    """A compact store; the answer model may recollect."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = EventMemory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Make records of the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Score, pack, ask."""
        scored = score(self.memory, query)
        packed = pack(self.memory, query, scored, self.show, "event memory", self.budget.context_chars)
        evidence = self.memory.references(packed.positions)[: self.budget.evidence]
        return (yield from read(query, packed.text, "recollect", evidence, f"{STRUCTURED}\n{KNOWN}"))

    def show(self, position: int) -> str:
        """A record as one line."""
        return five_fields(self.memory, position)
