"""Everything that is asked to be built, read and checked before anything is spent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.construction import axis, video
from harness.construction.captions import read_captions
from harness.construction.lines import Line, Read
from harness.construction.sources import Piece
from harness.construction.transcripts import read_transcript
from harness.construction.windows import ROUNDING, SHORTEST, Draft, grid, put
from harness.data.frames import frame_times
from harness.data.native import DataError, FrameFile
from harness.errors import UserError

PICTURES = frozenset({".png", ".jpg", ".jpeg"})
MOST_PICTURES = 20_000
"""Of one video, as in the native format."""


@dataclass(frozen=True)
class Clip:
    """One clip with its place on the axis."""

    file: Path
    start: float
    contents: video.Contents
    drafts: Sequence[Draft]
    """Its windows, without gaps, the first of which begins with it; models add lines to them."""
    captioned: bool
    spoken: bool
    """Whether captions, and a transcript, were given with it."""


@dataclass(frozen=True)
class Material:
    """All of one video."""

    beginning: float
    """Where its first piece begins, in seconds on the axis."""
    clips: Sequence[Clip]
    drafts: Sequence[Draft]
    """All windows in order, the clips' among them."""


def read(pieces: Sequence[Piece], encoding: str | None, notes: list[str]) -> Material:
    """The material of one video from its pieces, in order of time.

    Raises UserError: an unusable file, clips that overlap by more than ``SHORTEST``, text from before its clip.
    """
    clips: list[Clip] = []
    lines: list[Line] = []
    starts: list[float] = []
    end = 0.0
    for number, piece in enumerate(pieces):
        starts.append(end if piece.start is None else piece.start)
        told = _lines(piece, starts[-1], encoding, notes)
        lines += told
        if piece.clip is None:
            end = max(line.end for line in told)
            continue
        later = [p.start for p in pieces[number + 1 :] if p.clip is not None]
        clips.append(_clip(piece, starts[-1], later[0] if later else None, told, notes))
        end = clips[-1].drafts[-1].end
        if len(clips) > 1 and starts[-1] < (before := clips[-2].drafts[-1].end) - ROUNDING:
            raise UserError(
                f"{piece.clip}: begins at {axis.shown(starts[-1])}, before {clips[-2].file} ends at"
                f" {axis.shown(before)}; correct the times in the names, or build two videos"
            )
    origin = min([*starts, *(line.start for line in lines)])
    return Material(starts[0], clips, put([draft for clip in clips for draft in clip.drafts], lines, origin))


def _lines(piece: Piece, start: float, encoding: str | None, notes: list[str]) -> list[Line]:
    captions = read_captions(piece.captions, start, encoding) if piece.captions else Read(())
    transcript = read_transcript(piece.transcript, start, encoding) if piece.transcript else Read(())
    notes += [*captions.notes, *transcript.notes]
    return [*captions.lines, *transcript.lines]


def _clip(piece: Piece, start: float, after: float | None, lines: Sequence[Line], notes: list[str]) -> Clip:
    """``after`` is where the next clip begins: this one may run up to ``SHORTEST`` into it, which is cut off."""
    assert piece.clip is not None
    contents = video.look(piece.clip)
    end = start + contents.duration
    if after is not None and end - SHORTEST <= after < end:
        end = after
    early = min((line.start for line in lines), default=start)
    if early < start - ROUNDING:
        raise UserError(
            f"{piece.captions or piece.transcript}: speaks of {axis.shown(early)}, before {piece.clip} begins at"
            f" {axis.shown(start)}; correct the times, or --start"
        )
    over = max((line.end for line in lines), default=end) - end
    if over > SHORTEST:
        notes.append(f"{piece.clip}: its captions or transcript go on for {over:.1f} s after its end; are they of it?")
    captioned, spoken = any(not line.spoken for line in lines), any(line.spoken for line in lines)
    return Clip(piece.clip, start, contents, grid(start, end), captioned, spoken)


def images(folder: Path, video_id: str, beginning: float) -> tuple[list[FrameFile], dict[str, Path]]:
    """Pictures named for their time, ``90.5.jpg`` or ``DAY1T11-00-05.png``: entries of the manifest, and their files.

    Raises UserError: a name without a time, two of the same time, a file that is no picture, too many.
    """
    if not folder.is_dir():
        raise UserError(f"--frames {folder}: there is no such folder; give one with pictures named 90.5.jpg")
    at: dict[float, Path] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() not in PICTURES:
            continue
        moment = axis.named(path.stem)
        moment = axis.seconds(path.stem, beginning) if moment is None else moment
        if moment is None:
            raise UserError(f"{path}: its name is no time; name it for its second, 90.5.jpg, or DAY1T11-00-05.jpg")
        if (moment := round(moment, 3)) in at:
            raise UserError(f"{path}: {at[moment].name} stands at the same time; remove one of them")
        at[moment] = path
    if not 0 < len(at) <= MOST_PICTURES:
        raise UserError(f"--frames {folder}: holds {len(at)} pictures; give from 1 to {MOST_PICTURES:,} (PNG or JPEG)")
    files = []
    for moment, path in sorted(at.items()):
        try:
            frame_times(path.resolve())
        except DataError as error:
            raise UserError(str(error)) from None
        files.append(
            FrameFile(path=f"frames/{video_id}-{round(moment * 1_000):012d}{path.suffix.lower()}", start=moment)
        )
    return files, {file.path: at[file.start] for file in files}
