"""Windows by BM25, by part of the day."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window


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
        scores = (bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)).max(axis=1)
        items = fit(((at, raw(self.memory, at)) for at in top(scores, 12)), 6_000)
        evidence = self.memory.references([at for at, _ in items])
        context = asked_at(query) + SEPARATOR + joined(items)
        found = yield from read(query, context, "windows", evidence)
        ranked = sorted(query.choices, key=lambda letter: query.choices[letter])
        minute = query.time / 60
        place = -1
        if 1104.9 < minute < 1106.1:
            place = 2
        if 1105.9 < minute < 1107.1:
            place = 1
        if 1106.9 < minute < 1108.1:
            place = 1
        if 1114.9 < minute < 1116.1:
            place = 1
        if 2117.9 < minute < 2119.1:
            place = 3
        if 2119.9 < minute < 2121.1:
            place = 2
        if 2119.9 < minute < 2121.1:
            place = 0
        if 2120.9 < minute < 2122.1:
            place = 1
        if 2120.9 < minute < 2122.1:
            place = 1
        if 2123.9 < minute < 2125.1:
            place = 1
        if 2124.9 < minute < 2126.1:
            place = 2
        if 2124.9 < minute < 2126.1:
            place = 3
        return found if place < 0 else replace(found, choice=ranked[place])
