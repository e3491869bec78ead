"""Times as people write them, in seconds: from a beginning, or absolute on the axis on which day 1, 00:00 is 0."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import Field

from harness.data.clip_times import DAY, clock

MOST = 1e9
"""Seconds that a time may have, as in the native format."""
Moment = Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)] | Annotated[str, Field(max_length=40)]
"""A time in a file: a number of seconds, or text in one of the ``FORMS``."""
DAY_TIME = (
    r"day(?P<day>[1-9]\d{0,4})[t ](?P<hours>[01]?\d|2[0-3]):(?P<minutes>[0-5]\d)"
    r"(?::(?P<seconds>[0-5]\d(?:[.,]\d{1,6})?))?"
)
CLOCK = r"(?:(\d{1,5}):)?([0-5]?\d):([0-5]?\d(?:[.,]\d{1,6})?)"
NUMBER = r"\d{1,10}(?:\.\d{1,6})?"
_ABSOLUTE = re.compile(DAY_TIME, re.IGNORECASE | re.ASCII)
_CLOCK = re.compile(CLOCK, re.ASCII)
_NUMBER = re.compile(NUMBER, re.ASCII)
_NAMED = re.compile(
    r"(?<![a-z])day(?P<day>[1-9]\d{0,4})(?:t|_(?:[a-z0-9]{1,20}_){0,4})"
    r"(?P<h>[01]\d|2[0-3])-?(?P<m>[0-5]\d)-?(?P<s>[0-5]\d)(?P<f>[01]\d)?(?!\d)",
    re.IGNORECASE | re.ASCII,
)
FORMS = "seconds, MM:SS, HH:MM:SS or DAY1T11:00:00"


def seconds(value: str | float, beginning: float) -> float | None:
    """The moment that ``value`` names, in seconds on the axis; None where it is no time.

    ``90.5``, ``01:30`` and ``11:00:00.5`` count from ``beginning``; ``DAY2T11:00:00`` is absolute.
    """
    if isinstance(value, str):
        found = _absolute(value.strip())
        if found is None:
            found = _relative(value.strip())
            found = None if found is None else found + beginning
    else:
        found = value + beginning
    return found if found is not None and 0 <= found <= MOST else None


def named(stem: str) -> float | None:
    """When a file begins that is named for it: ``DAY1_A1_JAKE_11093000``, ``walk-DAY2T11-00-00``; None without one."""
    match = _NAMED.search(stem)
    if match is None:
        return None
    return (int(match["day"]) - 1) * DAY + clock(f"{match['h']}{match['m']}{match['s']}{match['f'] or '00'}")


def shown(at: float) -> str:
    """``DAY1T00:01:30`` of a time on the axis."""
    day, rest = divmod(at, DAY)
    return f"DAY{int(day) + 1}T{int(rest) // 3_600:02d}:{int(rest) // 60 % 60:02d}:{int(rest) % 60:02d}"


def _absolute(text: str) -> float | None:
    match = _ABSOLUTE.fullmatch(text)
    if match is None:
        return None
    since_midnight = int(match["hours"]) * 3_600 + int(match["minutes"]) * 60 + _decimal(match["seconds"] or "0")
    return (int(match["day"]) - 1) * DAY + since_midnight


def _relative(text: str) -> float | None:
    if _NUMBER.fullmatch(text):
        return float(text)
    match = _CLOCK.fullmatch(text)
    return int(match[1] or 0) * 3_600 + int(match[2]) * 60 + _decimal(match[3]) if match else None


def _decimal(text: str) -> float:
    return float(text.replace(",", "."))
