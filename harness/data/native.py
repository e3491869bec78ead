"""The native format: a folder with a manifest, and JSON Lines beside it (docs/data.md describes every field).

Reading trusts nothing: paths and ids must match an expression, no link is followed, sizes and row counts are
bounded, every file must have the size and SHA-256 that the manifest states. Gold lies in files of its own, which
``load`` does not open: only ``Dataset.gold`` does, and only the scorer calls it.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError
from typing_extensions import TypedDict

from harness.errors import UserError
from policies.contract import Utterance, Window

FORMAT = "lvmh-data/1"
SPLITS = ("development", "validation", "test")
MAX_MANIFEST = 16 << 20
MAX_FILE = 512 << 20
MAX_LINE = 1 << 20
MAX_WINDOWS = 200_000
MAX_QUESTIONS = 100_000
MAX_LINES_PER_WINDOW = 5_000
MAX_TEXT = 20_000
MAX_FRAME_BYTES = 64 << 30
"""A day of video; frames are read where they are needed, never as a whole."""

Id = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
ROWS = r"(windows|questions|gold)/[A-Za-z0-9][A-Za-z0-9._-]{0,105}\.jsonl"
PICTURES = r"frames/[A-Za-z0-9][A-Za-z0-9._-]{0,105}\.(mp4|m4v|mkv|webm|mov|avi|png|jpg|jpeg)"
FilePath = Annotated[str, Field(pattern=f"^{ROWS}$")]
FramePath = Annotated[str, Field(pattern=f"^{PICTURES}$")]
AnyPath = Annotated[str, Field(pattern=f"^({ROWS}|{PICTURES})$")]
Text = Annotated[str, Field(max_length=MAX_TEXT)]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
Letter = Annotated[str, Field(pattern=r"^[A-J]$")]
STRICT = ConfigDict(strict=True, extra="forbid", frozen=True)


class DataError(UserError):
    """A data set that cannot be used: says which file, which line and what to do."""


class FileEntry(BaseModel):
    """Size and digest of one file."""

    model_config = STRICT
    sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    bytes: Annotated[int, Field(ge=0, le=MAX_FRAME_BYTES)]


class FrameFile(BaseModel):
    """A video file whose first frame stands at ``start``, or an image that is one frame at ``start``; in seconds."""

    model_config = STRICT
    path: FramePath
    start: Seconds


class VideoEntry(BaseModel):
    """One video: its length in seconds, the file of its windows, and where its frames are, in order of time."""

    model_config = STRICT
    id: Id
    duration: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)]
    windows: FilePath
    frames: Annotated[tuple[FrameFile, ...], Field(max_length=20_000)] = ()


class SplitEntry(BaseModel):
    """One split: its questions, and their gold in a file of its own."""

    model_config = STRICT
    questions: FilePath
    gold: FilePath
    count: Annotated[int, Field(ge=0, le=MAX_QUESTIONS)]


class Manifest(BaseModel):
    """``manifest.json``. A split without questions is left out."""

    model_config = STRICT
    format: Literal["lvmh-data/1"]
    name: Id
    origin: dict[str, str | int | float]
    """How the data was made: generator, version and seed, or importer and source."""
    videos: Annotated[list[VideoEntry], Field(max_length=10_000)]
    splits: dict[Literal["development", "validation", "test"], SplitEntry]
    files: Annotated[dict[AnyPath, FileEntry], Field(max_length=40_000)]


class UtteranceRow(TypedDict):
    """One transcript line."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]
    speaker: Annotated[str, Field(max_length=200)]
    text: Text


class WindowRow(TypedDict):
    """One line of ``windows/VIDEO.jsonl``."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]
    start: Seconds
    end: Seconds
    captions: Annotated[list[Text], Field(max_length=MAX_LINES_PER_WINDOW)]
    transcript: Annotated[list[UtteranceRow], Field(max_length=MAX_LINES_PER_WINDOW)]
    frames: bool


class QuestionRow(TypedDict):
    """One line of ``questions/SPLIT.jsonl``."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]
    id: Id
    video: Id
    type: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9 _&/-]{0,59}$")]
    question: Text
    choices: Annotated[dict[Letter, Text], Field(min_length=2, max_length=10)]
    time: Seconds


class GoldRow(TypedDict):
    """One line of ``gold/SPLIT.jsonl``."""

    __pydantic_config__ = ConfigDict(strict=True, extra="forbid")  # type: ignore[misc]
    id: Id
    answer: Letter
    oracle: Annotated[list[Annotated[list[Seconds], Field(min_length=2, max_length=2)]], Field(max_length=1_000)]


WINDOW_ROWS = TypeAdapter(list[WindowRow])
QUESTION_ROWS = TypeAdapter(list[QuestionRow])
GOLD_ROWS = TypeAdapter(list[GoldRow])
Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Video:
    """One stream; ``duration`` in seconds, ``windows`` in the order in which they are sent, ``frames`` by start."""

    id: str
    duration: float
    windows: tuple[Window, ...]
    frames: tuple[FrameFile, ...] = ()


