"""Times for people and models: ``DAY2 09:05`` on the video's own axis."""

from __future__ import annotations

DAY_SECONDS = 86_400


def stamp(seconds: float) -> str:
    """``DAYn HH:MM`` of a time in seconds, where day 1, 00:00 is 0."""
    day, rest = divmod(int(seconds), DAY_SECONDS)
    return f"DAY{day + 1} {rest // 3_600:02d}:{rest % 3_600 // 60:02d}"
