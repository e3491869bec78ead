"""SRT and WebVTT as they are found: cues are told by their time line alone, whatever stands between them.

So blank lines may be missing or stand inside a cue, numbers may be missing or wrong, cues may stand in any order and
overlap, with a comma or a point in their times. A time line that cannot be read is an error: its text would be lost.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

from harness.construction.decoding import one_line, read_text
from harness.construction.lines import Line, Read
from harness.errors import UserError

_TIME = r"(?:(\d{1,4}):)?(\d{1,2}):(\d{1,2})(?:[.,:](\d{1,3}))?"
ARROW = r"-{1,3}\s?>|=>|→|[–—]>"
CUE = re.compile(rf"\s*{_TIME}\s*(?:{ARROW})\s*{_TIME}(?:\s+(.*))?\s*", re.ASCII)
LIKE_A_CUE = re.compile(rf"\s*\d{{1,4}}\s?[:：].{{0,40}}(?:{ARROW})|(?=.*-->).*(?:\d\s?[:：]|[:：]\s?\d)", re.ASCII)
"""A line that is meant as a cue's times, whether they can be read or not."""
SETTINGS = re.compile(
    r"(?:(?:align|line|position|size|vertical|region):\S+|[XY][12]:\d+)(?:\s+(?:(?:align|line|position|size"
    r"|vertical|region):\S+|[XY][12]:\d+))*"
)
BLOCK = re.compile(r"(NOTE|STYLE|REGION)(\s|$)")
NUMBER = re.compile(r"\s*\d{1,7}\s*", re.ASCII)
VOICE = re.compile(r"<v(?:\.[^ \t>]{0,60})*[ \t]+([^>]{1,120})>")
TAG = re.compile(
    r"</?(?:[ibusvc]|font|ruby|rt|lang)(?:[ .][^<>]{0,200})?>|<\d[\d:.]{0,20}>|\{\\[^{}]{0,100}\}", re.IGNORECASE
)
SPEAKER = re.compile(
    r"(?:[-–—]\s*)?(?:>>\s*)?[\[(]?("
    r"(?i:speaker|spk|说话人|发言人)[ _#-]?\d{1,3}"  # as diarisation names them
    r"|[^\W\d_a-z][^\W_]{0,19}(?:[ .'-]{1,2}[^\W\d_a-z][^\W_]{0,19}){0,3}\.?(?: \d{1,2})?"
    r")[\])]?\s?[:：](?!//|\d)\s*"
)
"""A name of up to four capitalised words (or without case, as in Chinese) before a colon."""
FULL_WIDTH = str.maketrans("０１２３４５６７８９：，．\u00a0\u3000", "0123456789:,.  ")


@dataclass(frozen=True, slots=True)
class _Cue:
    start: float
    end: float
    text: list[str]


def read_transcript(file: Path, beginning: float, encoding: str | None = None) -> Read:
    """The lines of an SRT or VTT file; its times count from ``beginning`` (seconds on the axis).

    Lines are sorted by time. ``Name: text``, ``- Name: text`` and ``<v Name>text`` name the speaker of a line and of
    those after it in its cue. Raises UserError: unreadable times, no cue, no text.
    """
    decoded = read_text(file, encoding)
    notes = [f"{file}: read as {decoded.encoding}"] if decoded.encoding else []
    cues = list(_cues(decoded.text.split("\n"), file, notes))
    if not cues:
        raise UserError(f"{file}: holds no cue with a time (00:00:01,000 --> 00:00:02,000); give an SRT or VTT file")
    if any(after.start < before.start for before, after in pairwise(cues)):
        notes.append(f"{file}: cues out of order are put in order")
    lines = [line for cue in cues for line in _lines(cue, beginning, file)]
    silent = sum(1 for cue in cues if not any(map(str.strip, cue.text)))
    if silent:
        notes.append(f"{file}: {silent} cue(s) without text are left out")
    if not lines:
        raise UserError(f"{file}: none of its {len(cues)} cues holds text; give a transcript with text")
    lines = _without_repeats(sorted(lines, key=lambda line: line.start))
    return Read(tuple(sorted(lines, key=lambda line: (line.start, line.end))), tuple(notes))


