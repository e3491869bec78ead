"""Frequency aggregator: which choice recurs? Support added up over distinct times, answered when the lead is clear.

Given: for questions of recurring behaviour it aggregates support counts across distinct timestamps, and answers
directly only when the leading choice has a clear margin over the others.
"""

from __future__ import annotations

import re

import numpy as np

from policies.blocks.events import EventMemory
from policies.blocks.recency import ranked
from policies.blocks.route import Direct
from policies.blocks.scoring import Scored
from policies.blocks.support import leader
from policies.contract import Query

ROUTE = "frequency"
LEAST = 3
RATIO = 2.0
LEAD = 2
"""The clear margin: n1 >= 3, n1 >= 2 n2, n1 - n2 >= 2. Not given by the source: a habit is seen three times, and chance
mentions of another choice stay below half of it."""
SHOWN = 16
"""Records given as evidence. Not given: enough to see a habit."""

_TRIGGER = re.compile(
    r"\b(usual|usually|often|most often|frequently|every day|habit|habits|how many times)\b", re.IGNORECASE
)
"""Recurring-behaviour questions. The kind is given, the words are not; a question-type label alone is none."""
_NUMBER = re.compile(r"^\W*(\d+|once|twice|one|two|three|four|five|six|seven|eight|nine|ten)\b", re.IGNORECASE)


def frequency(memory: EventMemory, query: Query, scored: Scored) -> Direct | None:
    """The choice that clearly recurs together with what is asked, or None."""
    if not _TRIGGER.search(query.question) or any(map(_NUMBER.match, query.choices.values())):
        return None  # a number of times is no thing that records could mention
    starts = memory.windows.starts()
    shared = [scored.asked[matches.positions] > 0 for matches in scored.choices]
    counts = [
        len(np.unique(starts[matches.positions[both]])) for matches, both in zip(scored.choices, shared, strict=True)
    ]
    column = leader(counts, LEAST, RATIO, LEAD)
    if column is None:
        return None
    matches, both = scored.choices[column], shared[column]
    best = ranked(matches.total[both], SHOWN, scored.later, len(memory), matches.positions[both])
    return Direct(list(query.choices)[column], ROUTE, tuple(at for at, _ in best))
