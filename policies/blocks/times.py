"""Answer choices that are times: "last night", "yesterday at noon", "about 3 hours ago", as spans or as durations.

Our own grammar first, then ``dateparser`` relative to the query time. Neither is given by the source, which only says
that the time since the anchor is mapped to the choices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeAlias

from policies.blocks.timefmt import DAY_SECONDS

HOUR = 3_600.0
PARTS: Mapping[str, tuple[float, float]] = {
    "morning": (6, 11),
    "noon": (11, 14),
    "midday": (11, 14),
    "afternoon": (14, 18),
    "evening": (18, 24),
    "night": (18, 24),
    "tonight": (18, 24),
}
"""Hours of the parts of a day. Not given by the source: as the words are used, without gaps from 6 to 24."""
LAST_NIGHT = (18, 27)
"""Hours of "last night", counted from yesterday's midnight. Not given by the source: until people are in bed."""
TOLERANCE = 0.25
"""Share of a duration by which the time since may differ from it. Not given by the source: "about 3" is no 4."""
LONGEST = 60
"""Characters of a choice that is read as a time; a longer one is a sentence."""

_UNITS = {"second": 1.0, "minute": 60.0, "min": 60.0, "hour": HOUR, "day": 24 * HOUR, "week": 7 * 24 * HOUR}


def _list(words: str) -> list[str]:
    return words.split()


_NUMBERS = {
    word: number
    for number, word in enumerate(
        _list("one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen"), 1
    )
} | {"a": 1, "an": 1, "twenty": 20, "thirty": 30, "forty": 40, "fifty": 50}
_ROUGHLY = frozenset(_list("about around approximately roughly nearly almost"))
_FILLERS = frozenset(_list("the at in on of and"))
_DAYS = frozenset(_list("yesterday today this last before day"))
_AMOUNT = re.compile(
    rf"(?P<half>half (?:an? )?)?(?P<number>\d+(?:\.\d+)?|{'|'.join(_NUMBERS)})?(?P<more> and a half)? ?"
    rf"(?P<unit>{'|'.join(_UNITS)})s?(?P<after> and a half)?"
)
_TIMELIKE = re.compile(r"\bago\b|\byesterday\b|\btoday\b|\d ?[ap]\.?m\b|\d:\d\d")
_WORD = re.compile(r"[a-z]+|\d+(?:\.\d+)?")
_NO_DATE = re.compile(r"\b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b|\b(?:january|february|march|april|may|june|july|"
                      r"august|september|october|november|december)\b")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Span:
    """From ``low`` up to ``high``, seconds on the video's axis."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Ago:
    """A duration before the query time, in seconds."""

    seconds: float


When: TypeAlias = Span | Ago


def read_time(text: str, asked_at: float) -> When | None:
    """The time that a whole choice names, seen from ``asked_at`` (seconds); None where it names something else."""
    words = [word for word in _WORD.findall(text.casefold()) if word not in _ROUGHLY]
    if not words or len(text) > LONGEST:
        return None
    return _duration(" ".join(words)) or _part(words, asked_at) or _foreign(text.casefold(), asked_at)


def _duration(line: str) -> Ago | None:
    """ "3 hours ago", "an hour and a half ago", "2 days 3 hours ago", "half a day ago"."""
    if line == "just now":
        return Ago(0.0)
    body = line.removesuffix(" ago")
    if body == line:
        return None
    total, at = 0.0, 0
    for match in _AMOUNT.finditer(body):
        if not match["number"] and not match["half"]:
            return None
        if body[at : match.start()].strip() not in ("", "and"):
            return None
        number = match["number"] or "1"
        amount = float(number) if number[0].isdigit() else float(_NUMBERS[number])
        amount = amount / 2 if match["half"] else amount + (0.5 if match["more"] or match["after"] else 0)
        total += amount * _UNITS[match["unit"]]
        at = match.end()
    return Ago(total) if at == len(body) and total > 0 else None


def _part(words: list[str], asked_at: float) -> Span | None:
    """ "yesterday afternoon", "the night before yesterday", "this morning", "last night", "today"."""
    if not set(words) <= _FILLERS | _DAYS | PARTS.keys():
        return None
    parts = [word for word in words if word in PARTS]
    today = asked_at // DAY_SECONDS * DAY_SECONDS
    if "yesterday" in words:
        day = today - DAY_SECONDS * (2 if "before" in words else 1)
    elif {"today", "this", "tonight"} & set(words):
        day = today
    elif "last" in words and parts == ["night"]:
        return Span(today - DAY_SECONDS + LAST_NIGHT[0] * HOUR, today - DAY_SECONDS + LAST_NIGHT[1] * HOUR)
    else:
        return None
    low, high = PARTS[parts[0]] if parts else (0, 24)
    return Span(day + low * HOUR, day + high * HOUR) if len(parts) < 2 else None


def _foreign(text: str, asked_at: float) -> Ago | None:
    """What ``dateparser`` makes of it: "yesterday 3 pm". Days of a calendar mean nothing on a video's axis."""
    if _NO_DATE.search(text) or not _TIMELIKE.search(text):
        return None
    from dateparser import parse  # dear to import, and seldom needed

    try:
        base = datetime(2001, 1, 1) + timedelta(seconds=asked_at)
        known = {"RELATIVE_BASE": base, "PREFER_DATES_FROM": "past", "PARSERS": ["relative-time", "absolute-time"]}
        found = parse(text, languages=["en"], settings=known)
    except (ValueError, OverflowError):  # a time beyond what calendars reach
        return None
    if found is None or found.tzinfo is not None:
        return None
    since = (base - found).total_seconds()
    return Ago(since) if 0 <= since <= asked_at else None


def choose(choices: Mapping[str, When | None], moment: float, asked_at: float) -> str | None:
    """The one choice that ``moment`` fits, all in seconds: a span that holds it, or the nearest duration within
    ``TOLERANCE``. None where it fits no choice or several."""
    since = asked_at - moment
    fitting = [letter for letter, when in choices.items() if isinstance(when, Span) and when.low <= moment < when.high]
    off = {letter: abs(since - when.seconds) for letter, when in choices.items() if isinstance(when, Ago)}
    for letter, when in choices.items():
        if isinstance(when, Ago) and off[letter] == min(off.values()) and off[letter] <= TOLERANCE * when.seconds:
            fitting.append(letter)
    return fitting[0] if len(fitting) == 1 else None
