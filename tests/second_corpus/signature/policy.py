"""Windows as hashed vectors of letter groups: near spellings meet, and no dictionary is kept."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory, window_text
from policies.blocks.postings import Floats
from policies.blocks.reading import read
from policies.blocks.select import interleave, top, top_each
from policies.blocks.tokens import content
from policies.contract import Asking, Query, Setup, Window

BITS = 10
SIZE = 1 << BITS
MASK = SIZE - 1
EACH = 5


def hashed(text: str) -> Floats:
    """Signed counts of hashed letter groups (feature hashing); the sign bit is taken from the same checksum."""
    vector = np.zeros(SIZE)
    for word in content(text):
        w = f"<{word}>"
        for n in (3, 4, 5):
            for i in range(max(len(w) - n + 1, 1)):
                h = crc32(w[i : i + n].encode())
                vector[h & MASK] += 1.0 - 2.0 * (h >> 31)
    return vector


class Policy:
    """Cosine of hashed vectors, each slot weighted by how rare it is among the windows seen."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()
        self.flat: array[float] = array("f")
        self.seen = np.zeros(SIZE)

    def observe(self, windows: Sequence[Window]) -> None:
        """Keep the windows and their vectors."""
        self.memory.observe(windows)
        for window in windows:
            vector = hashed(window_text(window))
            self.flat.extend(vector.tolist())
            self.seen += vector != 0

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """The nearest windows to the question, and to the question with each option."""
        rare = np.log1p(len(self.memory) / (1.0 + self.seen))
        rows = np.array(self.flat, np.float64).reshape(-1, SIZE) * rare
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
        asked = hashed(query.question) * rare
        alone = rows @ asked
        both = np.column_stack([rows @ (asked + hashed(text) * rare) for text in query.choices.values()])
        head = asked_at(query) + SEPARATOR
        found = interleave([top(alone, EACH), *top_each(both, EACH)])
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "signature", evidence))
