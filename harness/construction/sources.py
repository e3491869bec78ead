"""Which files belong together, and where each piece stands: a piece is a clip, its captions and its transcript."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.construction import axis
from harness.errors import UserError

CLIPS = frozenset({".mp4", ".m4v", ".mkv", ".webm", ".mov", ".avi"})
CAPTIONS = frozenset({".json", ".jsonl", ".txt"})
TRANSCRIPTS = frozenset({".srt", ".vtt"})
KINDS = {"clip": CLIPS, "captions": CAPTIONS, "transcript": TRANSCRIPTS}
ENDINGS = ", ".join(sorted(CLIPS | CAPTIONS | TRANSCRIPTS))


@dataclass(frozen=True, slots=True)
class Piece:
    """What was recorded in one go."""

    name: str
    """The files' name without ending."""
    start: float | None
    """Seconds on the axis, where the name says it."""
    clip: Path | None = None
    captions: Path | None = None
    transcript: Path | None = None


def pieces(sources: Sequence[Path]) -> list[Piece]:
    """The pieces, in the order given; of a folder, its files in order of name.

    Files of the same name belong together, ``walk.mp4`` and ``walk.srt`` or ``walk.en.srt``; where no kind is there
    twice, all of them do. Raises UserError: a file that is missing, of no known kind, or there twice.
    """
    files = _files(sources)
    kinds = [kind for _, kind in files]
    together = len(set(kinds)) == len(kinds)
    stems = {file.stem for file, kind in files if kind == "clip"} or {file.stem for file, _ in files}
    found: dict[str, Piece] = {}
    for file, kind in sorted(files, key=lambda item: list(KINDS).index(item[1]) if together else 0):
        name = next(iter(found), file.stem) if together else _owner(file.stem, stems)
        piece = found.get(name) or Piece(name, axis.named(name))
        if (other := getattr(piece, kind)) is not None:
            raise UserError(f"{file}: {other} is the {kind} of the same piece already; give one of them, or rename it")
        change: dict[str, Any] = {kind: file}
        found[name] = replace(piece, **change)
    return list(found.values())


def by_video(found: Sequence[Piece], video: str | None, start: float | None) -> dict[str, list[Piece]]:
    """Pieces by the id of their video: all in ``video`` where it is named, else each in one of its own.

    Their starts are those in their names, else ``start``; of one video's pieces either all or none are named for
    their time, and those that are not follow one another (a start of None: where the piece before ends).
    Raises UserError.
    """
    if start is not None and all(piece.start is not None for piece in found):
        raise UserError("--start: the names of the files say when they begin; leave it out")
    if video is None:
        ids = _ids([piece.name for piece in found])
        return {
            one: [replace(piece, start=(start or 0.0) if piece.start is None else piece.start)]
            for one, piece in zip(ids, found, strict=True)
        }
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}", video) is None:
        raise UserError("--video: letters, digits, points, hyphens and underscores only, at most 80, for example day1")
    timed = [piece for piece in found if piece.start is not None]
    if timed and len(timed) < len(found):
        odd = next(piece for piece in found if piece.start is None)
        raise UserError(f"{odd.name}: has no time in its name, others have; name all like clip_DAY1_11000000, or none")
    if timed:
        return {video: sorted(timed, key=lambda piece: piece.start or 0.0)}
    return {video: [replace(found[0], start=start or 0.0), *found[1:]]}


def safe_name(text: str, otherwise: str) -> str:
    """``text`` as an id: what an id may not hold becomes a hyphen."""
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-._")[:80]
    return name or otherwise


def _ids(names: Iterable[str]) -> list[str]:
    ids: list[str] = []
    for number, name in enumerate(names, 1):
        one = safe_name(name, f"video-{number}")
        while one in ids:
            one = f"{one}-{number}"
        ids.append(one)
    return ids


def _owner(stem: str, stems: set[str]) -> str:
    """The longest name that ``stem`` begins with, up to a point."""
    parts = stem.split(".")
    heads = [".".join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((head for head in heads if head in stems), stem)


def _files(sources: Sequence[Path]) -> list[tuple[Path, str]]:
    found: list[tuple[Path, str]] = []
    for source in sources:
        if source.is_dir():
            inside = [path for path in sorted(source.iterdir()) if _kind(path) and path.is_file()]
            if not inside:
                raise UserError(f"{source}: holds no file that can be read; known are {ENDINGS}")
            found += [(path, _kind(path)) for path in inside]
        elif not source.exists():
            raise UserError(f"{source}: there is no such file; check the path")
        elif kind := _kind(source):
            found.append((source, kind))
        else:
            raise UserError(f"{source}: is no video, captions or transcript; known are {ENDINGS}")
    given = Counter(path.resolve() for path, _ in found)
    twice = next((path for path, _ in found if given[path.resolve()] > 1), None)
    if twice is not None:
        raise UserError(f"{twice}: is given twice; give it once")
    return found


def _kind(path: Path) -> str:
    return next((kind for kind, endings in KINDS.items() if path.suffix.lower() in endings), "")
