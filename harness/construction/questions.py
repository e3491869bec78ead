"""A file of questions with their answers, as JSON or JSON Lines (docs/building.md shows the fields)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.construction import axis
from harness.construction.axis import Moment
from harness.construction.decoding import one_line, parse_json, read_text
from harness.data.native import Gold, Id, Letter, Question, first_problem
from harness.errors import UserError
from harness.models.letters import LETTERS

Split = Literal["development", "validation", "test"]
Splits = dict[str, list[tuple[Question, Gold]]]


class Asked(BaseModel):
    """One question. An unknown field is an error: a misspelt one would change what is asked."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")
    question: str
    choices: dict[Letter, str] | list[str]
    answer: Letter
    time: Moment
    """When it is asked."""
    id: Id | None = None
    video: Id | None = None
    type: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _&/-]{0,59}$")] = "Question"
    split: Split = "test"
    oracle: Annotated[list[Annotated[list[Moment], Field(min_length=2, max_length=2)]], Field(max_length=1_000)] = []
    """Where the evidence lies."""


ASKED = TypeAdapter(Asked)


def read_questions(file: Path, beginnings: Mapping[str, float], encoding: str | None, notes: list[str]) -> Splits:
    """Questions with gold by split; times count from the beginning of their video unless they name a day.

    ``beginnings`` holds each video's first second on the axis. Raises UserError with the line or the number.
    """
    splits: Splits = {}
    seen: set[str] = set()
    for number, (place, item) in enumerate(_items(file, encoding), 1):
        try:
            asked = ASKED.validate_python(item)
        except ValidationError as error:
            raise UserError(f"{place}: {first_problem(error)}; correct it (docs/building.md)") from None
        question, gold = _converted(asked, asked.id or f"q{number:05d}", beginnings, place)
        if question.id in seen:
            raise UserError(f"{place}: id {question.id} is used twice; give each question its own")
        seen.add(question.id)
        if len({text.casefold() for text in question.choices.values()}) < len(question.choices):
            notes.append(f"{place}: two of the choices are equal; kept as they are")
        splits.setdefault(asked.split, []).append((question, gold))
    if not seen:
        raise UserError(f"{file}: holds no question; give at least one, or leave --questions out")
    return splits


def _converted(asked: Asked, name: str, beginnings: Mapping[str, float], place: str) -> tuple[Question, Gold]:
    video = asked.video or (next(iter(beginnings)) if len(beginnings) == 1 else None)
    if video is None or video not in beginnings:
        known = ", ".join(sorted(beginnings)[:8])
        raise UserError(f"{place}: video {video or 'is missing'}; the data has {known}")
    listed = asked.choices if isinstance(asked.choices, dict) else dict(zip(LETTERS, asked.choices, strict=False))
    if not 2 <= len(asked.choices) <= len(LETTERS):
        raise UserError(f"{place}: {len(asked.choices)} choices; give from 2 to {len(LETTERS)}")
    choices = {letter: one_line(text, place) for letter, text in sorted(listed.items())}
    if asked.answer not in choices:
        raise UserError(f"{place}: the answer {asked.answer} is not among the choices; correct the letter")

    def at(value: str | float) -> float:
        moment = axis.seconds(value, beginnings[video])
        if moment is None:
            raise UserError(f"{place}: a time is none; write {axis.FORMS}")
        return moment

    oracle = tuple((at(start), at(end)) for start, end in asked.oracle)
    text = one_line(asked.question, place)
    return Question(name, video, asked.type, text, choices, at(asked.time)), Gold(asked.answer, oracle)


def _items(file: Path, encoding: str | None) -> Iterator[tuple[str, Any]]:
    text = read_text(file, encoding).text
    if file.suffix.lower() == ".jsonl":
        for number, line in enumerate(text.split("\n"), 1):
            if line.strip():
                yield f"{file}:{number}", parse_json(line, f"{file}:{number}")
        return
    value = parse_json(text, str(file))
    if not isinstance(value, list):
        raise UserError(f"{file}: is not a list of questions; see docs/building.md")
    yield from ((f"{file}: question {number}", item) for number, item in enumerate(value, 1))
