"""Decoding of video files and images that are not trusted, and encoding of single frames.

Only self-contained formats are recognised, so that no file can name another file or an address; the size of a frame
and the work for one request are bounded. Over hostile bytes the library may raise anything: callers expect that.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from fractions import Fraction
from typing import IO, Any

import av
import numpy as np
from av.container import InputContainer
from av.video.stream import VideoStream

FORMATS = "matroska,webm,mov,mp4,m4a,3gp,3g2,mj2,avi,png_pipe,jpeg_pipe"
"""Formats that hold all of their data themselves; play lists and the like are refused."""
OPTIONS = {"format_whitelist": FORMATS, "protocol_whitelist": "none"}
MOST_PIXELS = 4096 * 2304
"""Pixels of a frame that is decoded: 4K. Not given by the source."""
MOST_WORK = 2_000 * 1920 * 1080
"""Pixels decoded for one request: from a key frame on, over a minute of full HD at 30 a second. Not given."""
LEAST_WORK = 1 << 14
"""What a frame counts at least, however small it is. Not given."""
MOST_PACKETS = 5_000_000
"""Packets looked at when the times of a file's frames are listed: a day at 50 a second. Not given."""
LOSSLESS_PIXELS = 1 << 18
"""Frames of at most so many pixels become PNG, without loss; larger ones JPEG. Not given."""


def opened(handle: IO[bytes], kind: str | None = None) -> InputContainer:
    """A container over an open file."""
    return av.open(handle, "r", format=kind, options=OPTIONS, metadata_errors="replace")


def picture_stream(container: InputContainer) -> VideoStream:
    """The container's first video stream, decoded in the caller's thread, frames of bounded size only."""
    stream: VideoStream = container.streams.video[0]
    stream.codec_context.thread_count = 1
    stream.codec_context.options = {"max_pixels": str(MOST_PIXELS)}
    return stream


def ticks(container: InputContainer, stream: VideoStream) -> list[int]:
    """Time stamps of all frames in order, without decoding them."""
    found: list[int] = []
    for packet in container.demux(stream):
        if len(found) > MOST_PACKETS:
            raise ValueError("too many packets")
        if packet.pts is not None and packet.size:
            found.append(packet.pts)
    return sorted(found)


def decoded(container: InputContainer, stream: VideoStream) -> Iterator[tuple[int, av.VideoFrame]]:
    """Frames with their time stamps from here on, as many as one request may cost."""
    work = 0
    for frame in container.decode(stream):
        work += max(frame.width * frame.height, LEAST_WORK)
        if work > MOST_WORK or frame.width * frame.height > MOST_PIXELS:
            raise ValueError("too much to decode")
        if frame.pts is not None:
            yield frame.pts, frame


def image_pixels(data: bytes) -> np.ndarray | None:
    """RGB bytes (height, width, 3) of a PNG or JPEG image; None where it is none, is broken or is too large."""
    kind = "png_pipe" if data.startswith(b"\x89PNG") else "jpeg_pipe"
    try:
        with opened(io.BytesIO(data), kind) as container:
            return next(decoded(container, picture_stream(container)))[1].to_ndarray(format="rgb24")
    except Exception:  # a third party's decoder over hostile bytes: whatever it raises, there is no image
        return None


def upright(frame: av.VideoFrame) -> av.VideoFrame:
    """The frame as it is to be looked at: a telephone held upright films on its side and says so."""
    quarters = round(frame.rotation / 90) % 4
    if not quarters:
        return frame
    turned: Any = np.ascontiguousarray(np.rot90(frame.to_ndarray(format="rgb24"), quarters))
    return av.VideoFrame.from_ndarray(turned, format="rgb24")


def encoded(frame: av.VideoFrame) -> bytes:
    """The frame upright at its own size: PNG where that is small, else JPEG."""
    frame = upright(frame)
    small = frame.width * frame.height <= LOSSLESS_PIXELS
    codec: Any = av.CodecContext.create("png" if small else "mjpeg", "w")
    codec.width, codec.height, codec.time_base = frame.width, frame.height, Fraction(1)
    codec.pix_fmt = "rgb24" if small else "yuvj420p"
    if not small:
        codec.options = {"qmin": "2", "qmax": "2"}
    picture = frame.reformat(format=codec.pix_fmt)
    picture.pts, picture.time_base = 0, codec.time_base
    return b"".join(bytes(packet) for part in (picture, None) for packet in codec.encode(part))
