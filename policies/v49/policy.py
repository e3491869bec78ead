"""V49, SEEM: V47 with gated visual verification. Text first, frames only where they are needed.

``settings.json`` beside this file switches its components for ablations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from policies.blocks.captions import CaptionMemory
from policies.blocks.components import read_components
from policies.blocks.events import EventMemory
from policies.blocks.expansion import beside
from policies.blocks.fields import GAMMA
from policies.blocks.formats import five_fields, raw
from policies.blocks.frequency import frequency
from policies.blocks.gate import opens
from policies.blocks.packing import pack
from policies.blocks.relational import relational
from policies.blocks.rewrite import FIVE_FIELDS, Rewriter
from policies.blocks.route import Direct, characters, direct_answer, metadata, structured_event
from policies.blocks.scoring import Scored, score
from policies.blocks.temporal_delta import temporal_delta
from policies.blocks.verification import verified
from policies.contract import Asking, Query, Setup, Window


class Policy:
    """Answers as V47 does, and has frames verify the answer where the gate opens."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.components = read_components(__name__)
        self.memory = EventMemory() if self.components.structured_memory else CaptionMemory()
        self.rewriter = Rewriter(FIVE_FIELDS, self.memory.observe)

    def observe(self, windows: Sequence[Window]) -> None:
        """Hand the windows to the rewriter; raw captions need none."""
        (self.rewriter if self.components.structured_memory else self.memory).observe(windows)

    def settle(self) -> Asking:
        """Rewrite each window as a record."""
        yield from self.rewriter.settle()

    def answer(self, query: Query) -> Asking:
        """The text stage; then, where the gate opens, the frames."""
        self.rewriter.answer()
        scored = score(self.memory, query, GAMMA if self.components.co_occurrence_bonus else 0.0)
        text = yield from self.text(query, scored)
        opened, notes = yield from opens(self.components.gate, self.memory, query, text)
        text = replace(text, diagnostics={**text.diagnostics, **notes, "gate_open": opened})
        if not opened:
            return text
        return (yield from verified(self.memory, query, scored, text, self.show, self.budget))

    def text(self, query: Query, scored: Scored) -> Asking:
        """V47: the specialists in turn; where all abstain, f over anchors and their neighbours."""
        notes = metadata(query, scored, self.rewriter.label if self.components.structured_memory else "captions")
        direct = self.direct(query, scored) if self.components.specialists else None
        if direct is not None:
            return direct_answer(self.memory, direct, notes, self.budget)
        mode = "structured event memory" if self.components.structured_memory else "raw captions"
        limit = characters(self.budget)
        packed = pack(self.memory, query, scored, self.show, mode, limit, beside=self.beside)
        return (yield from structured_event(self.memory, query, packed, notes, self.budget))

    def direct(self, query: Query, scored: Scored) -> Direct | None:
        """What a specialist computes from memory, or None."""
        return (
            temporal_delta(self.memory, query)
            or frequency(self.memory, query, scored)
            or relational(self.memory, query)
        )

    def show(self, position: int) -> str:
        """A record, or a window's captions, as one line."""
        return (five_fields if self.components.structured_memory else raw)(self.memory, position)

    def beside(self, position: int) -> Iterator[tuple[int, str]]:
        """The windows next to a record."""
        return beside(self.memory, position)
