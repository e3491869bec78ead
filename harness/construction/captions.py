"""Caption files: JSON, JSON Lines or plain text, with a time for every caption (docs/building.md shows the shapes)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.construction import axis
from harness.construction.axis import Moment
from harness.construction.decoding import one_line, parse_json, read_text
from harness.construction.lines import Line, Read
from harness.construction.windows import WINDOW
from harness.data.native import first_problem
from harness.errors import UserError

TIME = r"(?:day\d{1,5}[t ])?\d{1,5}:\d{2}(?::\d{2})?(?:[.,]\d{1,6})?"
STAMPED = re.compile(
    rf"\s*(?:\[\s*(?P<a>{TIME}|{axis.NUMBER})(?:\s*(?:-->|[-–—~])\s*(?P<b>{TIME}|{axis.NUMBER}))?\s*\]"
    rf"|(?P<c>{TIME})(?:\s*(?:-->|[-–—~])\s*(?P<d>{TIME}))?(?=[\s:：,;|]|$))\s*[:：,;|–—-]?\s*(?P<text>.*)",
    re.IGNORECASE | re.ASCII | re.DOTALL,
)


class Entry(BaseModel):
    """One caption, or with a speaker one line of a transcript; other fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")
    start: Moment
    end: Moment | None = None
    """Where it is missing: the next caption's start, a window's length after its own at the most."""
    text: Annotated[str | list[str], Field(validation_alias=AliasChoices("text", "caption"))]
    speaker: Annotated[str, Field(max_length=200)] | None = None


ENTRY = TypeAdapter(Entry)


def read_captions(file: Path, beginning: float, encoding: str | None = None) -> Read:
    """The lines of a caption file, in order of time; its times count from ``beginning`` unless they name a day.

    Raises UserError: another shape, a time that is none, no text in the whole file.
    """
    decoded = read_text(file, encoding)
    notes = [f"{file}: read as {decoded.encoding}"] if decoded.encoding else []
    readers = {".json": _from_json, ".jsonl": _from_lines}
    entries = list(readers.get(file.suffix.lower(), _from_text)(decoded.text, file))
    if not entries:
        raise UserError(f"{file}: holds no captions; give at least one, with start and text")
    timed: list[tuple[float, float | None, Entry]] = []
    for place, entry in entries:
        start = axis.seconds(entry.start, beginning)
        end = None if entry.end is None else axis.seconds(entry.end, beginning)
        if start is None or (end is None and entry.end is not None):
            raise UserError(f"{place}: a time is none; write {axis.FORMS}")
        if end is not None and end < start:
            raise UserError(f"{place}: ends at {entry.end!s}, before its start; correct the times")
        timed.append((start, end, entry))
    timed.sort(key=lambda item: item[0])
    lines, empty = _lines(timed, file)
    if not lines:
        raise UserError(f"{file}: all of its {empty} captions are empty; give captions with text")
    if empty:
        notes.append(f"{file}: {empty} empty caption(s) are left out")
    lines.sort(key=lambda line: (line.start, line.end))
    return Read(tuple(lines), tuple(notes))


def _lines(timed: Sequence[tuple[float, float | None, Entry]], file: Path) -> tuple[list[Line], int]:
    lines: list[Line] = []
    empty = 0
    following = [after[0] for _, after in pairwise(timed)] + [axis.MOST]
    for (start, end, entry), after in zip(timed, following, strict=True):
        until = min(after, start + WINDOW) if end is None else end
        texts = [one_line(t, str(file)) for t in ([entry.text] if isinstance(entry.text, str) else entry.text)]
        speaker = one_line(entry.speaker or "", str(file))
        lines += [Line(start, until, text, entry.speaker is not None, speaker) for text in texts if text]
        empty += not any(texts)
    return lines, empty


def _from_json(text: str, file: Path) -> Iterator[tuple[str, Entry]]:
    value = parse_json(text, str(file))
    listed = value.get("captions") if isinstance(value, dict) else value
    if not isinstance(listed, list):
        raise UserError(f'{file}: is neither a list of captions nor {{"captions": [...]}}; see docs/building.md')
    for number, item in enumerate(listed, 1):
        place = f"{file}: caption {number}"
        yield place, _entry(item, place)


def _from_lines(text: str, file: Path) -> Iterator[tuple[str, Entry]]:
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            place = f"{file}:{number}"
            yield place, _entry(parse_json(line, place), place)


def _from_text(text: str, file: Path) -> Iterator[tuple[str, Entry]]:
    """A time at the beginning of a line begins a caption; lines without one belong to the caption above."""
    found: list[tuple[str, str, str | None, list[str]]] = []
    for number, line in enumerate(text.split("\n"), 1):
        if match := STAMPED.fullmatch(line):
            start, end = match["a"] or match["c"], match["b"] or match["d"]
            found.append((f"{file}:{number}", start, end, [match["text"]]))
        elif line.strip() and not found:
            raise UserError(f"{file}:{number}: begins with no time; write 00:01:30 and then the caption")
        elif line.strip():
            found[-1][3].append(line)
    for place, start, end, texts in found:
        yield place, Entry(start=start, end=end, text="\n".join(texts))


def _entry(item: Any, place: str) -> Entry:
    try:
        return ENTRY.validate_python(item)
    except ValidationError as error:
        raise UserError(f"{place}: {first_problem(error)}; give start, end and text (docs/building.md)") from None
