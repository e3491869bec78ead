"""Videos read by PyAV: what is in one, pictures at given times, sound cut at given times. Files are not trusted.

Times are seconds after the video's first frame, which is where a data set puts the file's ``start``.
"""

from __future__ import annotations

import io
import wave
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from harness.construction.windows import WINDOW
from harness.data.native import MAX_WINDOWS
from harness.data.pictures import MOST_PACKETS, MOST_PIXELS, opened, upright
from harness.errors import UserError

LONG_SIDE = 768
"""Pixels of a caption's picture, at the most. Not given by the source: small print stays readable, and the usual
vision models take such a picture in one to four tiles."""
QUALITY = "3"
"""Quantiser of a caption's JPEG, 2 (best) to 31. Not given by the source: no blocks to be seen at this size."""
SEEK = 8.0
"""Seconds ahead from which a seek is cheaper than decoding on: few videos have a key frame less often."""
MISSING = 1.0
"""Seconds by which a video may end before the length that its header states; players differ by some frames."""
HERTZ = 16_000
"""Samples per second of the sound that is sent; what speech models work at."""
JITTER = 0.1
"""Seconds by which a sound frame's time may be off before the gap is filled or the overlap cut."""
SILENT = 33
"""Largest 16-bit sample (-60 dB) of sound in which nobody speaks: it is not sent, for models invent words for it.
Not given by the source."""


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a video file."""

    duration: float
    """Seconds from the first frame to the end of the last."""
    first: float
    """The container's own time of the first frame, in seconds."""
    frames: tuple[float, ...]
    """Times of all frames, in order; the first is 0."""
    sound: bool


def look(file: Path) -> Contents:
    """Read a video's packets and decode its first frame.

    Raises UserError: not a video, no picture, no decoder, cut short (it ends more than ``MISSING`` seconds before the
    length that its header states).
    """
    with _reading(file) as container:
        stream = _picture(container, file)
        sound = _sound(container)
        stated, tick = _stated(container, stream), float(stream.time_base)
        stamps: list[int] = []
        ends = [0.0]
        for number, packet in enumerate(container.demux([s for s in (stream, sound) if s is not None])):
            if number > MOST_PACKETS:
                raise UserError(f"{file}: has more than {MOST_PACKETS:,} packets; split it")
            if packet.pts is None:
                continue
            if packet.stream.index == stream.index:
                stamps.append(packet.pts)
            ends.append(float((packet.pts + (packet.duration or 0)) * packet.time_base))
        if not stamps:
            raise UserError(f"{file}: holds no frame with a time; copy or convert it again")
        stamps.sort()
        frames = tuple((stamp - stamps[0]) * tick for stamp in stamps)
        step = float(np.median(np.diff(frames[-100:]))) if len(frames) > 1 else 1.0
        if frames[-1] > MAX_WINDOWS * WINDOW:
            raise UserError(
                f"{file}: the times of its frames are damaged ({frames[-1]:.0f} s); copy or convert it again"
            )
        stated = max(stated, max(ends) + (stream.frames - len(frames)) * step)
        if stated - max(ends) > MISSING:
            raise UserError(
                f"{file}: is cut short: its header says {stated:.1f} s, it ends at {max(ends):.1f} s; copy it again,"
                " or convert what is there to a new file"
            )
    with _reading(file) as container:
        shown = next(_decoded(container, _picture(container, file)), None)
    if shown is None:
        raise UserError(f"{file}: none of its frames can be decoded; convert it, for example to H.264 in MP4")
    return Contents(frames[-1] + step, _time(shown), frames, sound is not None)


def pictures(file: Path, contents: Contents, times: Sequence[float]) -> Iterator[bytes]:
    """What is to be seen at each of ``times`` (ascending), as JPEG: the last frame that began by then.

    Raises UserError where a stretch of the video cannot be decoded.
    """
    with _reading(file) as container:
        stream = _picture(container, file)
        frames = _decoded(container, stream)
        shown: Any = None
        ahead: Any = None
        for time in times:
            at = contents.first + time + 1e-6
            if (ahead or shown) is not None and at - _time(ahead or shown) > SEEK:
                container.seek(int(at / stream.time_base), stream=stream)
                frames, ahead = _decoded(container, stream), None
                ahead = next(frames, None)
                if ahead is None or _time(ahead) > at:  # an index that cannot be trusted: from the start, then
                    container.seek(int(contents.first / stream.time_base), stream=stream)
                    frames, ahead = _decoded(container, stream), None
                shown = None
            while ahead is None or _time(ahead) <= at:
                shown = ahead or shown
                ahead = next(frames, None)
                if ahead is None:
                    break
            if shown is None:
                shown = ahead  # nothing before: the first frame that there is
            if shown is None:
                raise UserError(f"{file}: cannot be decoded at {time:.1f} s; convert it to a new file")
            yield jpeg(shown)


