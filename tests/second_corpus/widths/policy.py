"""How much is shown depends on the type of question: habits need many windows, a place needs the last one."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.recency import temporal
from policies.blocks.select import interleave, neighbours, top, top_each
from policies.contract import Asking, Query, Setup, Window

SHAPE = {
    "EntityLog": (2, 3, 1, 0.9, 2.6),
    "EventRecall": (6, 2, 1, 0.7, 1.3),
    "HabitInsight": (3, 8, 0, 1.4, 0.2),
    "RelationMap": (4, 4, 0, 1.0, 2.1),
    "TaskMaster": (5, 3, 1, 0.8, 2.4),
}
"""By type: windows for the question, windows for each option, neighbours, weight of the options, strength of time."""
OTHER = (4, 4, 0, 1.0, 1.0)


class Policy:
    """One retrieval, five shapes."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Retrieve in the shape of the type, and read."""
        general, each, beside, weight, strength = SHAPE.get(query.type, OTHER)
        asked = temporal(bm25_question(self.memory, query), query.question, strength)
        both = asked[:, None] + weight * bm25_choices(self.memory, query)
        best = interleave([top(asked, general), *top_each(both, each)])
        found = list(dict.fromkeys([*best, *neighbours(best, beside, len(self.memory))]))
        head = asked_at(query) + SEPARATOR
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "shaped", evidence))