@dataclass(frozen=True, slots=True)
class Question:
    """One question as the data set holds it; ``time`` is the query time in seconds."""

    id: str
    video: str
    type: str
    question: str
    choices: Mapping[str, str]
    time: float


@dataclass(frozen=True, slots=True)
class Gold:
    """The answer's letter, and where the evidence lies: intervals in seconds, empty where the data has none."""

    answer: str
    oracle: tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class Dataset:
    """A loaded data set. Holds no gold."""

    name: str
    path: Path
    digest: str
    """SHA-256 of the manifest's bytes; the manifest holds the digests of all other files."""
    manifest: Manifest
    videos: Mapping[str, Video]
    _questions: Mapping[str, tuple[Question, ...]] = field(repr=False)

    @property
    def splits(self) -> tuple[str, ...]:
        """The splits that have questions, in the order development, validation, test."""
        return tuple(split for split in SPLITS if self._questions.get(split))

    def questions(self, split: str) -> tuple[Question, ...]:
        """The questions of a split in file order; raises ``DataError`` where the data has no such split."""
        if split not in self.splits:
            raise DataError(
                f"{self.path}: the data set has no {split} split; it has {', '.join(self.splits) or 'none'}"
            )
        return self._questions[split]

    def gold(self, split: str) -> Mapping[str, Gold]:
        """Gold by question id, read from its own file at each call. For the scorer alone."""
        questions = self.questions(split)
        name = self.manifest.splits[split].gold  # type: ignore[index]
        file = self.path / name
        rows = parse_rows(GOLD_ROWS, read_file(self.path, name, self.manifest.files.get(name)), file, MAX_QUESTIONS)
        gold: dict[str, Gold] = {}
        for number, row in enumerate(rows, 1):
            if row["id"] in gold:
                raise DataError(f"{file}:{number}: id {row['id']} stands here twice; keep one of the lines")
            gold[row["id"]] = Gold(row["answer"], tuple((start, end) for start, end in row["oracle"]))
        for question in questions:
            if question.id not in gold:
                raise DataError(f"{file}: no gold for question {question.id}; add its line")
            if gold[question.id].answer not in question.choices:
                raise DataError(f"{file}: the answer to {question.id} is not among its choices; correct the letter")
        if len(gold) > len(questions):
            raise DataError(f"{file}: {len(gold)} lines for {len(questions)} questions; remove gold without a question")
        return MappingProxyType(gold)


def load(path: Path, verify: bool = True) -> Dataset:
    """Read a data set. ``verify`` compares every file read with the manifest's SHA-256; gold is checked when read.

    Raises ``DataError`` at the first thing that makes the data unusable; ``harness.data.check`` lists all.
    """
    content = read_file(path, "manifest.json", None, MAX_MANIFEST)
    digest = hashlib.sha256(content).hexdigest()
    try:
        manifest = Manifest.model_validate_json(content)
    except ValidationError as error:
        raise DataError(f"{path / 'manifest.json'}: {first_problem(error)}; see docs/data.md for the format") from None

    def entry(name: str) -> FileEntry | None:
        if verify and name not in manifest.files:
            raise DataError(f"{path / 'manifest.json'}: {name} is not listed under files; add its sha256 and bytes")
        return manifest.files[name] if verify else None

    videos: dict[str, Video] = {}
    for video in manifest.videos:
        if video.id in videos:
            raise DataError(f"{path / 'manifest.json'}: video {video.id} stands there twice; keep one")
        content = read_file(path, video.windows, entry(video.windows))
        rows = parse_rows(WINDOW_ROWS, content, path / video.windows, MAX_WINDOWS)
        for frames in video.frames:
            require_frames(path, frames.path, entry(frames.path))
        windows = stream(rows, video.duration, path / video.windows)
        videos[video.id] = Video(video.id, video.duration, windows, video.frames)
    questions: dict[str, tuple[Question, ...]] = {}
    seen: set[str] = set()
    for split in SPLITS:
        if (part := manifest.splits.get(split)) is None:  # type: ignore[call-overload]
            continue
        file = path / part.questions
        asked = parse_rows(QUESTION_ROWS, read_file(path, part.questions, entry(part.questions)), file, MAX_QUESTIONS)
        if len(asked) != part.count:
            raise DataError(f"{file}: {len(asked)} questions, the manifest says {part.count}; correct its count")
        for number, row in enumerate(asked, 1):
            if row["id"] in seen:
                raise DataError(f"{file}:{number}: question id {row['id']} is used twice; give each its own")
            if row["video"] not in videos:
                raise DataError(f"{file}:{number}: video {row['video']} is not in the manifest; add it or correct it")
            seen.add(row["id"])
        questions[split] = tuple(
            Question(r["id"], r["video"], r["type"], r["question"], MappingProxyType(r["choices"]), r["time"])
            for r in asked
        )
    return Dataset(manifest.name, path, digest, manifest, MappingProxyType(videos), MappingProxyType(questions))


