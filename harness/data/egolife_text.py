"""The text stream of EgoLife in its three published forms, as windows of about 30 s.

``Sync``: one JSON file an hour, clips with timed caption and transcript lines; preferred. Where it is missing: the 30 s
captions (``SUBJECT_30sec.json``) and the transcript's SRT files, either or both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from harness.data.native import MAX_TEXT, DataError, Video, first_problem, read_file
from policies.contract import Utterance, Window

DAY = 86_400
FRAMES_PER_SECOND = 20
CLIP = 30.0
"""Nominal length of a clip in seconds."""
MAX_SPAN = 600.0
"""A line may end so many seconds after its clip began; anything later is a slip of the file."""
SPEAKER = re.compile(r"(\(?[^\W\d_][^:：\d]{0,39}?)\s*[:：]\s*")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
CUE = re.compile(r"(\d{1,2}):(\d\d):(\d\d)[,.](\d{1,3})\s*-->\s*(\d{1,2}):(\d\d):(\d\d)[,.](\d{1,3})")

HHMMSSFF = Annotated[str, Field(pattern=r"^\d{8}$")]


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


class Paragraph(BaseModel):
    """One entry of the 30 s captions."""

    model_config = ConfigDict(strict=True, frozen=True)
    start_time: HHMMSSFF
    end_time: HHMMSSFF
    text: str
    date: Annotated[str, Field(pattern=r"^(?i:day)[1-9]\d?$")]


SYNC_CLIPS = TypeAdapter(list[SyncClip])
PARAGRAPHS = TypeAdapter(list[Paragraph])


@dataclass
class Draft:
    """A window being put together."""

    start: float
    end: float
    captions: list[str] = field(default_factory=list)
    transcript: list[Utterance] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Cue:
    """One line of a transcript file, in seconds on the video's axis."""

    start: float
    end: float
    line: Utterance


def clock(time: str) -> float:
    """Seconds since midnight of HHMMSSFF."""
    return digits(int(time[:6])) + int(time[6:8]) / FRAMES_PER_SECOND


def digits(time: int) -> float:
    """Seconds since midnight of the digits HHMMSS, whose leading zeros are lost."""
    return time // 10_000 * 3600.0 + time // 100 % 100 * 60 + time % 100


def day_start(date: str) -> float:
    """Seconds at which a day such as ``DAY2`` (in any case) begins on the video's axis."""
    return (int(date[3:]) - 1) * float(DAY)


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
    sync = sorted((source / "EgoLifeCap" / "Sync").glob(f"{subject}_DAY*_*.json"))
    if sync:
        drafts = read_sync(sync, notes)
    else:
        paragraphs = source / "EgoLifeCap" / subject / f"{subject}_30sec.json"
        scripts = sorted((source / "EgoLifeCap" / "Transcript" / subject).glob("DAY*/*.srt"))
        if not paragraphs.is_file() and not scripts:
            raise DataError(
                f"{source}: no captions of {subject}; expected EgoLifeCap/Sync/{subject}_DAY1_11000000.json and so on,"
                f" or EgoLifeCap/{subject}/{subject}_30sec.json, or EgoLifeCap/Transcript/{subject}/DAY1/*.srt"
            )
        drafts = read_paragraphs(paragraphs) if paragraphs.is_file() else []
        drafts = add_cues(drafts, [cue for script in scripts for cue in read_script(script, subject, notes)])
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


def at(time: int, clip_start: float) -> float:
    """Seconds on the video's axis of HHMMSS in a clip; a clip may run past midnight."""
    seconds = clip_start // DAY * DAY + digits(time)
    return seconds + DAY if seconds < clip_start - DAY / 2 else seconds


# ---------------------------------------------------------------- 30 s captions and SRT


def read_paragraphs(file: Path) -> list[Draft]:
    """One window an entry."""
    drafts: list[Draft] = []
    for entry in parse(PARAGRAPHS, file):
        start = day_start(entry.date) + clock(entry.start_time)
        end = day_start(entry.date) + clock(entry.end_time)
        if end < start:
            end += DAY
        drafts.append(Draft(start, max(end, start + 1 / FRAMES_PER_SECOND), [clean(entry.text)]))
    return sorted(drafts, key=lambda draft: (draft.start, draft.end))


def read_script(file: Path, subject: str, notes: list[str]) -> Iterable[Cue]:
    """The cues of one hour; their times count from that hour. Of two lines the second is the English one."""
    name = re.fullmatch(rf"(?:{subject}_)?DAY(\d+)(?:_{subject})?_(\d{{8}})(?:\.mp4)?\.srt", file.name)
    if name is None:
        notes.append(f"{file.name}: left out, the name is not {subject}_DAY1_11000000.srt")
        return
    hour = day_start(f"DAY{name[1]}") + clock(name[2])
    for block in re.split(r"\n\s*\n", decode(read_file(file.parent, file.name, None), file).replace("\r\n", "\n")):
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
            drafts[number].transcript.append(cue.line)
            continue
        start = cue.start // CLIP * CLIP
        draft = extra.setdefault(start, Draft(start, start + CLIP))
        draft.end = max(draft.end, cue.end)
        draft.transcript.append(cue.line)
    return drafts + list(extra.values())


# ---------------------------------------------------------------- reading


def decode(content: bytes, file: Path) -> str:
    """UTF-8, with or without a byte order mark."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{file}: byte {error.start} is not UTF-8; check the download") from None


def parse(adapter: TypeAdapter[list[Any]], file: Path) -> list[Any]:
    """The entries of a JSON file; says where it has another shape than the published one."""
    try:
        return adapter.validate_json(decode(read_file(file.parent, file.name, None), file))
    except ValidationError as error:
        raise DataError(f"{file}: not the published format: {first_problem(error)}; check the download") from None
