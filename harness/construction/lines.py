"""What a caption file or a transcript is made of, and what is said about reading it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line of text with its time, in seconds on the video's axis."""

    start: float
    end: float
    text: str
    spoken: bool
    """A line of the transcript; else a caption."""
    speaker: str = ""
    """Empty where unknown, and for captions."""


@dataclass(frozen=True, slots=True)
class Read:
    """The lines of one file in order of time, and a note for everything that was mended or left out."""

    lines: tuple[Line, ...]
    notes: tuple[str, ...] = ()