def _cues(lines: Sequence[str], file: Path, notes: list[str]) -> Iterator[_Cue]:
    """Each cue is what stands between its time line and the next one's, without the next one's number or name."""
    marks = _marks(lines, file)
    web = lines[0].startswith("WEBVTT")
    numbered = all(at and NUMBER.fullmatch(lines[at - 1]) for at, _ in marks)
    turned = 0
    for place, (at, match) in enumerate(marks):
        last = place + 1 == len(marks)
        text = list(lines[at + 1 : len(lines) if last else marks[place + 1][0]])
        if text and not last:
            apart = len(text) > 1 and not text[-2].strip()
            above = int(lines[at - 1]) if at and NUMBER.fullmatch(lines[at - 1]) else place + 1
            number = int(text[-1]) if NUMBER.fullmatch(text[-1]) else None
            if (number is not None and (apart or numbered or number == above + 1)) or (web and apart):
                text.pop()
        start, end = _times(match)
        turned += end < start
        yield _Cue(start, max(start, end), [_beside(match), *(_without_blocks(text) if web else text)])
    if turned:
        notes.append(f"{file}: {turned} cue(s) end before they start; each is taken as the moment of its start")
    if marks and not web:
        stray = sum(1 for line in lines[: marks[0][0]] if line.strip() and not NUMBER.fullmatch(line))
        if stray:
            notes.append(f"{file}: {stray} line(s) before the first cue are left out")


def _marks(lines: Sequence[str], file: Path) -> list[tuple[int, re.Match[str]]]:
    """The time lines. Raises UserError where one cannot be read."""
    marks: list[tuple[int, re.Match[str]]] = []
    broken: list[int] = []
    for at, line in enumerate(lines):
        match = CUE.fullmatch(line) or CUE.fullmatch(line.translate(FULL_WIDTH))
        if match is not None and all(int(match[part]) <= 60 for part in (2, 3, 6, 7)):
            marks.append((at, match))
        elif LIKE_A_CUE.match(line):
            broken.append(at + 1)
    if broken:
        more = f" (and {len(broken) - 1} more like it)" if len(broken) > 1 else ""
        raise UserError(
            f"{file}:{broken[0]}: a cue's times cannot be read{more}; write them as 00:00:01,000 --> 00:00:02,000"
        )
    return marks


def _times(match: re.Match[str]) -> tuple[float, float]:
    """Start and end in seconds."""
    start, end = (
        int(hours or 0) * 3_600 + int(minutes) * 60 + int(seconds) + float(f"0.{fraction or 0}")
        for hours, minutes, seconds, fraction in (match.groups()[:4], match.groups()[4:8])
    )
    return start, end


def _beside(match: re.Match[str]) -> str:
    """Text on the time line itself, where it is not WebVTT's settings."""
    rest = (match[9] or "").strip()
    return "" if SETTINGS.fullmatch(rest) else rest


def _without_blocks(lines: Sequence[str]) -> Iterator[str]:
    """WebVTT's lines without its comments, styles and regions, which run to the next blank line."""
    inside = False
    for above, line in zip(["-", *lines], lines, strict=False):
        inside = bool(line.strip()) and (inside or (not above.strip() and BLOCK.match(line) is not None))
        if not inside:
            yield line


def _lines(cue: _Cue, beginning: float, file: Path) -> Iterator[Line]:
    """A cue's text by speaker."""
    said: list[tuple[str, list[str]]] = []
    for raw in cue.text:
        for speaker, text in _voices(raw):
            clean = one_line(html.unescape(TAG.sub("", text)), str(file))
            if not speaker and (match := SPEAKER.match(clean)):
                speaker, clean = match[1], clean[match.end() :]
            if not clean:
                continue
            if speaker or not said:
                said.append((one_line(html.unescape(speaker), str(file)), [clean]))
            else:
                said[-1][1].append(clean)
    for speaker, texts in said:
        yield Line(beginning + cue.start, beginning + cue.end, " ".join(texts), True, speaker)


def _voices(raw: str) -> Iterator[tuple[str, str]]:
    """A line of WebVTT by its ``<v Name>`` tags."""
    before, *rest = VOICE.split(raw)
    yield "", before
    yield from zip(rest[::2], rest[1::2], strict=True)


def _without_repeats(lines: Iterable[Line]) -> list[Line]:
    """Lines that say the same as one that has not ended yet are joined with it: overlapping cues repeat it."""
    kept: list[Line] = []
    last: dict[tuple[str, str], int] = {}
    for line in lines:
        place = last.get((line.speaker, line.text))
        if place is not None and line.start < kept[place].end:
            kept[place] = replace(kept[place], end=max(kept[place].end, line.end))
        else:
            last[line.speaker, line.text] = len(kept)
            kept.append(line)
    return kept
