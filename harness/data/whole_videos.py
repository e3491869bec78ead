"""Benchmarks that ask about whole videos: every question is put at the end of its video's stream."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.data.material import GIVE, Folders, Material
from harness.data.native import SPLITS, DataError, Gold, Question
from harness.data.notes import few, wordless
from harness.data.splitting import split_videos
from harness.data.write import DatasetParts, Written, write
from harness.errors import UserError


@dataclass(frozen=True, slots=True)
class Asked:
    """One question, and its gold, before the length of its video is known."""

    id: str
    type: str
    question: str
    choices: dict[str, str]
    gold: Gold


@dataclass(frozen=True, slots=True)
class AskedVideo:
    """The questions about one video."""

    id: str
    names: tuple[str, ...]
    """The names under which its captions are looked for."""
    kind: str
    """Splits are stratified by it."""
    questions: tuple[Asked, ...]


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What was read of a benchmark; ``missing`` says what it publishes of its videos, for messages."""

    name: str
    origin: dict[str, str | int | float]
    videos: Sequence[AskedVideo]
    notes: Sequence[str]
    missing: str


def write_benchmark(
    benchmark: Benchmark, given: Sequence[Path], published: Sequence[Path], out: Path, seed: int
) -> Written:
    """Find the videos' windows, deal the videos into splits and write the data set.

    Folders that are ``given`` go before ``published`` ones, and what is wrong in them is an error; of published files
    those that cannot be read are left out, with a note. Videos without text are left out and counted. Raises
    ``DataError`` where no video has any.
    """
    ids = [question.id for video in benchmark.videos for question in video.questions]
    if len(set(ids)) < len(ids):
        twice = min(id_ for id_ in ids if ids.count(id_) > 1)
        raise DataError(f"{benchmark.name}: question {twice} is there twice; check the download")
    notes = list(benchmark.notes)
    found = _materials(benchmark.videos, Folders(given), Folders(published), notes)
    kept = [(video, material) for video, material in found if material is not None]
    lacking = [video for video, material in found if material is None]
    if not kept:
        example = lacking[0].names[0] if lacking else "NAME"
        raise DataError(
            f"{benchmark.missing}; none of its {len(lacking)} videos was found (first: {example})."
            f" Give --captions DIR with {GIVE}"
        )
    if lacking:
        questions = sum(len(video.questions) for video in lacking)
        some = ", ".join(video.names[0] for video in lacking[:3])
        notes.append(
            f"{len(lacking)} of {len(found)} videos have neither captions nor subtitles ({some}, ...): left out with"
            f" their {questions} questions; give --captions DIR for them"
        )
    splits: dict[str, list[tuple[Question, Gold]]] = {split: [] for split in SPLITS}
    split_of = split_videos({video.id: video.kind for video, _ in kept}, seed)
    for video, material in kept:
        end = material.video.duration
        for asked in video.questions:
            question = Question(asked.id, video.id, asked.type, asked.question, asked.choices, end)
            splits[split_of[video.id]].append((question, asked.gold))
    videos = [material.video for _, material in kept]
    frames = {path: file for _, material in kept for path, file in material.frames.items()}
    notes += few([note for _, material in kept for note in material.notes]) + wordless(videos)
    parts = DatasetParts(benchmark.name, {**benchmark.origin, "split_seed": seed}, videos, splits, frames)
    return write(parts, out, notes)


def _materials(
    videos: Sequence[AskedVideo], given: Folders, published: Folders, notes: list[str]
) -> list[tuple[AskedVideo, Material | None]]:
    found: list[tuple[AskedVideo, Material | None]] = []
    unreadable: list[str] = []
    for video in videos:
        names = (*video.names, video.id)
        material = given.material(video.id, names)
        if material is None:
            try:
                material = published.material(video.id, names)
            except UserError as error:
                unreadable.append(f"left out: {error}")
        found.append((video, material))
    notes += few(unreadable)
    return found


def identical(asked: Asked) -> bool:
    """Whether two choices are the same but for case and spaces."""
    return len({" ".join(text.split()).casefold() for text in asked.choices.values()}) < len(asked.choices)
