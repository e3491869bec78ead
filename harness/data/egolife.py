"""Import of the published EgoLifeQA files (docs/data.md says what is kept, changed and left out).

Times become seconds on one axis: ``(day - 1) * 86400`` plus the wall clock; the last two digits of ``HHMMSSFF`` count
frames at 20 a second. Only the fields named in ``QaRow`` are ever read, and of these ``target_time`` and ``answer`` go
to the gold file alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from harness.data.egolife_text import clean, clock, day_start, parse, read_stream
from harness.data.native import DataError, Gold, Question
from harness.data.write import DatasetParts, Written, write

SPLIT_OF_DAY = {
    1: "development",
    2: "development",
    3: "development",
    4: "validation",
    5: "validation",
    6: "test",
    7: "test",
}
Date = Annotated[str, Field(pattern=r"^(?i:day)[1-7]$")]


class QueryTime(BaseModel):
    """When a question is asked. Some editions give a range; the later end counts."""

    model_config = ConfigDict(strict=True, frozen=True)
    date: Date
    time: Annotated[str, Field(pattern=r"^\d{8}(-\d{8})?$")]


class TargetTime(BaseModel):
    """Where the evidence lies, in one of five shapes (see ``moments``)."""

    model_config = ConfigDict(strict=True, frozen=True)
    date: Date
    time: Annotated[str, Field(pattern=r"^\d{8}(?i:day[1-7]_\d{8})*$")] | None = None
    time_list: Annotated[list[Annotated[str, Field(pattern=r"^\d{8}$")]], Field(max_length=100)] | None = None


class QaRow(BaseModel):
    """What is read of a question; the other published fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")
    ID: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,20}$")]
    query_time: QueryTime
    type: Annotated[str, Field(pattern=r"^[A-Za-z]{1,40}$")]
    question: str
    choice_a: str
    choice_b: str
    choice_c: str
    choice_d: str
    answer: Literal["A", "B", "C", "D"]
    target_time: TargetTime


QA_ROWS = TypeAdapter(list[QaRow])


def import_egolife(source: Path, out: Path, subject: str = "A1_JAKE") -> Written:
    """Read ``source`` (with EgoLifeQA and EgoLifeCap inside) and write the new data set ``out``.

    Raises ``DataError`` that names the expected layout where files are missing or of another shape.
    """
    if not re.fullmatch(r"[A-Za-z0-9_]{1,40}", subject):
        raise DataError("the subject must be letters, digits and underscores, for example A1_JAKE")
    file = source / "EgoLifeQA" / f"EgoLifeQA_{subject}.json"
    if not file.is_file():
        raise DataError(
            f"{file}: not found; give the folder that holds EgoLifeQA/EgoLifeQA_{subject}.json and"
            f" EgoLifeCap/Sync/{subject}_DAY1_11000000.json"
        )
    video, notes = read_stream(source, subject)
    days = {int(window.start // 86_400) + 1 for window in video.windows}
    splits: dict[str, list[tuple[Question, Gold]]] = {"development": [], "validation": [], "test": []}
    seen: set[str] = set()
    left_out = 0
    for row in parse(QA_ROWS, file):
        if row.ID in seen:
            raise DataError(f"{file}: question {row.ID} is there twice; keep one")
        seen.add(row.ID)
        day = int(row.query_time.date[3:])
        if day not in days:
            left_out += 1
            continue
        splits[SPLIT_OF_DAY[day]].append(convert(row, subject, file, notes))
    if left_out:
        notes.append(f"{left_out} questions of days without captions are left out")
    for asked in splits.values():
        asked.sort(key=lambda pair: (pair[0].time, pair[0].id))
    parts = DatasetParts(
        name=f"egolife-{subject}",
        origin={"importer": "egolife", "version": 1, "subject": subject, "questions_sha256": digest(file)},
        videos=[video],
        splits=splits,
    )
    return write(parts, out, notes)


def convert(row: QaRow, subject: str, file: Path, notes: list[str]) -> tuple[Question, Gold]:
    """One question and its gold."""
    choices = {letter: clean(getattr(row, f"choice_{letter.lower()}")) for letter in "ABCD"}
    if len({text.casefold() for text in choices.values()}) < len(choices):
        notes.append(f"question {row.ID} has identical choices; kept as published")
    time = day_start(row.query_time.date) + clock(row.query_time.time[-8:])
    oracle = moments(row.target_time)
    if not oracle:
        raise DataError(f"{file}: question {row.ID}: target_time has neither time nor time_list; check the download")
    question = Question(f"{subject}-{row.ID}", subject, row.type, clean(row.question), choices, time)
    return question, Gold(row.answer, tuple((moment, moment) for moment in oracle))


def moments(target: TargetTime) -> Sequence[float]:
    """The moments of the evidence.

    Shapes: one time; a list of times of one day; ``11153417DAY1_11181201`` and its three-part form, in which each
    further time brings its own day; a date spelled ``Day1``. The parts are separate occasions (the annotators write
    "twice", "usually"), up to days apart, so they are read as moments, not as the ends of an interval.
    """
    start = day_start(target.date)
    if target.time_list is not None:
        return [start + clock(time) for time in target.time_list]
    if target.time is None:
        return []
    first, *others = re.split(r"(?i:day)", target.time)
    return [start + clock(first), *(day_start("DAY" + other[0]) + clock(other[2:]) for other in others)]


def digest(file: Path) -> str:
    """SHA-256 of the published question file, for the record of origin."""
    return hashlib.sha256(file.read_bytes()).hexdigest()
