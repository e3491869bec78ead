"""Import of the published EgoLifeQA files (docs/data.md says what is kept, changed and left out).

Times become seconds on one axis: ``(day - 1) * 86400`` plus the wall clock; the last two digits of ``HHMMSSFF`` count
frames at 20 a second.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from harness.data.egolife_rows import QA_ROWS, convert
from harness.data.egolife_text import parse, read_stream
from harness.data.native import DataError, Gold, Question
from harness.data.notes import wordless
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
    notes += wordless([video])
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
        elif (pair := convert(row, f"{subject}-{row.ID}", subject, file, notes)) is not None:
            splits[SPLIT_OF_DAY[day]].append(pair)
    if left_out:
        notes.append(f"{left_out} questions of days without captions are left out")
    if not any(splits.values()):
        raise DataError(f"{file}: no question can be asked ({notes[-1] if notes else 'the file holds none'})")
    for asked in splits.values():
        asked.sort(key=lambda pair: (pair[0].time, pair[0].id))
    parts = DatasetParts(
        name=f"egolife-{subject}",
        origin={"importer": "egolife", "version": 1, "subject": subject, "questions_sha256": digest(file)},
        videos=[video],
        splits=splits,
    )
    return write(parts, out, notes)


def digest(*files: Path) -> str:
    """SHA-256 of the published question files one after the other, for the record of origin."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
