"""V15: V9 with broad narrative expansion, ten minutes of captions around every record found. A regression."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from policies.blocks.events import EventMemory
from policies.blocks.expansion import narrative
from policies.blocks.formats import SEPARATOR, fit, five_fields, joined
from policies.blocks.packing import Packed, header, pack
from policies.blocks.relational import relational
from policies.blocks.rewrite import FIVE_FIELDS, Rewriter
from policies.blocks.route import characters, direct_answer, metadata, structured_event
from policies.blocks.scoring import Scored, score
from policies.blocks.temporal_delta import temporal_delta
from policies.contract import Asking, Query, Setup, Window


class Policy:
    """Narrative in the place of packed records."""

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
        """The specialists in turn; where both abstain, f over the narrative."""
        self.rewriter.answer()
        scored = score(self.memory, query)
        notes = metadata(query, scored, self.rewriter.label)
        direct = temporal_delta(self.memory, query) or relational(self.memory, query)
        if direct is not None:
            return direct_answer(self.memory, direct, notes, self.budget)
        packed = pack(self.memory, query, scored, self.show, "structured event memory", characters(self.budget))
        packed = self.told(query, scored, packed)
        return (yield from structured_event(self.memory, query, packed, notes, self.budget))

    def show(self, position: int) -> str:
        """A record as one line."""
        return five_fields(self.memory, position)

    def told(self, query: Query, scored: Scored, packed: Packed) -> Packed:
        """All windows around the packed records in their place, as many as fit, in order of time."""
        head = header(self.memory, query, "rolling narrative", scored.counts) + SEPARATOR
        items = fit(narrative(self.memory, packed.positions), characters(self.budget) - len(head))
        text = (head + joined(items))[: characters(self.budget)]
        return replace(packed, text=text, positions=tuple(at for at, _ in items))
