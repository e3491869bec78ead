"""Windows by BM25, without the model."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Answer, Asking, Query, Setup, Window


class Policy:
    """BM25 over the windows, a dozen of them read by the fixed model."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """The best windows, read by the fixed model."""
        scores = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)
        column = int(scores.max(axis=0).argmax())
        best = [int(scores[:, column].argmax())]
        return Answer(list(query.choices)[column], "own reader", self.memory.references(best))
        yield
