"""Frames by time, from the video files and images of a data set.

Only regular files of the data set's folder are opened, by descriptor, never by a name that a file gives; what cannot
be decoded is no frame.
"""

from __future__ import annotations

import hashlib
import io
import math
import os
from bisect import bisect_right
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from threading import Lock

import av
from av.container import InputContainer

from harness.data.native import DataError, Dataset, FrameFile, open_file
from harness.data.pictures import MOST_PIXELS, decoded, encoded, image_pixels, opened, picture_stream, ticks
from harness.evaluation.services import FrameImage

IMAGES = (".png", ".jpg", ".jpeg")
MOST_IMAGE_BYTES = 4 * MOST_PIXELS
STEPS_BACK = (0.0, 10.0, math.inf)
"""Seconds before the time asked for at which the search begins, one after the other. Not given by the source."""


class RecordedFrames:
    """Serves the frames of a data set; implements ``harness.evaluation.services.FrameSource``. Thread-safe."""

    def __init__(self, dataset: Dataset) -> None:
        self._folder = dataset.path
        self._entries = dataset.manifest.files
        self._files = {video.id: sorted(video.frames, key=lambda file: file.start) for video in dataset.videos.values()}
        self._firsts: dict[str, int] = {}
        self._verified: set[tuple[str | int, ...]] = set()
        self._lock = Lock()

    def nearest(self, video: str, at: float, before: float) -> FrameImage | None:
        """The frame nearest to ``at`` that is not later than ``before``, the earlier of two as near; None without one.

        Times are seconds on the video's axis. Raises ``DataError`` where a file is not the one in the manifest.
        """
        files = self._files.get(video, [])
        place = bisect_right(files, min(at, before), key=lambda file: file.start)
        found = [
            image
            for file in files[max(0, place - 1) : place + 1]
            if file.start <= before and (image := self._from_file(file, at, before)) is not None
        ]
        return min(found, key=lambda image: (abs(image.time - at), image.time), default=None)

    def _from_file(self, file: FrameFile, at: float, before: float) -> FrameImage | None:
        with os.fdopen(open_file(self._folder, file.path), "rb") as handle:
            self._verify(handle, file.path)
            if file.path.endswith(IMAGES):
                data = handle.read(MOST_IMAGE_BYTES)
                return None if image_pixels(data) is None else FrameImage(file.start, data)
            try:
                with opened(handle) as container:
                    return self._from_video(container, file, at, before)
            except Exception:  # a third party's decoder over hostile bytes: whatever it raises, there is no frame
                return None

    def _from_video(self, container: InputContainer, file: FrameFile, at: float, before: float) -> FrameImage | None:
        """Seek to the key frame before the time asked for, then decode up to the frames around it.

        Some files' indexes lead past that time; then the search begins further back, at last with the first frame.
        """
        stream = picture_stream(container)
        first = self._firsts.get(file.path)
        if first is None:
            first = self._firsts.setdefault(file.path, next(decoded(container, stream))[0])
        tick = float(stream.time_base or 0)
        wanted = max(file.start, min(at, before))
        for back in STEPS_BACK:
            origin = max(0.0, wanted - file.start - back)
            container.seek(first + int(origin / tick), stream=stream)
            frames = ((file.start + (pts - first) * tick, frame) for pts, frame in decoded(container, stream))
            head = next(frames, None)
            if head is not None and (head[0] <= wanted or origin == 0):
                found = closest(chain([head], frames), at, before)
                return None if found is None else FrameImage(found[0], encoded(found[1]))
        return None

    def _verify(self, handle: io.BufferedReader, name: str) -> None:
        """Compare a file with the manifest once, and again when it has changed since."""
        status = os.fstat(handle.fileno())
        state = (name, status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        with self._lock:
            if state in self._verified:
                return
            entry = self._entries.get(name)
            if entry is None or hashlib.file_digest(handle, "sha256").hexdigest() != entry.sha256:
                raise DataError(
                    f"{self._folder / name}: not the bytes that the manifest names (sha256); import or make it again"
                )
            handle.seek(0)
            self._verified.add(state)


def closest(
    frames: Iterable[tuple[float, av.VideoFrame]], at: float, before: float
) -> tuple[float, av.VideoFrame] | None:
    """Of frames in order of time, the one nearest to ``at`` that is not later than ``before``; the earlier of two."""
    best: tuple[float, av.VideoFrame] | None = None
    for time, frame in frames:
        if time > before:
            break
        if best is None or abs(time - at) < abs(best[0] - at):
            best = (time, frame)
        if time >= at:
            break
    return best


def open_frames(dataset: Dataset) -> RecordedFrames | None:
    """The data set's frames; None where no video has any."""
    return RecordedFrames(dataset) if any(video.frames for video in dataset.videos.values()) else None


def frame_times(file: Path) -> tuple[float, ...]:
    """Times of a video file's frames in seconds after its first one, in order; an image has one, at 0.

    Nothing of a video is decoded. Raises ``DataError`` where the file cannot be read as a video or an image.
    """
    with os.fdopen(open_file(file.parent, file.name), "rb") as handle:
        if file.suffix in IMAGES:
            if image_pixels(handle.read(MOST_IMAGE_BYTES)) is None:
                raise DataError(f"{file}: not an image that can be decoded; give a PNG or JPEG file")
            return (0.0,)
        try:
            with opened(handle) as container:
                stream = picture_stream(container)
                found = ticks(container, stream)
                tick = float(stream.time_base or 0)
        except Exception:  # as above
            found = []
    if not found:
        raise DataError(f"{file}: not a video that can be read; give an MP4, Matroska, WebM or AVI file")
    return tuple((pts - found[0]) * tick for pts in found)


def file_digest(folder: Path, name: str) -> str:
    """SHA-256 of a file of any size; raises ``DataError`` where it is no regular file."""
    with os.fdopen(open_file(folder, name), "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
