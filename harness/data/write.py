"""Writing the native format: the same parts always give the same bytes, and a folder appears whole or not at all."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.data.native import FORMAT, SPLITS, DataError, FrameFile, Gold, Question, Video
from policies.contract import Window

PIECE = 1 << 20
"""Bytes copied at a time."""


@dataclass(frozen=True, slots=True)
class DatasetParts:
    """What a data set is made of, before it is written."""

    name: str
    origin: Mapping[str, str | int | float]
    videos: Sequence[Video]
    splits: Mapping[str, Sequence[tuple[Question, Gold]]]
    """Questions with gold by split; an empty split is left out."""
    frames: Mapping[str, bytes | Path] = field(default_factory=dict)
    """By path in the data set, what ``Video.frames`` names: the bytes, or the file to copy them from."""


@dataclass(frozen=True, slots=True)
class Written:
    """What was written."""

    path: Path
    name: str
    windows: Mapping[str, int]
    """Number of windows by video."""
    questions: Mapping[str, int]
    """Number of questions by split."""
    bytes: int
    notes: tuple[str, ...] = ()
    """What an importer changed or left out, one line each."""


def write(parts: DatasetParts, folder: Path, notes: Sequence[str] = ()) -> Written:
    """Write ``parts`` as a new folder; raises ``DataError`` where something is there already or cannot be written."""
    if folder.exists() or folder.is_symlink():
        raise DataError(f"{folder}: exists already; choose another folder or remove it")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise DataError(f"{folder.parent}: {error.strerror}; choose a folder that can be written") from None
    try:
        size = fill(parts, building)
        building.chmod(0o755)
        building.rename(folder)
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror}; choose a folder that can be written") from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    windows = {video.id: len(video.windows) for video in parts.videos}
    questions = {split: len(parts.splits[split]) for split in SPLITS if parts.splits.get(split)}
    return Written(folder, parts.name, windows, questions, size, tuple(notes))


def fill(parts: DatasetParts, folder: Path) -> int:
    """Write all files of ``parts`` into an empty folder, the manifest last; returns their size in bytes.

    Raises ``DataError`` where a video names frames that ``parts.frames`` does not hold, or files no video names.
    """
    named = {file.path for video in parts.videos for file in video.frames}
    if named != set(parts.frames):
        odd = min(named ^ set(parts.frames))
        raise DataError(f"{odd}: named by a video or given as a file of frames, but not both; correct the parts")
    files: dict[str, dict[str, str | int]] = {}

    def put(name: str, rows: Iterable[Mapping[str, Any]]) -> str:
        content = "".join(encode(row) + "\n" for row in rows).encode("utf-8")
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(content)
        files[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
        return name

    videos = [
        {
            "id": video.id,
            "duration": seconds(video.duration),
            "windows": put(f"windows/{video.id}.jsonl", map(window_row, video.windows)),
        }
        | ({"frames": [frame_row(file) for file in video.frames]} if video.frames else {})
        for video in parts.videos
    ]
    for name in sorted(parts.frames):
        files[name] = copy(parts.frames[name], folder / name)
    splits = {
        split: {
            "questions": put(
                f"questions/{split}.jsonl", [question_row(question) for question, _ in parts.splits[split]]
            ),
            "gold": put(f"gold/{split}.jsonl", [gold_row(question.id, gold) for question, gold in parts.splits[split]]),
            "count": len(parts.splits[split]),
        }
        for split in SPLITS
        if parts.splits.get(split)
    }
    manifest = {
        "format": FORMAT,
        "name": parts.name,
        "origin": dict(parts.origin),
        "videos": videos,
        "splits": splits,
        "files": dict(sorted(files.items())),
    }
    content = (json.dumps(manifest, ensure_ascii=False, indent=1) + "\n").encode("utf-8")
    (folder / "manifest.json").write_bytes(content)
    return len(content) + sum(int(entry["bytes"]) for entry in files.values())


def copy(source: bytes | Path, file: Path) -> dict[str, str | int]:
    """Write bytes, or copy a file piece by piece; returns the manifest's entry for it."""
    file.parent.mkdir(exist_ok=True)
    digest, size = hashlib.sha256(), 0
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as reading, file.open("wb") as writing:
        while piece := reading.read(PIECE):
            writing.write(piece)
            digest.update(piece)
            size += len(piece)
    return {"sha256": digest.hexdigest(), "bytes": size}


def frame_row(file: FrameFile) -> dict[str, Any]:
    """One entry of a video's ``frames`` in the manifest."""
    return {"path": file.path, "start": seconds(file.start)}


def window_row(window: Window) -> dict[str, Any]:
    """One line of ``windows/VIDEO.jsonl``."""
    return {
        "start": seconds(window.start),
        "end": seconds(window.end),
        "captions": list(window.captions),
        "transcript": [{"speaker": line.speaker, "text": line.text} for line in window.transcript],
        "frames": window.frames,
    }


def question_row(question: Question) -> dict[str, Any]:
    """One line of ``questions/SPLIT.jsonl``."""
    return {
        "id": question.id,
        "video": question.video,
        "type": question.type,
        "question": question.question,
        "choices": dict(question.choices),
        "time": seconds(question.time),
    }


def gold_row(question: str, gold: Gold) -> dict[str, Any]:
    """One line of ``gold/SPLIT.jsonl``."""
    return {
        "id": question,
        "answer": gold.answer,
        "oracle": [[seconds(start), seconds(end)] for start, end in gold.oracle],
    }


def encode(row: Mapping[str, Any]) -> str:
    """Compact JSON in the order given; refuses NaN and infinity."""
    return json.dumps(row, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def seconds(value: float) -> float | int:
    """Milliseconds are enough; whole seconds are written without a fraction."""
    rounded = round(value, 3)
    return int(rounded) if rounded == int(rounded) else rounded
