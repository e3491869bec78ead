"""Import of LVBench: questions from its JSON Lines file, windows from captions that are given.

The benchmark publishes neither captions nor subtitles. ``time_reference`` goes to the gold file alone; ``type`` of a
video stratifies the splits and reaches no policy; ``video_info`` is not read.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.construction.decoding import read_text
from harness.data.egolife_text import clean
from harness.data.native import DataError, Gold, first_problem
from harness.data.notes import few
from harness.data.whole_videos import Asked, AskedVideo, Benchmark, identical, write_benchmark
from harness.data.write import Written

FILE = "video_info.meta.jsonl"
TYPES = {
    "entity recognition": "entity recognition",
    "event understanding": "event understanding",
    "key information retrieval": "key information",
    "temporal grounding": "temporal grounding",
    "reasoning": "reasoning",
    "summarization": "summarization",
}
"""The published question types in the order in which they are joined, one of them shortened: a label has 60 letters."""
MOST_LABEL = 60
OPTION = re.compile(r"(?:^|\n)[^\S\n]*\(([A-J])\)[^\S\n]*")
CLOCK = r"(?:(\d{1,2}):)?(\d{1,3}):(\d{2})"
REFERENCE = re.compile(rf"\s*{CLOCK}\s*[-–~]\s*{CLOCK}\s*")


class Item(BaseModel):
    """One question; its options stand in its text."""

    model_config = ConfigDict(strict=True, frozen=True)
    uid: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,40}$")] | Annotated[int, Field(ge=0)]
    question: str
    answer: Annotated[str, Field(max_length=10)]
    question_type: Annotated[list[Annotated[str, Field(max_length=60)]], Field(max_length=20)]
    time_reference: Annotated[str, Field(max_length=100)] = ""


class Line(BaseModel):
    """One video."""

    model_config = ConfigDict(strict=True, frozen=True)
    key: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]
    type: str
    qa: list[Item]


LINE = TypeAdapter(Line)


def import_lvbench(source: Path, out: Path, captions: Path | None = None, seed: int = 0) -> Written:
    """Read ``source`` (the file, or the folder that holds it) and write the new data set ``out``.

    Args:
        source: ``video_info.meta.jsonl`` or its folder.
        out: a folder that does not exist yet.
        captions: a folder of captions (see ``harness.data.material``), named by the videos' YouTube ids; needed.
        seed: of the splits.

    Raises ``DataError`` with one line: files missing or of another shape, no video with captions.
    """
    file = source / FILE if source.is_dir() else source
    if not file.is_file():
        raise DataError(f"{file}: not found; give {FILE}, or the folder that holds it")
    notes: list[str] = []
    videos = [video(line, notes) for line in read_lines(file)]
    if not any(video.questions for video in videos):
        raise DataError(
            f"{file}: no question can be read ({notes[0] if notes else 'it holds none'}); check the download"
        )
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    benchmark = Benchmark(
        name="lvbench",
        origin={"importer": "lvbench", "version": 1, "questions_sha256": digest},
        videos=[video for video in videos if video.questions],
        notes=few(notes),
        missing="LVBench publishes neither captions nor subtitles",
    )
    return write_benchmark(benchmark, [captions] if captions else [], [], out, seed)


def read_lines(file: Path) -> list[Line]:
    """The videos of the file. Raises ``DataError`` that names the line."""
    lines: list[Line] = []
    for number, text in enumerate(read_text(file).text.split("\n"), 1):
        if text.strip():
            try:
                lines.append(LINE.validate_json(text))
            except ValidationError as error:
                problem = first_problem(error)
                raise DataError(f"{file}:{number}: not the published format: {problem}; check the download") from None
    keys = [line.key for line in lines]
    if len(set(keys)) < len(keys):
        raise DataError(f"{file}: a video is there twice; check the download")
    return lines


def video(line: Line, notes: list[str]) -> AskedVideo:
    """One video's questions; those that cannot be read are left out, with a note."""
    asked = [one for item in line.qa if (one := question(item, notes)) is not None]
    return AskedVideo(f"v-{line.key}", (line.key,), line.type, tuple(asked))


def question(item: Item, notes: list[str]) -> Asked | None:
    """One question, its options cut out of its text."""
    text, *parts = OPTION.split(item.question)
    letters = parts[::2]
    choices = {letter: clean(part) for letter, part in zip(letters, parts[1::2], strict=True)}
    answer = item.answer.strip().strip("().").upper()
    if letters != list("ABCDEFGHIJ"[: len(letters)]) or len(letters) < 2 or answer not in choices or not text.strip():
        notes.append(f"question {item.uid}: no options (A), (B), ... with the answer among them; left out")
        return None
    asked = Asked(f"q-{item.uid}", label(item.question_type), clean(text), choices, Gold(answer, oracle(item, notes)))
    if identical(asked):
        notes.append(f"question {item.uid} has identical choices; kept as published")
    return asked


def label(types: Sequence[str]) -> str:
    """One label of several types: known ones in a fixed order, joined by " & ", as far as the label's length allows."""
    known = [short for name, short in TYPES.items() if name in {" ".join(text.lower().split()) for text in types}]
    while len(" & ".join(known)) > MOST_LABEL:
        known.pop()
    return " & ".join(known) or "other"


def oracle(item: Item, notes: list[str]) -> tuple[tuple[float, float], ...]:
    """``MM:SS-MM:SS`` or ``HH:MM:SS-HH:MM:SS`` as an interval in seconds; nothing, with a note, where it is neither."""
    match = REFERENCE.fullmatch(item.time_reference)
    if match is None:
        if item.time_reference.strip():
            notes.append(f"question {item.uid}: its time reference cannot be read; it has no oracle time")
        return ()
    parts = [int(part or 0) for part in match.groups()]
    first, last = (hours * 3_600.0 + minutes * 60 + seconds for hours, minutes, seconds in (parts[:3], parts[3:]))
    if last < first:
        notes.append(f"question {item.uid}: its time reference ends before it starts; the ends are exchanged")
    return ((min(first, last), max(first, last)),)
