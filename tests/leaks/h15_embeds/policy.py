"""Windows by BM25, reranked by an embedding where there is one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.blocks.vectors import decode
from policies.contract import Asking, Embed, Query, Refused, Setup, Window


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
        chosen = list(top(scores, 16))
        try:
            reply = yield Embed((query.question, *[raw(self.memory, at)[:500] or "nothing" for at in chosen]))
            vectors = decode(reply)
            near = vectors[1:] @ vectors[0]
            chosen = [chosen[i] for i in np.argsort(-near, kind="stable")]
        except Refused:
            pass
        items = fit(((at, raw(self.memory, at)) for at in chosen[:12]), 6_000)
        evidence = self.memory.references([at for at, _ in items])
        return (yield from read(query, asked_at(query) + SEPARATOR + joined(items), "embedded", evidence))
