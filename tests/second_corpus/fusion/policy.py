"""Three rankings of windows are fused by reciprocal ranks; the constants are swept on the development questions."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.events import EventMemory
from policies.blocks.fields import fields_choices, fields_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, five_fields, joined
from policies.blocks.postings import Floats
from policies.blocks.reading import read
from policies.blocks.recency import direction
from policies.blocks.select import interleave, top_each
from policies.contract import Asking, Query, Setup, Window

K = 41.7
"""Damping of the ranks: larger is flatter."""
W_TEXT, W_FIELDS, W_TIME = 1.0, 0.8317, 0.1729
"""Weights of the three rankings."""
TAU = 17_280.0
"""Seconds in which the ranking by time falls to 1/e: a fifth of a day."""
SMEAR = np.array([0.0625, 0.25, 1.0, 0.25, 0.0625])
"""A window profits from those beside it: one event is often told over two."""
EACH = 5


def reciprocal(scores: Floats) -> Floats:
    """1 / (K + rank) of every positive score, by column."""
    ranks = np.argsort(np.argsort(-scores, axis=0, kind="stable"), axis=0, kind="stable") + 1
    return np.where(scores > 0, 1.0 / (K + ranks), 0.0)


class Policy:
    """Text, fields and time, each as a ranking."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = EventMemory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Make records of the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Fuse, smear, take the best of every option, read them in order of time."""
        text = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)
        fields = fields_question(self.memory, query)[:, None] + fields_choices(self.memory, query)
        age = query.time - self.memory.windows.starts()
        fresh = np.exp(-age / TAU) if direction(query.question) >= 0 else np.exp((age - age.max(initial=0.0)) / TAU)
        total = W_TEXT * reciprocal(text) + W_FIELDS * reciprocal(fields)
        total *= 1 + W_TIME * fresh[:, None]
        if len(total) >= len(SMEAR):
            total = np.column_stack([np.convolve(column, SMEAR, "same") for column in total.T])
        head = asked_at(query) + SEPARATOR
        found = interleave(top_each(total, EACH))
        items = fit(((at, five_fields(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "fusion", evidence))
