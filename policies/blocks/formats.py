"""Formats: one window as one line of context, and how lines are fitted under a cap.

A record is one line, and lines are joined by a blank line: readers take each such block as one passage.
"""

from __future__ import annotations

from collections.abc import Iterable

from policies.blocks.events import EventMemory
from policies.blocks.memory import Memory
from policies.blocks.timefmt import stamp
from policies.contract import Query

SEPARATOR = "\n\n"
HEAD = 160
"""Characters of an EVENT in a headline. Not given by the source: about two caption lines."""


def one_line(text: str) -> str:
    """``text`` with every run of white space, line breaks included, as one space."""
    return " ".join(text.split())


def asked_at(query: Query) -> str:
    """When the question is put, without which "how long ago" cannot be read."""
    return f"asked_at: {stamp(query.time)}"


def raw(memory: Memory, position: int) -> str:
    """The window's captions and transcript as they are, after its time."""
    return f"[{_time(memory, position)}] {one_line(memory.windows.text(position))}"


def five_fields(memory: EventMemory, position: int) -> str:
    """The record's time and its fields that are not empty."""
    record = memory.records[position]
    fields = {
        "EVENT": record.event,
        "PEOPLE": ", ".join(memory.names(record)),
        "OBJECTS": record.objects,
        "PLACE": record.place,
        "DIALOGUE": record.dialogue,
    }
    return " | ".join([f"[{_time(memory, position)}]", *(f"{name}: {text}" for name, text in fields.items() if text)])


def headline(memory: EventMemory, position: int) -> str:
    """One short line: time, the first of EVENT, PEOPLE."""
    event = memory.records[position].event
    head = event if len(event) <= HEAD else event[:HEAD].rsplit(" ", 1)[0] + " ..."
    return " | ".join(filter(None, [f"[{_time(memory, position)}] {head}", ", ".join(memory.people(position))]))


def _time(memory: Memory, position: int) -> str:
    return stamp(memory.windows.start(position))


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
