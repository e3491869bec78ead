"""Questions in EgoLifeQA's row format, which Ego-R1 Bench shares with more slips in it.

Only the fields named in ``QaRow`` are ever read, and of these ``target_time`` and ``answer`` go to the gold file alone.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from harness.data.clip_times import clock, day_start
from harness.data.egolife_text import clean
from harness.data.native import DataError, Gold, Question

TIME = r"\d{8,9}(-\d{8,9})?"
"""``HHMMSSFF``, or a range of two. Nine digits are a slip: mostly the day's digit before the time."""
Date = Annotated[str, Field(pattern=r"^(?i:day)[1-7]$")]


class QueryTime(BaseModel):
    """When a question is asked. Some are a range, whose later end counts, whichever stands first."""

    model_config = ConfigDict(strict=True, frozen=True)
    date: Date
    time: Annotated[str, Field(pattern=f"^{TIME}$")]


class TargetTime(BaseModel):
    """Where the evidence lies (see ``intervals``)."""

    model_config = ConfigDict(strict=True, frozen=True)
    date: Date
    time: Annotated[str, Field(pattern=rf"^{TIME}(?i:day[1-7]_{TIME})*$")] | None = None
    time_list: (
        Annotated[list[Annotated[str, Field(pattern=rf"^{TIME}(?i:day[1-7]_{TIME})*$")]], Field(max_length=100)] | None
    ) = None


class QaRow(BaseModel):
    """What is read of a question; the other published fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")
    ID: Annotated[str, Field(pattern=r"^[A-Za-z0-9]{1,20}$")]
    query_time: QueryTime
    type: Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z ]{0,39}$")]
    question: str
    choice_a: str | None = None
    choice_b: str | None = None
    choice_c: str | None = None
    choice_d: str | None = None
    answer: Literal["A", "B", "C", "D"]
    target_time: TargetTime


QA_ROWS = TypeAdapter(list[QaRow])


def convert(row: QaRow, id_: str, video: str, file: Path, notes: list[str]) -> tuple[Question, Gold] | None:
    """One question and its gold; None, with a note, where it cannot be asked. Raises ``DataError``: no target time."""
    place = f"{file.parent.name}/{file.name}: question {row.ID}"
    published = {letter: clean(getattr(row, f"choice_{letter.lower()}") or "") for letter in "ABCD"}
    kept = {letter: text for letter, text in published.items() if text}
    if row.answer not in kept or len(kept) < 2:
        notes.append(f"{place} is left out: its answer {row.answer} is an empty choice")
        return None
    if len(kept) < len(published):
        notes.append(f"{place}: an empty choice is left out, and the letters behind it move up")
    if len({text.casefold() for text in kept.values()}) < len(kept):
        notes.append(f"{place} has identical choices; kept as published")
    letters = dict(zip(kept, "ABCD", strict=False))
    choices = {letters[letter]: text for letter, text in kept.items()}
    day = int(row.query_time.date[3:])
    asked = max(moment(day, time, place, notes) for time in row.query_time.time.split("-"))
    oracle = intervals(row.target_time, place, notes)
    if not oracle:
        raise DataError(f"{file}: question {row.ID}: target_time has neither time nor time_list; check the download")
    return Question(id_, video, row.type, clean(row.question), choices, asked), Gold(letters[row.answer], tuple(oracle))


def intervals(target: TargetTime, place: str, notes: list[str]) -> Sequence[tuple[float, float]]:
    """The evidence, in seconds: moments, and intervals where two times stand with a dash between them.

    Shapes: one time; a list of times of one day; ``11153417DAY1_11181201`` and its three-part form, in which each
    further time brings its own day; a date spelled ``Day1`` or ``day6``; ``12332505-12542517`` in place of any time.
    Parts that a day joins are separate occasions (the annotators write "twice", "usually"), up to days apart, so they
    are read as moments, not as the ends of an interval.
    """
    found: list[tuple[float, float]] = []
    for text in target.time_list if target.time_list is not None else [target.time or ""]:
        first, *others = re.split(r"(?i:day)", text)
        for day, time in [(target.date[3:], first), *(other.split("_", 1) for other in others)]:
            if time:
                ends = [moment(int(day), part, place, notes) for part in time.split("-")]
                found.append((min(ends), max(ends)))
    return found


def moment(day: int, time: str, place: str, notes: list[str]) -> float:
    """Seconds on the video's axis of ``HHMMSSFF`` on a day; of nine digits those that make a time of day."""
    if len(time) == 9:
        written = time
        time = time[1:] if time[0] == str(day) else min((time[:8], time[1:]), key=lambda part: not is_clock(part))
        notes.append(f"{place}: time {written} has nine digits; read as {time}")
    return day_start(f"DAY{day}") + clock(time)


def is_clock(time: str) -> bool:
    """Whether eight digits are a time of day."""
    return int(time[:2]) < 24 and int(time[2:4]) < 60 and int(time[4:6]) < 60