def sounds(file: Path, contents: Contents, cuts: Sequence[tuple[float, float]]) -> Iterator[bytes]:
    """The sound of each stretch (ascending, without overlap) as a mono WAV file; empty where nothing is to be heard."""
    with _reading(file) as container:
        samples = _samples(container, file, contents.first)
        at, held = 0, np.zeros(0, np.int16)  # the first sample that is held, and all that are
        for start, end in cuts:
            begin, until = round(start * HERTZ), round(end * HERTZ)
            pieces = [held]
            while at + sum(map(len, pieces)) < until and (piece := next(samples, None)) is not None:
                pieces.append(piece)
            held = np.concatenate(pieces)
            heard = held[max(0, begin - at) : max(0, until - at)]
            held, at = held[max(0, until - at) :], at + min(len(held), max(0, until - at))
            yield _wav(heard) if len(heard) and int(np.abs(heard.astype(np.int32)).max()) > SILENT else b""


def jpeg(frame: Any) -> bytes:
    """A decoded frame as JPEG, at most ``LONG_SIDE`` pixels long; the same frame gives the same bytes."""
    frame = upright(frame)
    scale = min(1.0, LONG_SIDE / max(frame.width, frame.height))
    width, height = (max(2, round(side * scale) // 2 * 2) for side in (frame.width, frame.height))
    picture = frame.reformat(width=width, height=height, format="yuvj420p")
    codec: Any = av.CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = width, height, "yuvj420p", Fraction(1)
    codec.thread_count = 1
    codec.options = {"qmin": QUALITY, "qmax": QUALITY}
    picture.pts, picture.time_base = 0, codec.time_base
    return b"".join(bytes(packet) for part in (picture, None) for packet in codec.encode(part))


# ---------------------------------------------------------------- containers


@contextmanager
def _reading(file: Path) -> Iterator[Any]:
    """The opened container; what the library raises inside becomes one line."""
    try:
        if not file.stat().st_size:
            raise UserError(f"{file}: is empty; copy it again")
        with file.open("rb") as handle, opened(handle) as container:
            yield container
    except UserError:
        raise
    except Exception as error:  # a third party's decoder over bytes that nobody vouches for
        if isinstance(error, OSError) and not isinstance(error, av.FFmpegError):
            raise UserError(f"{file}: cannot be read: {error.strerror}") from None
        raise UserError(
            f"{file}: cannot be read as a video (damaged, cut short, or of an unknown kind); copy or convert it again"
        ) from None


def _picture(container: Any, file: Path) -> Any:
    stream = next(iter(container.streams.video), None)
    if stream is None or stream.disposition & stream.disposition.attached_pic:  # a record's cover
        raise UserError(f"{file}: has no picture; give a video, or its transcript as SRT or VTT")
    if stream.codec_context is None:
        raise UserError(f"{file}: there is no decoder for its codec; convert it, for example to H.264 in MP4")
    if stream.width * stream.height > MOST_PIXELS:
        raise UserError(f"{file}: {stream.width} x {stream.height} pixels, at most {MOST_PIXELS:,} are read; scale it")
    stream.thread_type = "AUTO"
    stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}
    return stream


def _sound(container: Any) -> Any:
    return next((s for s in container.streams.audio if s.codec_context is not None), None)


def _stated(container: Any, stream: Any) -> float:
    """The length that the header states, in seconds; 0 where it states none.

    Some containers count it from the first frame and some from 0: it is compared with the end as counted from 0,
    which a video that is whole reaches either way.
    """
    if stream.duration is not None:
        return float(stream.duration * stream.time_base)
    return float((container.duration or 0) / av.time_base)


def _decoded(container: Any, stream: Any) -> Iterator[Any]:
    """Pictures from here on that are whole."""
    return (f for f in _timed(container, stream) if not f.is_corrupt and f.width * f.height <= MOST_PIXELS)


def _timed(container: Any, stream: Any) -> Iterator[Any]:
    """Frames with a time, from here on; damaged packets are passed over."""
    for packet in container.demux(stream):
        try:
            frames = packet.decode()
        except av.error.EOFError:
            return
        except av.FFmpegError:
            continue
        yield from (frame for frame in frames if frame.pts is not None)


def _time(frame: Any) -> float:
    return float(frame.pts * frame.time_base)


# ---------------------------------------------------------------- sound


def _samples(container: Any, file: Path, first: float) -> Iterator[np.ndarray]:
    """All sound in pieces, from the video's first frame on, without gaps: what is missing is silence."""
    stream = _sound(container)
    if stream is None:
        raise UserError(f"{file}: has no sound; give its transcript as SRT or VTT")
    resampler = av.AudioResampler(format="s16", layout="mono", rate=HERTZ)
    position = 0
    for frame in _decoded_sound(container, stream, resampler):
        piece = frame.to_ndarray().reshape(-1)
        begins = round((_time(frame) - first) * HERTZ)
        off = begins - position
        if off > JITTER * HERTZ:
            for at in range(0, off, HERTZ):  # as long as anybody wants it: a damaged time may be years ahead
                yield np.zeros(min(HERTZ, off - at), np.int16)
            position += off
        elif off < -JITTER * HERTZ or begins < 0:
            piece = piece[min(len(piece), -off) :]
        position += len(piece)
        if len(piece):
            yield piece


def _decoded_sound(container: Any, stream: Any, resampler: Any) -> Iterator[Any]:
    for frame in _timed(container, stream):
        yield from resampler.resample(frame)
    yield from (frame for frame in resampler.resample(None) if frame.pts is not None)


def _wav(samples: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(HERTZ)
        file.writeframes(samples.astype("<i2").tobytes())
    return buffer.getvalue()
