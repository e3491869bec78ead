"""Baseline: BM25 of the options alone, never the question, over the windows seen. No model.

What a policy scores above this is owed to the question; print it beside every figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices
from policies.blocks.memory import Memory
from policies.contract import Answer, Query, Setup, Window


class Policy:
    """The option with the best window of its own; ties go to the first letter."""

    def __init__(self, setup: Setup) -> None:
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """The option whose best window scores highest for the option's own terms."""
        if not len(self.memory):
            return Answer(next(iter(query.choices)), "nothing seen")
        scores = bm25_choices(self.memory, query)
        column = int(scores.max(axis=0).argmax())
        best = int(scores[:, column].argmax())
        return Answer(list(query.choices)[column], "options only", self.memory.references([best]))
