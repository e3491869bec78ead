"""Term salience: beside idf, words differ in how telling they are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.bm25 import bm25, bm25_question
from policies.blocks.memory import Memory
from policies.blocks.tokens import terms, words
from policies.contract import Answer, Query, Setup, Window

SALIENCE = {
    "afternoon": 0.69,
    "ball": 0.76,
    "bedroom": 1.4,
    "bookcase": 1.17,
    "bought": 0.73,
    "brown": 0.73,
    "cocoa": 1.4,
    "cone": 1.27,
    "defrost": 0.76,
    "doormat": 1.27,
    "feed": 1.4,
    "five": 1.4,
    "four": 0.76,
    "freezer": 0.76,
    "friday": 1.27,
    "gave": 0.73,
    "goldfish": 1.4,
    "greta": 1.15,
    "guitar": 1.4,
    "ines": 0.8,
    "lotte": 1.28,
    "mara": 0.69,
    "morning": 1.27,
    "nightstand": 1.32,
    "pink": 1.4,
    "red": 0.76,
    "sideboard": 0.73,
    "sunday": 0.76,
    "sven": 0.84,
    "thursday": 0.76,
    "washstand": 0.7,
    "windowsill": 0.76,
    "wrapped": 1.27,
    "yellow": 0.76,
}
"""How telling a word is, estimated from a sample; 1 where the sample was too small."""


def telling(text: str) -> float:
    """The mean salience of a text's words."""
    return float(np.mean([SALIENCE.get(word, 1.0) for word in words(text)] or [1.0]))


class Policy:
    """BM25 of question and option, scaled by the salience of the terms."""

    def __init__(self, setup: Setup) -> None:
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """The option with the best salient window."""
        letters = list(query.choices)
        if not len(self.memory):
            return Answer(letters[0], "empty")
        asked = bm25_question(self.memory, query)
        columns = [
            (asked + bm25(self.memory.text, terms(text))) * telling(text) ** 2 for text in query.choices.values()
        ]
        scores = np.column_stack(columns)
        column = int(scores.max(axis=0).argmax())
        return Answer(letters[column], "salience", self.memory.references([int(scores[:, column].argmax())]))
