"""Captions of whole windows, in the JSON shape that EgoLife's tools share: a list of texts with HHMMSSFF start and end.

Published variants: times as eight digits or as a number without leading zeros, the day as ``DAY1``, as a number or left
out (then 1), the text under ``text`` or ``generated_text``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.construction.decoding import read_text
from harness.construction.lines import Line
from harness.data.clip_times import DAY, FRAMES_PER_SECOND, clock
from harness.data.native import DataError, first_problem

Time = Annotated[str, Field(pattern=r"^[0-9]{8}$")] | Annotated[int, Field(ge=0, le=24_000_000)]
Date = Annotated[str, Field(pattern=r"^(?i:day)[1-9][0-9]?$")] | Annotated[int, Field(ge=1, le=99)]


class Paragraph(BaseModel):
    """One caption; other published fields are ignored."""

    model_config = ConfigDict(strict=True, frozen=True)
    start_time: Time
    end_time: Time
    text: Annotated[str, Field(validation_alias=AliasChoices("text", "generated_text"))]
    date: Date = 1


PARAGRAPHS = TypeAdapter(list[Paragraph])


def read_paragraphs(file: Path) -> list[Line]:
    """The captions of ``file`` in order of time, empty ones too. Raises ``DataError``: another shape."""
    try:
        entries = PARAGRAPHS.validate_json(read_text(file).text)
    except ValidationError as error:
        raise DataError(f"{file}: not the published format: {first_problem(error)}; check the download") from None
    lines: list[Line] = []
    for entry in entries:
        day = entry.date if isinstance(entry.date, int) else int(entry.date[3:])
        start, end = ((day - 1) * DAY + clock(f"{time:0>8}") for time in (entry.start_time, entry.end_time))
        if end < start:  # past midnight
            end += DAY
        lines.append(Line(start, max(end, start + 1 / FRAMES_PER_SECOND), entry.text, spoken=False))
    return sorted(lines, key=lambda line: (line.start, line.end))
