"""Windows by BM25; habits are counted."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

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
        scores = bm25_choices(self.memory, query)
        if "most often" in query.question or "usually" in query.question:
            counts = (scores > 0).sum(axis=0)
            order = np.argsort(-counts, kind="stable")
            if counts[order[0]] >= 3 + 2 * counts[order[1]]:
                best = [int(at) for at in np.flatnonzero(scores[:, order[0]])[:8]]
                return Answer(list(query.choices)[int(order[0])], "counted", self.memory.references(best))
        scores = (bm25_question(self.memory, query)[:, None] + scores).max(axis=1)
        items = fit(((at, raw(self.memory, at)) for at in top(scores, 12)), 6_000)
        evidence = self.memory.references([at for at, _ in items])
        return (yield from read(query, asked_at(query) + SEPARATOR + joined(items), "windows", evidence))
