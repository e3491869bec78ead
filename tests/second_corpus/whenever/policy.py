"""Questions of time are answered from the latest matching window's time; all others by reading captions."""

from __future__ import annotations

import re
from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import interleave, latest, top, top_each
from policies.contract import Answer, Asking, Query, Setup, Window

DAY = 86_400
DAYS_BACK = {
    "today": 0, "this": 0, "tonight": 0, "just": 0, "earlier": 0,
    "yesterday": 1, "last": 1,
    "day before yesterday": 2, "two days ago": 2, "three days ago": 3, "four days ago": 4, "a week ago": 7,
}  # fmt: skip
HOURS = {
    "dawn": (4.0, 7.0), "early": (5.0, 9.0), "breakfast": (6.0, 10.0), "morning": (5.0, 11.0),
    "forenoon": (9.0, 12.0), "noon": (11.0, 14.0), "midday": (11.0, 14.0), "lunch": (11.5, 14.0),
    "afternoon": (13.5, 18.0), "tea": (15.0, 17.0), "dusk": (17.0, 20.0), "dinner": (17.5, 20.5),
    "evening": (17.5, 23.0), "night": (20.0, 28.0), "midnight": (23.0, 25.0),
}  # fmt: skip
"""Hours of a day by word, as they are used in English."""
_WHEN = re.compile(r"^(when|at what time|on which day was|how long ago)\b", re.IGNORECASE)
SHARE = 0.8
EACH = 5


def days_back(text: str) -> int | None:
    """How many days before the question, by the longest phrase found."""
    found = [phrase for phrase in DAYS_BACK if re.search(rf"\b{phrase}\b", text)]
    return DAYS_BACK[max(found, key=len)] if found else None


def misfit(text: str, moment: float, now: float) -> float | None:
    """How far a moment lies from what a phrase of time says, in hours; None where it says no time."""
    back, part = days_back(text), next((span for word, span in HOURS.items() if re.search(rf"\b{word}\b", text)), None)
    if back is None and part is None:
        return None
    off = 0.0 if back is None else 24.0 * abs(int(now // DAY) - back - int(moment // DAY))
    if part is not None:
        hour = moment % DAY / 3_600
        off += max(part[0] - hour, hour - part[1], 0.0)
    return off


class Policy:
    """The time of the latest strong match, matched to phrases of time."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """By the clock where all options are times, else by reading."""
        asked = bm25_question(self.memory, query)
        if _WHEN.search(query.question):
            for at in latest(asked, 1, SHARE):
                moment = self.memory.windows.start(at)
                fits = {letter: misfit(text.lower(), moment, query.time) for letter, text in query.choices.items()}
                known = {letter: off for letter, off in fits.items() if off is not None}
                if len(known) == len(fits):
                    return Answer(min(known, key=known.__getitem__), "clock", self.memory.references([at]))
        both = bm25_choices(self.memory, query) + asked[:, None]
        head = asked_at(query) + SEPARATOR
        found = interleave([top(asked, EACH), *top_each(both, EACH)])
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "captions", evidence))
