"""Baseline: BM25 of question and option over the windows seen; the option with the best window wins. No model."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.memory import Memory
from policies.contract import Answer, Query, Setup, Window


class Policy:
    """An option's score is its best window's; ties go to the first letter."""

    def __init__(self, setup: Setup) -> None:
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """The option whose best window scores highest for question and option together."""
        if not len(self.memory):
            return Answer(next(iter(query.choices)), "nothing seen")
        scores = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)
        column = int(scores.max(axis=0).argmax())
        best = int(scores[:, column].argmax())
        return Answer(list(query.choices)[column], "bm25", self.memory.references([best]))
