"""The text stream of EgoLife in its published forms, as windows of about 30 s.

``Sync``: one JSON file an hour, clips with timed caption and transcript lines; preferred. Where it is missing: captions
of 30 s (``SUBJECT_30sec.json``), else the dense captions in translation (JSON Lines), else as they are (SRT, Chinese);
and beside any of them, or alone, the transcript's SRT files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.construction.decoding import read_text
from harness.data.clip_times import at, clock, day_start
from harness.data.native import MAX_TEXT, DataError, Video, first_problem
from harness.data.paragraphs import read_paragraphs
from policies.contract import Utterance, Window

CLIP = 30.0
"""Nominal length of a clip in seconds."""
MAX_SPAN = 600.0
"""A line may end so many seconds after its clip began; anything later is a slip of the file."""
SPEAKER = re.compile(r"(\(?[^\W\d_][^:：\d]{0,39}?)\s*[:：]\s*")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
CUE = re.compile(r"(\d{1,2}):(\d\d):(\d\d)[,.](\d{1,3})\s*-->\s*(\d{1,2}):(\d\d):(\d\d)[,.](\d{1,3})")


class SyncLine(BaseModel):
    """One caption or transcript line; times are the digits HHMMSS read as a number, so 94933 is 09:49:33."""

    model_config = ConfigDict(strict=True, frozen=True)
    start: Annotated[int, Field(ge=0, le=235_959)]
    end: Annotated[int, Field(ge=0, le=240_000)]
    text: str
    type: Literal["caption", "transcript"]


class SyncClip(BaseModel):
    """One clip of about 30 s; its name holds day and start."""

    model_config = ConfigDict(strict=True, frozen=True)
    video_file: Annotated[str, Field(pattern=r"^DAY[1-9]\d?_[A-Za-z0-9_]+_\d{8}\.mp4$")]
    data: list[SyncLine]


class Translated(BaseModel):
    """One line of the translated dense captions; its id ends in the line's start and end, HHMMSS."""

    model_config = ConfigDict(strict=True, frozen=True)
    custom_id: Annotated[str, Field(pattern=r"^\d{1,9}-[A-Za-z0-9_]{1,40}-(?i:day)[1-9]\d?-\d{1,6}-\d{1,6}$")]
    translated_text: str


class NoCaptions(DataError):
    """A wearer whose captions and transcripts are all missing."""


SYNC_CLIPS = TypeAdapter(list[SyncClip])
TRANSLATED = TypeAdapter(list[Translated])


@dataclass
class Draft:
    """A window being put together."""

    start: float
    end: float
    captions: list[str] = field(default_factory=list)
    transcript: list[Utterance] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cue:
    """One timed line, in seconds on the video's axis: of a transcript, or, as text, of dense captions."""

    start: float
    end: float
    line: Utterance | str


def clean(text: str) -> str:
    """The text on one line: control characters and runs of white space become one space. Nothing else is changed."""
    return " ".join(CONTROL.sub(" ", text).split())[:MAX_TEXT]


def utterance(text: str) -> Utterance:
    """``Jake: Hello`` (or with a full-width colon) as speaker and text; the speaker is empty where none is named."""
    text = clean(text)
    match = SPEAKER.match(text)
    return Utterance(match[1], text[match.end() :]) if match else Utterance("", text)


def read_stream(source: Path, subject: str) -> tuple[Video, list[str]]:
    """The windows of one wearer, and a note for everything that was left out."""
    notes: list[str] = []
    captions = source / "EgoLifeCap"
    sync = sorted((captions / "Sync").glob(f"{subject}_DAY*_*.json"))
    if sync:
        drafts = read_sync(sync, notes)
    else:
        paragraphs = captions / subject / f"{subject}_30sec.json"
        cues = [] if paragraphs.is_file() else list(read_dense(captions / "DenseCaption", subject, notes))
        for script in sorted((captions / "Transcript" / subject).glob("DAY*/*.srt")):
            cues += read_script(script, subject, notes)
        if not paragraphs.is_file() and not cues:
            raise NoCaptions(
                f"{source}: no captions of {subject}; expected EgoLifeCap/Sync/{subject}_DAY1_11000000.json and so on,"
                f" or EgoLifeCap/{subject}/{subject}_30sec.json, or EgoLifeCap/DenseCaption/translated/{subject}_DAY1_"
                f"11000000.jsonl, or EgoLifeCap/Transcript/{subject}/DAY1/*.srt"
            )
        told = read_paragraphs(paragraphs) if paragraphs.is_file() else ()
        drafts = add_cues([Draft(line.start, line.end, [clean(line.text)]) for line in told], cues)
    drafts.sort(key=lambda draft: (draft.end, draft.start))
    if not drafts:
        raise DataError(f"{source}: the caption files of {subject} hold no windows; check the download")
    windows = tuple(
        Window(index, draft.start, draft.end, tuple(draft.captions), tuple(draft.transcript), False)
        for index, draft in enumerate(drafts)
    )
    return Video(subject, windows[-1].end, windows), notes


# ---------------------------------------------------------------- Sync


