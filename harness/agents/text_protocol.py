"""Tool calls as text, for models without a tool interface.

    <call edit>
    path: policy.py
    <<<<<<< SEARCH
    old lines
    =======
    new lines
    >>>>>>> REPLACE
    </call>

Arguments are ``name: value`` lines; a name without a value takes all lines that follow. Tags and markers stand on lines
of their own. Read in one pass over the lines, nothing is guessed: a call that is not closed is an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

OPENING = re.compile(r"<call\s+([a-z_]{1,40})\s*>")
CLOSING = "</call>"
ARGUMENT = re.compile(r"([a-z_]{1,40}):(.*)")
SEARCH, MIDDLE, REPLACE = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
MOST_CALLS = 64
"""Calls of one reply that are read."""


class ProtocolError(ValueError):
    """The reply's calls cannot be read; one line that goes back to the model."""


@dataclass(frozen=True, slots=True)
class TextCall:
    """One call."""

    name: str
    arguments: dict[str, Any]


def read_calls(text: str) -> list[TextCall]:
    """Every call of a reply in order; an edit with several SEARCH blocks is as many calls. Raises ProtocolError."""
    found: list[TextCall] = []
    name, body = "", list[str]()
    for line in text.split("\n"):
        opening = OPENING.fullmatch(line.strip())
        if not name and opening:
            name, body = opening[1], []
        elif name and line.strip() == CLOSING:
            found += _calls(name, body)
            name = ""
        elif name:
            body.append(line.removesuffix("\r"))
        if len(found) > MOST_CALLS:
            raise ProtocolError(f"more than {MOST_CALLS} calls in one reply")
    if name:
        raise ProtocolError(f"<call {name}> is not closed: {CLOSING} is missing, so nothing of the reply was done")
    return found


def _calls(name: str, body: list[str]) -> Iterator[TextCall]:
    arguments: dict[str, Any] = {}
    at = 0
    while at < len(body):
        line = body[at]
        if line.strip() == SEARCH:
            break
        match = ARGUMENT.fullmatch(line.strip())
        if match is None and line.strip():
            raise ProtocolError(f"{name}: line {at + 1} of the call is neither `name: value` nor {SEARCH}")
        at += 1
        if match is None:
            continue
        if not (value := match[2].strip()):
            arguments[match[1]] = "\n".join(body[at:])
            at = len(body)
        else:
            arguments[match[1]] = value
    edits = list(_edits(name, body[at:]))
    if not edits:
        yield TextCall(name, arguments)
    for search, replace in edits:
        yield TextCall(name, {**arguments, "search": search, "replace": replace})


def _edits(name: str, lines: list[str]) -> Iterator[tuple[str, str]]:
    parts: list[list[str]] = []
    for line in lines:
        mark = line.strip()
        if mark == SEARCH and not parts:
            parts = [[]]
        elif mark == MIDDLE and len(parts) == 1:
            parts.append([])
        elif mark == REPLACE and len(parts) == 2:
            yield "\n".join(parts[0]), "\n".join(parts[1])
            parts = []
        elif parts:
            parts[-1].append(line)
        elif mark:
            raise ProtocolError(f"{name}: text after {REPLACE}")
    if parts:
        raise ProtocolError(f"{name}: {SEARCH} needs a line {MIDDLE} and a line {REPLACE} after it")