def permitted_artifacts(dataset: Dataset) -> list[dict[str, str | float]]:
    """The development artifacts that the search may read: windows, frames and questions, never gold.

    Each entry has ``path`` and ``sha256``; windows and frames also have ``until``, the last development query time of
    that video in seconds: what lies later in the same video belongs to other splits.
    """
    if "development" not in dataset.splits:
        return []
    questions = dataset.questions("development")
    files = dataset.manifest.files
    listed: list[dict[str, str | float]] = []
    for video in dataset.manifest.videos:
        times = [question.time for question in questions if question.video == video.id]
        if times:
            seen = [file.path for file in video.frames if file.start <= max(times)]
            listed += [
                {"path": name, "sha256": files[name].sha256, "until": max(times)} for name in (video.windows, *seen)
            ]
    asked = dataset.manifest.splits["development"].questions
    listed.append({"path": asked, "sha256": files[asked].sha256})
    return listed


def stream(rows: Sequence[WindowRow], duration: float, file: Path) -> tuple[Window, ...]:
    """Windows in the order in which a policy gets them: by (min(end, duration), start), ends clipped to duration."""
    for number, row in enumerate(rows, 1):
        if not row["start"] < min(row["end"], duration):
            raise DataError(
                f"{file}:{number}: window {row['start']:g} to {row['end']:g} s of a video of {duration:g} s is empty;"
                " correct the times"
            )
    ordered = sorted(rows, key=lambda row: (min(row["end"], duration), row["start"]))
    return tuple(
        Window(
            index,
            row["start"],
            min(row["end"], duration),
            tuple(row["captions"]),
            tuple([Utterance(line["speaker"], line["text"]) for line in row["transcript"]]),
            row["frames"],
        )
        for index, row in enumerate(ordered)
    )


# ---------------------------------------------------------------- reading with bounds


def read_file(folder: Path, name: str, expected: FileEntry | None, limit: int = MAX_FILE) -> bytes:
    """Bytes of a regular file of the data set; no link is followed. ``expected`` is compared where given."""
    file = folder / name
    with os.fdopen(open_file(folder, name), "rb") as handle:
        status = os.fstat(handle.fileno())
        if status.st_size > limit:
            raise DataError(f"{file}: {status.st_size} bytes, at most {limit} are read; split the data")
        content = handle.read(limit + 1)
    if len(content) > limit:
        raise DataError(f"{file}: more than {limit} bytes; split the data")
    if expected is not None and hashlib.sha256(content).hexdigest() != expected.sha256:
        raise DataError(f"{file}: not the bytes that the manifest names (sha256); import or make the data again")
    return content


def open_file(folder: Path, name: str) -> int:
    """A descriptor of a regular file of the data set; no link is followed."""
    file = folder / name
    try:
        if file.parent != folder and file.parent.is_symlink():
            raise DataError(f"{file.parent}: is a symbolic link; put the folder itself there")
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(f"{file}: not found; give the folder of a data set (make one: harness data make)") from None
    except OSError as error:
        what = "is a symbolic link" if file.is_symlink() else error.strerror
        raise DataError(f"{file}: {what}; put the file itself there") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise DataError(f"{file}: is not a regular file; put the file itself there")
    return descriptor


def require_frames(folder: Path, name: str, expected: FileEntry | None) -> None:
    """Raise ``DataError`` where a file of frames is missing, a link or of another size. Its digest is compared later,
    when the first frame is asked for: a day of video takes seconds to read."""
    with os.fdopen(open_file(folder, name), "rb") as handle:
        size = os.fstat(handle.fileno()).st_size
    if expected is not None and size != expected.bytes:
        raise DataError(f"{folder / name}: {size} bytes, the manifest says {expected.bytes}; import or make it again")


def split_lines(content: bytes, file: Path) -> Iterator[tuple[int, bytes]]:
    """The numbered, non-empty lines of a JSON Lines file."""
    for number, line in enumerate(content.split(b"\n"), 1):
        if len(line) > MAX_LINE:
            raise DataError(f"{file}:{number}: a line of {len(line)} bytes, at most {MAX_LINE} are read; split it")
        if line.strip():
            yield number, line


def parse_rows(adapter: TypeAdapter[list[Row]], content: bytes, file: Path, limit: int) -> list[Row]:
    """All rows in one pass; on an error once more line by line, to name the line."""
    lines = list(split_lines(content, file))
    if len(lines) > limit:
        raise DataError(f"{file}: {len(lines)} lines, at most {limit} are read; split the data")
    try:
        rows = adapter.validate_json(b"[" + b",".join([line for _, line in lines]) + b"]")
        if len(rows) == len(lines):
            return rows
    except ValidationError:
        pass
    for number, line in lines:
        try:
            if len(adapter.validate_json(b"[" + line + b"]")) == 1:
                continue
            problem = "not one JSON object"
        except ValidationError as error:
            problem = first_problem(error)
        raise DataError(f"{file}:{number}: {problem}; correct the line")
    raise DataError(f"{file}: not one JSON object a line; see docs/data.md for the format")


def first_problem(error: ValidationError) -> str:
    """One line about the first problem, without the offending text (it may be hostile) but with its place."""
    detail: Any = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in detail["loc"] if part != 0)
    text = f"{place}: {detail['msg']}" if place else str(detail["msg"])
    return ascii(text[:300])[1:-1]
