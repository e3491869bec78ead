"""Windows by BM25; lines of nothing but common words are left out."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window

COMMON = frozenset(
    """i me my a an the and or but if of at by for with about to from in out on off over under again then once here there
    all any both each few more most other some such no nor not only own same so than too very can will just now it its
    this that these those am is are was were be been being have has had do does did he she they them we you your""".split()
)


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
        items = fit(((at, self.lines(at)) for at in top(scores, 14)), 6_000)
        evidence = self.memory.references([at for at, _ in items])
        return (yield from read(query, asked_at(query) + SEPARATOR + joined(items), "lines", evidence))

    def lines(self, at: int) -> str:
        """The window's text without lines of common words alone."""
        kept = [line for line in raw(self.memory, at).split(". ") if set(line.lower().split()) - COMMON]
        return ". ".join(kept)
