"""Formats: one window as one line of context, and how lines are fitted under a cap.

A record is one line, and lines are joined by a blank line: readers take each such block as one passage.
"""

from __future__ import annotations

from collections.abc import Iterable

from policies.blocks.memory import Memory, window_text
from policies.blocks.timefmt import stamp

SEPARATOR = "\n\n"


def one_line(text: str) -> str:
    """``text`` with every run of white space, line breaks included, as one space."""
    return " ".join(text.split())


def raw(memory: Memory, position: int) -> str:
    """The window's captions and transcript as they are, after its time."""
    window = memory.windows[position]
    return f"[{stamp(window.start)}] {one_line(window_text(window))}"


def fit(items: Iterable[tuple[int, str]], limit: int) -> list[tuple[int, str]]:
    """The (position, text) items that fit in ``limit`` characters once joined; an item is kept whole or not at all."""
    kept: list[tuple[int, str]] = []
    left = limit
    for position, text in items:
        need = len(text) + (len(SEPARATOR) if kept else 0)
        if need <= left:
            kept.append((position, text))
            left -= need
    return kept


def joined(items: Iterable[tuple[int, str]]) -> str:
    """The items' texts in order of time."""
    return SEPARATOR.join(text for _, text in sorted(items))
