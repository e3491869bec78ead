"""Windows by BM25, more of them for questions that count."""

from __future__ import annotations

import re
from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window

COUNTS = re.compile(r"\b(how many|how often|most often|usually|how much)\b")


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
        said = query.question.lower()
        many = 20 if COUNTS.search(said) else 14 if said.startswith(("when was the last time", "who was the last")) else 12
        scores = (bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)).max(axis=1)
        items = fit(((at, raw(self.memory, at)) for at in top(scores, many)), 8_000)
        evidence = self.memory.references([at for at, _ in items])
        return (yield from read(query, asked_at(query) + SEPARATOR + joined(items), "forms", evidence))
