"""Times as EgoLife and what follows it write them: ``HHMMSSFF`` on a day, in seconds on the video's axis."""

from __future__ import annotations

DAY = 86_400
FRAMES_PER_SECOND = 20


def clock(time: str) -> float:
    """Seconds since midnight of HHMMSSFF."""
    return digits(int(time[:6])) + int(time[6:8]) / FRAMES_PER_SECOND


def digits(time: int) -> float:
    """Seconds since midnight of the digits HHMMSS, whose leading zeros are lost."""
    return time // 10_000 * 3600.0 + time // 100 % 100 * 60 + time % 100


def day_start(date: str) -> float:
    """Seconds at which a day such as ``DAY2`` (in any case) begins on the video's axis."""
    return (int(date[3:]) - 1) * float(DAY)


def at(time: int, clip_start: float) -> float:
    """Seconds on the video's axis of HHMMSS in a clip; a clip may run past midnight."""
    seconds = clip_start // DAY * DAY + digits(time)
    return seconds + DAY if seconds < clip_start - DAY / 2 else seconds
