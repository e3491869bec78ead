"""Temporal delta specialist: how long ago did it last happen? The most recent anchor's time, mapped to the choices.

Given: for relative-time questions it finds the most recent matching event anchor, takes the time from there to the
query time, and maps it to a choice without a model call; it abstains where its evidence does not suffice.
"""

from __future__ import annotations

import re

import numpy as np

from policies.blocks.events import EventMemory
from policies.blocks.fields import question_weights
from policies.blocks.route import Direct
from policies.blocks.select import latest
from policies.blocks.times import choose, read_time
from policies.blocks.tokens import content
from policies.contract import Query

ROUTE = "temporal_delta"
TIMES = 3
"""Choices that must read as times (all, where there are fewer). Not given: a question of when, not of what."""
TERMS = 2
"""Terms of the question that an anchor must hold (all, where there are fewer). Not given: one word is chance."""
ACTION = ("EVENT", "OBJECTS")
"""Fields of which at least one must hold such a term. Not given: what only was talked about did not happen."""

_TRIGGER = re.compile(
    r"\bwhen (was|did)\b.*\blast\b|\blast time\b|\bhow long ago\b|\bhow many (minutes|hours|days) ago\b", re.IGNORECASE
)
"""Relative-time questions. The kind is given, the patterns are not."""
_TIME_WORDS = frozenset(["last", "time", "ago", "long", "many", "minute", "hour", "day", "now", "just", "happen"])
"""Terms that name the form of such a question, not what happened."""


def temporal_delta(memory: EventMemory, query: Query) -> Direct | None:
    """The choice that names the time since the last matching record, or None."""
    if not _TRIGGER.search(query.question):
        return None
    times = {letter: read_time(text, query.time) for letter, text in query.choices.items()}
    if sum(when is not None for when in times.values()) < min(TIMES, len(times)):
        return None
    anchor = _anchor(memory, query)
    if anchor is None:
        return None
    letter = choose(times, memory.windows.start(anchor), query.time)
    return None if letter is None else Direct(letter, ROUTE, (anchor,))


def _anchor(memory: EventMemory, query: Query) -> int | None:
    """The latest record that matches strongly what is asked about."""
    subject = content(query.question) - _TIME_WORDS
    if not subject or not len(memory):
        return None
    strength = memory.weighed(subject, question_weights(query.question))
    held = np.sum([memory.holds((term,)) for term in subject], axis=0)
    acted = memory.holds(subject, ACTION)
    strength[(held < min(TERMS, len(subject))) | ~acted] = 0
    found = latest(strength, 1)
    return found[0] if found else None
