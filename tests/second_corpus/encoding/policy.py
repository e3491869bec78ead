"""Records scored by fields, with the usual sinusoidal encoding so that equal scores do not collapse."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.events import EventMemory
from policies.blocks.fields import fields_choices, fields_question
from policies.contract import Answer, Query, Setup, Window

OMEGA = 0.6
RATE = 0.49
AMPLITUDE = 2.5


def encoding(size: int, label: str) -> np.ndarray:
    """One value per slot; the phase depends on the label."""
    return AMPLITUDE * np.cos(OMEGA * np.arange(size) + RATE * len(label))


class Policy:
    """Fields of question and option in one record, plus the encoding."""

    def __init__(self, setup: Setup) -> None:
        self.memory = EventMemory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Make records of the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """The slot with the highest encoded score."""
        letters = list(query.choices)
        if not len(self.memory):
            return Answer(letters[0], "empty")
        chosen = fields_choices(self.memory, query)
        scores = (fields_question(self.memory, query)[:, None] + chosen) * (chosen > 0)
        column = int((scores.max(axis=0) + encoding(len(letters), query.type)).argmax())
        return Answer(letters[column], "encoded", self.memory.references([int(scores[:, column].argmax())]))
