"""Evidence by BM25; of options that are nearly even, the most central one is preferred."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.memory import Memory
from policies.blocks.tokens import words
from policies.contract import Answer, Query, Setup, Window

NEARLY = 0.93
"""Share of the best score from which an option counts as even with it."""


def grams(text: str) -> set[str]:
    """Letter triples of a text."""
    plain = f" {' '.join(words(text))} "
    return {plain[at : at + 3] for at in range(len(plain) - 2)}


def centrality(options: Sequence[str]) -> list[float]:
    """How much of its wording an option shares with the rest, and how near it is to their usual size."""
    sets = [grams(option) for option in options]
    middle = float(np.median([len(option) for option in options]))
    found = []
    for at, own in enumerate(sets):
        others = [len(own & other) / max(len(own | other), 1) for place, other in enumerate(sets) if place != at]
        found.append(sum(others) - abs(len(options[at]) - middle) / (1 + middle))
    return found


class Policy:
    """Best window per option, then the most central of those that are even."""

    def __init__(self, setup: Setup) -> None:
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """Even options are told apart by their centrality."""
        letters = list(query.choices)
        if not len(self.memory):
            return Answer(letters[0], "empty")
        scores = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)
        best = scores.max(axis=0)
        central = centrality(list(query.choices.values()))
        even = [at for at in range(len(letters)) if best[at] >= NEARLY * best.max()]
        column = max(even, key=lambda at: central[at])
        return Answer(letters[column], "consensus", self.memory.references([int(scores[:, column].argmax())]))
