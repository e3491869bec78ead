"""Import of Ego-R1 Bench: EgoLife's wearers, with questions in EgoLifeQA's rows, 25 a wearer and part.

Windows come from EgoLife's captions. Where at least three wearers have them, whole wearers go into the splits; with
fewer, the days do, as for EgoLifeQA.
"""

from __future__ import annotations

import re
from pathlib import Path

from harness.data.egolife import SPLIT_OF_DAY, digest
from harness.data.egolife_rows import QA_ROWS, convert
from harness.data.egolife_text import NoCaptions, parse, read_stream
from harness.data.material import GIVE, Folders, Material
from harness.data.native import SPLITS, DataError, Gold, Question
from harness.data.notes import few, wordless
from harness.data.splitting import split_videos
from harness.data.write import DatasetParts, Written, write

PARTS = ("manual", "gemini")
FEWEST_WEARERS = 3
"""So many wearers are dealt as a whole, which fills all three splits from four on. Not given by the source."""


def import_ego_r1(source: Path, out: Path, captions: Path | None = None, seed: int = 0) -> Written:
    """Read ``source`` and write the new data set ``out``.

    Args:
        source: ``Ego-R1-Bench``, or the folder that holds it.
        out: a folder that does not exist yet.
        captions: the folder that holds ``EgoLifeCap``, or one of captions (see ``harness.data.material``) named by
            wearer; ``source`` where it is not given.
        seed: of the splits.

    Raises ``DataError`` with one line: files missing or of another shape, no wearer with captions.
    """
    files = question_files(source)
    wearers = sorted({file.stem for _, file in files})
    found = {wearer: stream(captions or source, wearer) for wearer in wearers}
    streams = {wearer: material for wearer, material in found.items() if material is not None}
    if not streams:
        raise DataError(
            f"{captions or source}: Ego-R1 Bench publishes no captions; give --captions DIR with EgoLife's EgoLifeCap"
            f" (Sync, {wearers[0]}/{wearers[0]}_30sec.json, DenseCaption or Transcript), or for NAME = {wearers[0]} "
            + GIVE
        )
    notes: list[str] = []
    if lacking := [wearer for wearer in wearers if wearer not in streams]:
        notes.append(f"no captions of {', '.join(lacking)}: left out with their questions; give --captions DIR")
    whole = len(streams) >= FEWEST_WEARERS
    dealt = split_videos(dict.fromkeys(streams, "wearer"), seed)
    splits: dict[str, list[tuple[Question, Gold]]] = {split: [] for split in SPLITS}
    for part, file in files:
        if (material := streams.get(file.stem)) is not None:
            for pair in questions(part, file, material, notes):
                day = int(pair[0].time // 86_400) + 1
                splits[dealt[file.stem] if whole else SPLIT_OF_DAY[min(day, 7)]].append(pair)
    if not any(splits.values()):
        raise DataError(f"{source}: no question can be asked ({notes[-1] if notes else 'the files hold none'})")
    for asked in splits.values():
        asked.sort(key=lambda pair: (pair[0].video, pair[0].time, pair[0].id))
    videos = [material.video for material in streams.values()]
    frames = {path: file for material in streams.values() for path, file in material.frames.items()}
    notes += few([note for material in streams.values() for note in material.notes]) + wordless(videos)
    origin: dict[str, str | int | float] = {
        "importer": "ego-r1",
        "version": 1,
        "questions_sha256": digest(*(file for _, file in files)),
        "splits": "by wearer" if whole else "by day",
        "split_seed": seed,
    }
    return write(DatasetParts("ego-r1-bench", origin, videos, splits, frames), out, notes)


def question_files(source: Path) -> list[tuple[str, Path]]:
    """The question files with their part, by part and wearer."""
    root = source / "Ego-R1-Bench" if (source / "Ego-R1-Bench").is_dir() else source
    files = [(part, file) for part in PARTS for file in sorted((root / f"{part}-benchmark").glob("*.json"))]
    named = [(part, file) for part, file in files if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_]{0,39}", file.stem)]
    if not named:
        raise DataError(
            f"{source}: no Ego-R1 Bench here; give the folder that holds manual-benchmark/A1_JAKE.json and"
            " gemini-benchmark/A1_JAKE.json"
        )
    return named


def stream(folder: Path, wearer: str) -> Material | None:
    """A wearer's windows from captions by name, else from EgoLife's own files; None where there are none."""
    if (found := Folders([folder]).material(wearer, [wearer])) is not None:
        return found
    try:
        video, notes = read_stream(folder, wearer)
    except NoCaptions:
        return None
    return Material(video, {}, tuple(notes))


def questions(part: str, file: Path, material: Material, notes: list[str]) -> list[tuple[Question, Gold]]:
    """The questions of one file. Their ids are unique inside the file only, so wearer and part stand before them."""
    days = {int(window.start // 86_400) + 1 for window in material.video.windows}
    found: dict[str, tuple[Question, Gold]] = {}
    left_out = 0
    for row in parse(QA_ROWS, file):
        id_ = f"{file.stem}-{part}-{row.ID}"
        if id_ in found:
            raise DataError(f"{file}: question {row.ID} is there twice; keep one")
        if int(row.query_time.date[3:]) not in days:
            left_out += 1
        elif (pair := convert(row, id_, file.stem, file, notes)) is not None:
            found[id_] = pair
    if left_out:
        notes.append(f"{file.parent.name}/{file.name}: {left_out} questions of days without captions are left out")
    return list(found.values())
