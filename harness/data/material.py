"""The windows of one video from what the user has: a built data set, caption files, subtitles.

For benchmarks that publish no captions of their own. A folder is searched for the video's names, in this order:
a data set in the native format (as ``harness memory build`` makes them) that holds all videos, or one a video in
``NAME/``; captions ``NAME.json``, ``NAME/30sec.json``, ``NAME/10sec.json``, ``NAME_10min.json``; and beside captions,
or alone, subtitles ``NAME.srt`` or ``NAME.vtt``.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path, PurePosixPath

from harness.construction.captions import read_captions
from harness.construction.decoding import read_text
from harness.construction.lines import Line
from harness.construction.transcripts import read_transcript
from harness.construction.windows import Draft, finished, put
from harness.data.egolife_text import clean
from harness.data.native import DataError, Dataset, Video, load
from harness.data.paragraphs import read_paragraphs

CAPTIONS = ("{}.json", "{}/30sec.json", "{}/10sec.json", "{}_10min.json")
SUBTITLES = ("{}.srt", "{}.vtt")
GIVE = (
    "a data set that harness memory build made, NAME.json or NAME/30sec.json (a list of start_time, end_time, text),"
    " NAME.srt or NAME.vtt"
)
"""What a folder of captions may hold, for messages."""


@dataclass(frozen=True, slots=True)
class Material:
    """One video's stream under its id in the new data set; ``frames`` are the files that it names, by new path."""

    video: Video
    frames: dict[str, Path] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Folders:
    """Where captions are looked for; the first folder that has a video gives all of it."""

    def __init__(self, folders: Sequence[Path]) -> None:
        for folder in folders:
            if not folder.is_dir():
                raise DataError(f"{folder}: not a folder; give {GIVE} in one")
        self._folders = tuple(folders)
        self._load = cache(load)

    def material(self, id_: str, names: Sequence[str]) -> Material | None:
        """The stream of a video that goes by ``names``; None where no folder has it. Raises UserError: bad files."""
        for folder in self._folders:
            built = self._built(folder, names)
            if built is not None:
                return _renamed(*built, id_)
            found = _from_files(folder, names, id_)
            if found is not None:
                return found
        return None

    def _built(self, folder: Path, names: Sequence[str]) -> tuple[Dataset, Video] | None:
        if (folder / "manifest.json").is_file():
            videos = self._load(folder).videos
            ids = [*names, *(name.strip("-._") for name in names)]  # an id begins with a letter or digit
            named = next((videos[name] for name in ids if name in videos), None)
            return None if named is None else (self._load(folder), named)
        for name in names:
            if (folder / name / "manifest.json").is_file():
                dataset = load(folder / name)
                if name not in dataset.videos and len(dataset.videos) != 1:
                    raise DataError(f"{folder / name}: has no video {name}, but several others; keep one or name it so")
                return dataset, dataset.videos.get(name) or next(iter(dataset.videos.values()))
        return None


def _renamed(dataset: Dataset, video: Video, id_: str) -> Material:
    """The video under its new id; its frames' files get that id before their names, so that two never meet."""
    renamed = {file.path: f"frames/{id_}-{PurePosixPath(file.path).name}" for file in video.frames}
    frames = tuple(file.model_copy(update={"path": renamed[file.path]}) for file in video.frames)
    return Material(
        Video(id_, video.duration, video.windows, frames),
        {new: dataset.path / old for old, new in renamed.items()},
    )


def _from_files(folder: Path, names: Sequence[str], id_: str) -> Material | None:
    captions = _first(folder, names, CAPTIONS)
    subtitles = _first(folder, names, SUBTITLES)
    if captions is None and subtitles is None:
        return None
    notes: list[str] = []
    said: list[Line] = []
    if subtitles is not None:
        read = read_transcript(subtitles, 0.0)
        said += read.lines
        notes += read.notes
    if captions is None:
        drafts = put((), said)
    else:
        told, empty = _captions(captions)
        if empty:
            notes.append(f"{captions}: {empty} empty caption(s) are left out")
        drafts = put([Draft(line.start, line.end, [line]) for line in told], said)
    windows = finished(drafts, ())
    return Material(Video(id_, windows[-1].end, windows), {}, tuple(notes))


def _captions(file: Path) -> tuple[list[Line], int]:
    """The captions with text, by their end, and how many have none. Raises ``DataError``: none has text."""
    try:
        value = json.loads(read_text(file).text)
    except (ValueError, RecursionError):
        raise DataError(f"{file}: is not JSON; give a list of start_time, end_time and text") from None
    shared = isinstance(value, list) and any(isinstance(item, dict) and "start_time" in item for item in value)
    lines = read_paragraphs(file) if shared else read_captions(file, 0.0).lines
    told = [Line(line.start, line.end, text, spoken=False) for line in lines if (text := clean(line.text))]
    if not told:
        raise DataError(f"{file}: all of its captions are empty; give captions with text, or leave the file out")
    return sorted(told, key=lambda line: (line.end, line.start)), len(lines) - len(told)


def _first(folder: Path, names: Sequence[str], forms: Sequence[str]) -> Path | None:
    files = (folder / form.replace("{}", name) for name in names for form in forms)
    return next((file for file in files if file.is_file()), None)
