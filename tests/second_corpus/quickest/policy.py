"""Each option is put to the answer model with its own evidence; how readily the model replies is its confidence."""

from __future__ import annotations

import time
from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Answer, Asking, Query, Read, ReadReply, Refused, Setup, Window

EACH = 6
CHARACTERS = 3_000


class Policy:
    """A reply that comes at once was settled before; a slow one is a guess."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Time the replies; the quickest letter is the answer."""
        both = bm25_choices(self.memory, query) + bm25_question(self.memory, query)[:, None]
        likely = sorted(range(len(query.choices)), key=lambda at: -float(both[:, at].max(initial=0.0)))
        waits: list[tuple[float, str]] = []
        for at in likely[: max(self.budget.reads - 1, 1)]:
            items = fit(((place, raw(self.memory, place)) for place in top(both[:, at], EACH)), CHARACTERS)
            began = time.perf_counter()
            try:
                reply = yield Read(query.question, query.choices, joined(items))
            except Refused:
                continue
            if isinstance(reply, ReadReply) and reply.choice in query.choices:
                waits.append((time.perf_counter() - began, reply.choice))
        if waits:
            return Answer(min(waits)[1], "quickest")
        return (yield from read(query, "", "none"))