def read_sync(files: Sequence[Path], notes: list[str]) -> list[Draft]:
    """One window a clip.

    A window ends where the clip ends: 30 s after it began or where the next one begins, but never before its last
    line has ended. So nothing can be known before it happened, and the frames of a window lie within it.
    """
    found: dict[float, tuple[SyncClip, Path]] = {}
    for file in files:
        for clip in parse(SYNC_CLIPS, file):
            day, _, rest = clip.video_file.partition("_")
            start = day_start(day) + clock(rest[-12:-4])
            if start in found:
                notes.append(f"{file.name}: clip {clip.video_file} is there twice; the first is kept")
            else:
                found[start] = (clip, file)
    drafts: list[Draft] = []
    starts = sorted(found)
    for start, following in zip(starts, [*starts[1:], float("inf")], strict=True):
        clip, file = found[start]
        draft = Draft(start, min(start + CLIP, following))
        for line in sorted(clip.data, key=lambda line: at(line.start, start)):
            end = at(line.end, start)
            if end > start + MAX_SPAN or end < start - CLIP:
                notes.append(f"{file.name}: clip {clip.video_file}: a line at {line.start} to {line.end} is left out")
                continue
            draft.end = max(draft.end, end, at(line.start, start))
            if line.type == "caption":
                draft.captions.append(clean(line.text))
            else:
                draft.transcript.append(utterance(line.text))
        drafts.append(draft)
    return drafts


# ---------------------------------------------------------------- dense captions and SRT


def read_dense(folder: Path, subject: str, notes: list[str]) -> Iterator[Cue]:
    """Dense captions: translated where there is a translation, else as published."""
    translated = sorted((folder / "translated").glob(f"{subject}_DAY*_*.jsonl"))
    for file in translated:
        text = ",".join(line for line in read_text(file).text.split("\n") if line.strip())
        for row in validated(TRANSLATED, f"[{text}]", file):
            _, _, day, start, end = row.custom_id.rsplit("-", 4)
            begins = at(int(start), day_start(day))
            yield Cue(begins, at(int(end), begins), clean(row.translated_text))
    for file in [] if translated else sorted((folder / subject).glob("DAY*/*.srt")):
        for cue in read_script(file, subject, notes):
            said = cue.line
            yield Cue(
                cue.start, cue.end, said if isinstance(said, str) else f"{said.speaker}: {said.text}".lstrip(": ")
            )


def read_script(file: Path, subject: str, notes: list[str]) -> Iterable[Cue]:
    """The cues of one hour; their times count from that hour. Of two lines the second is the English one."""
    name = re.fullmatch(rf"(?:{subject}_)?DAY(\d+)(?:_{subject})?_(\d{{8}})(?:\.mp4)?\.srt", file.name)
    if name is None:
        notes.append(f"{file.name}: left out, the name is not {subject}_DAY1_11000000.srt")
        return
    hour = day_start(f"DAY{name[1]}") + clock(name[2])
    for block in re.split(r"\n\s*\n", read_text(file).text):
        lines = [line for line in block.split("\n") if line.strip()]
        place = next((number for number, line in enumerate(lines) if CUE.search(line)), None)
        if place is None or place + 1 >= len(lines):
            if lines:
                notes.append(f"{file.name}: a cue without time or text is left out")
            continue
        numbers = [float(part) for part in CUE.search(lines[place]).groups()]  # type: ignore[union-attr]
        start, end = (hour + h * 3600 + m * 60 + s + ms / 1000 for h, m, s, ms in (numbers[:4], numbers[4:]))
        yield Cue(start, max(start, end), utterance(lines[-1]))


def add_cues(drafts: list[Draft], spoken: Sequence[Cue]) -> list[Draft]:
    """Each cue into the first window that has not ended before it; where none is near, into windows of its own."""
    extra: dict[float, Draft] = {}
    number = 0
    for cue in sorted(spoken, key=lambda cue: (cue.end, cue.start)):
        while number < len(drafts) and drafts[number].end < cue.end:
            number += 1
        if number < len(drafts) and drafts[number].start <= cue.end + CLIP:
            put(drafts[number], cue)
            continue
        start = max(0.0, math.ceil(cue.end / CLIP) - 1) * CLIP
        put(extra.setdefault(start, Draft(start, start + CLIP)), cue)
    return drafts + list(extra.values())


def put(draft: Draft, cue: Cue) -> None:
    """Add a line to a window: text is a caption."""
    if isinstance(cue.line, str):
        draft.captions.append(cue.line)
    else:
        draft.transcript.append(cue.line)


# ---------------------------------------------------------------- reading


def parse(adapter: TypeAdapter[list[Any]], file: Path) -> list[Any]:
    """The entries of a JSON file; says where it has another shape than the published one."""
    return validated(adapter, read_text(file).text, file)


def validated(adapter: TypeAdapter[list[Any]], text: str, file: Path) -> list[Any]:
    """The entries of a JSON text that stands in ``file``."""
    try:
        return adapter.validate_json(text)
    except ValidationError as error:
        raise DataError(f"{file}: not the published format: {first_problem(error)}; check the download") from None
