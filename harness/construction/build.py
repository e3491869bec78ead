"""``harness memory build``, top to bottom: read all, ask models for what is missing, write the data set at once.

A build keeps no state but the replies that it was sent, in ``OUT.replies`` beside the data set. Begun again after a
kill, it reads its sources again and finds every reply that was received.
"""

from __future__ import annotations

import glob
import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.config import Config
from harness.construction import axis, describing, material, prompts, sources
from harness.construction.describing import Watch
from harness.construction.material import Clip, Material
from harness.construction.questions import Splits, read_questions
from harness.construction.windows import finished
from harness.data.native import MAX_LINE, MAX_LINES_PER_WINDOW, MAX_WINDOWS, FrameFile, Video
from harness.data.write import DatasetParts, Written, encode, window_row, write
from harness.errors import UserError
from harness.models.hub import ModelHub
from harness.models.interface import Role, Usage
from harness.models.preflight import preflight
from harness.state.folder import lock
from policies.contract import Window

VERSION = 1
"""Of this way of building; it stands in the manifest."""


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be built."""

    sources: tuple[Path, ...]
    out: Path
    questions: Path | None = None
    start: float | None = None
    """Seconds on the axis, of pieces whose names do not say it."""
    video: str | None = None
    """One video of all pieces; else each piece is one."""
    frames: Path | None = None
    """A folder of pictures, for a video without clips."""
    transcribe: bool = False
    pictures: int = describing.PICTURES
    parallel: int = describing.PARALLEL
    encoding: str | None = None


@dataclass(frozen=True, slots=True)
class Built:
    """What was built, and what it came to in all sessions of this build."""

    written: Written
    spent: Mapping[Role, Usage]
    seconds: Mapping[Role, float]
    """Inside calls."""
    asked: int
    """Requests answered in this session."""
    kept: int
    """Replies that were there from an earlier one."""
    replies: Path | None
    """Where they are kept; None where no model was needed."""


def build(order: Order, config: Config, watch: Watch, announce: Callable[[str], None]) -> Built:
    """Build the data set ``order.out``, a new folder that appears whole or not at all.

    Raises UserError for whatever is wrong with the sources, before anything is spent, and where a call cannot be
    served; what was received is kept.
    """
    with _workplace(order.out) as replies:
        notes: list[str] = []
        videos = sources.by_video(sources.pieces(order.sources), order.video, order.start)
        found = {name: material.read(pieces, order.encoding, notes) for name, pieces in videos.items()}
        pictures = _images(order, found)
        splits = _questions(order, found, notes)
        captions, speech = _wanted(order, config, found, notes)
        asked = kept = 0
        spent: Mapping[Role, Usage] = {}
        seconds: Mapping[Role, float] = {}
        if captions or speech:
            with _models(config, replies, bool(captions), bool(speech), announce) as models:
                for told in _told(order, models, captions, speech, watch):
                    asked, kept = asked + told.asked, kept + told.kept
                    notes += told.notes
                spent, seconds = models.spent(), models.seconds()
        parts = _parts(order, found, splits, pictures, _origin(order, config, captions, speech), notes)
        written = write(parts, order.out, notes)
        return Built(written, spent, seconds, asked, kept, replies if captions or speech else None)


@contextmanager
def _workplace(out: Path) -> Iterator[Path]:
    """The folder of the replies, held by this build alone; without replies it is gone at the end."""
    if out.exists() or out.is_symlink():
        raise UserError(f"{out}: exists already; choose another --out, or remove it (its replies are kept beside it)")
    replies = out.with_name(out.name + ".replies")
    with ExitStack() as held:
        try:
            replies.mkdir(parents=True, exist_ok=True)
            held.enter_context(lock(replies))
        except OSError as error:
            raise UserError(f"{replies}: cannot be written: {error.strerror}; choose another --out") from None
        except UserError:
            raise UserError(f"{out}: another process is building it; wait for it, or stop it") from None
        try:
            for left in out.parent.glob(f".{glob.escape(out.name)}.????????"):  # of a build killed while it wrote
                shutil.rmtree(left, ignore_errors=True)
            yield replies
        finally:
            if {path.name for path in replies.iterdir()} <= {"run.lock"}:
                shutil.rmtree(replies, ignore_errors=True)


# ---------------------------------------------------------------- what is missing


def _wanted(
    order: Order, config: Config, found: Mapping[str, Material], notes: list[str]
) -> tuple[list[Clip], list[Clip]]:
    """The clips that the captioner is to describe, and those that the transcriber is to hear."""
    clips = [clip for one in found.values() for clip in one.clips]
    unheard = [clip for clip in clips if order.transcribe and not clip.spoken]
    speech = [clip for clip in unheard if clip.contents.sound]
    mute = [clip for clip in unheard if not clip.contents.sound]
    if order.transcribe and not speech:
        why = f"{mute[0].file} has no sound" if mute else "no video is without a transcript"
        raise UserError(f"--transcribe: there is nothing to transcribe: {why}; leave it out")
    notes += [f"{clip.file}: has no sound, so it has no transcript" for clip in mute]
    if speech and config.role(Role.TRANSCRIBER) is None:
        raise UserError(
            f"--transcribe: profile {config.run.profile} names no transcriber; set [profiles.NAME.roles.transcriber],"
            " or HARNESS_TRANSCRIBE_MODEL with --profile openai"
        )
    captions = [clip for clip in clips if not clip.captioned]
    if captions and config.role(Role.CAPTIONER) is None:
        for clip in captions:
            if not clip.spoken and clip not in speech:
                raise UserError(
                    f"{clip.file}: has neither captions nor transcript, and profile {config.run.profile} names no"
                    f" captioner; give {clip.file.stem}.json or {clip.file.stem}.srt, or choose a --profile with one"
                )
            notes.append(f"{clip.file}: has no captions: profile {config.run.profile} names no captioner")
        captions = []
    return captions, speech


@contextmanager
def _models(
    config: Config, replies: Path, captions: bool, speech: bool, announce: Callable[[str], None]
) -> Iterator[ModelHub]:
    roles = [role for role, wanted in ((Role.CAPTIONER, captions), (Role.TRANSCRIBER, speech)) if wanted]
    preflight(config, roles)
    models = ModelHub(config, replies)
    try:
        for line in models.banner():
            if line.startswith(("caps of the run", *roles, *(f"caps of {role}" for role in roles))):
                announce(line)
        yield models
    finally:
        models.close()


def _told(
    order: Order, models: ModelHub, captions: Sequence[Clip], speech: Sequence[Clip], watch: Watch
) -> Iterator[describing.Told]:  # fmt: skip
    """Ask for what is missing and put it into the windows."""
    if captions:
        yield describing.caption(models, captions, order.pictures, order.parallel, watch)
    if speech:
        yield describing.transcribe(models, speech, order.parallel, watch)


# ---------------------------------------------------------------- what is written


def _images(order: Order, found: Mapping[str, Material]) -> tuple[list[FrameFile], dict[str, Path]]:
    if order.frames is None:
        return [], {}
    if len(found) > 1:
        raise UserError(f"--frames: there are {len(found)} videos; name one with --video, or build each apart")
    ((name, one),) = found.items()
    if one.clips:
        raise UserError(f"--frames: {one.clips[0].file} has its own frames; leave out the one or the other")
    return material.images(order.frames, name, one.beginning)


def _questions(order: Order, found: Mapping[str, Material], notes: list[str]) -> Splits:
    if order.questions is None:
        return {}
    beginnings = {name: one.beginning for name, one in found.items()}
    splits = read_questions(order.questions, beginnings, order.encoding, notes)
    for question in (question for asked in splits.values() for question, _ in asked):
        end = found[question.video].drafts[-1].end
        if question.time > end:
            late = question.time - end
            notes.append(
                f"question {question.id} is asked {late:,.0f} s after its video's end; times count from its start"
            )
    return splits


def _parts(
    order: Order,
    found: Mapping[str, Material],
    splits: Splits,
    pictures: tuple[list[FrameFile], dict[str, Path]],
    origin: Mapping[str, str | int],
    notes: list[str],
) -> DatasetParts:
    videos: list[Video] = []
    files: dict[str, Path] = dict(pictures[1])
    for name, one in found.items():
        frames, times = list(pictures[0]), [file.start for file in pictures[0]]
        for number, clip in enumerate(one.clips, 1):
            part = f"-{number}" if len(one.clips) > 1 else ""
            path = f"frames/{name}{part}{clip.file.suffix.lower()}"
            frames.append(FrameFile(path=path, start=round(clip.start, 3)))
            files[path] = clip.file
            times += [frames[-1].start + at for at in clip.contents.frames]
        windows = finished(one.drafts, sorted(times))
        _check(name, windows)
        if bare := len(one.drafts) - len(windows):
            notes.append(f"{name}: {bare} window(s) without captions and transcript are left out")
        videos.append(Video(name, max(draft.end for draft in one.drafts), windows, tuple(frames)))
    return DatasetParts(sources.safe_name(order.out.name, "memory"), origin, videos, splits, files)


def _check(name: str, windows: Sequence[Window]) -> None:
    """The bounds of the native format."""
    if not windows:
        raise UserError(f"{name}: no window holds captions or a transcript; give the one or the other")
    if len(windows) > MAX_WINDOWS:
        raise UserError(f"{name}: {len(windows):,} windows, a video has at most {MAX_WINDOWS:,}; build it in parts")
    if windows[-1].end > axis.MOST:
        raise UserError(f"{name}: ends at {windows[-1].end:g} s, at most {axis.MOST:g}; correct its times or --start")
    for window in windows:
        lines = max(len(window.captions), len(window.transcript))
        if lines > MAX_LINES_PER_WINDOW or len(encode(window_row(window)).encode()) > MAX_LINE:
            raise UserError(
                f"{name}: too much text at {window.start:g} s ({lines:,} lines); check the times of its source"
            )


def _origin(
    order: Order, config: Config, captions: Sequence[Clip], speech: Sequence[Clip]
) -> dict[str, str | int]:  # fmt: skip
    """How the data was made. Clips stand in the manifest with their digests; of the text files, this is one."""
    digest = hashlib.sha256()
    pieces = sources.pieces(order.sources)
    for piece in pieces:
        for file in (piece.captions, piece.transcript):
            if file is not None:
                digest.update(file.read_bytes())
    origin: dict[str, str | int] = {"builder": "memory build", "version": VERSION}
    if any(piece.captions or piece.transcript for piece in pieces):
        origin["text_sha256"] = digest.hexdigest()
    captioner, transcriber = config.role(Role.CAPTIONER), config.role(Role.TRANSCRIBER)
    if captions and captioner:
        origin |= {"captioner": captioner.model, "prompt": prompts.VERSION, "pictures": order.pictures}
    if speech and transcriber:
        origin |= {"transcriber": transcriber.model}
    return origin
