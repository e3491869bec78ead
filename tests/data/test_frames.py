"""Frames by time: the right pixels, never a frame after the limit, and nothing but no frame from hostile files."""

from __future__ import annotations

import io
import json
import random
import struct
import threading
import zlib
from collections.abc import Mapping
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data.check import check
from harness.data.frames import RecordedFrames, frame_times, open_frames
from harness.data.native import DataError, FrameFile, Gold, Question, Video, load, permitted_artifacts
from harness.data.pictures import image_pixels
from harness.data.write import DatasetParts, write
from policies.contract import Window

WIDTH, HEIGHT, RATE, LENGTH = 96, 64, 10, 60
CODECS = {"h264.mp4": ("libx264", "yuv420p"), "ffv1.mkv": ("ffv1", "bgr0"), "mpeg4.avi": ("mpeg4", "yuv420p")}
AWKWARD = {
    "fragments.mp4": ("libx264", "yuv420p"),  # as a browser records it
    "backwards.avi": ("mpeg4", "yuv420p"),  # frames that need later ones, in a format that has no times
    "stream.webm": ("libvpx", "yuv420p"),  # no index, no length
    "one-key.mp4": ("libx264", "yuv420p"),
}
FORMATS = {"mp4": "mp4", "mkv": "matroska", "avi": "avi", "ebm": "webm"}


class Pipe(io.RawIOBase):
    """Takes bytes and cannot be gone back in, so that no index can be filled in."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.taken += data
        return len(data)


def video_bytes(name: str, first: int = 0) -> bytes:
    """Six seconds; frame k has k + first as eight black or white columns, so that pixels say which frame it is."""
    codec, pixels = (CODECS | AWKWARD)[name]
    piped = name in ("fragments.mp4", "stream.webm")
    file = Pipe() if piped else io.BytesIO()
    options = {"movflags": "frag_keyframe+empty_moov"} if name == "fragments.mp4" else {}
    with av.open(file, "w", format=FORMATS[name[-3:]], options=options) as container:
        stream = container.add_stream(codec, rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, pixels
        stream.codec_context.gop_size = 600 if name == "one-key.mp4" else 12
        stream.codec_context.max_b_frames = 2 if name == "backwards.avi" or codec == "libx264" else 0
        for number in range(LENGTH):
            bits = [255 * ((number + first) >> bit & 1) for bit in range(8)]
            row = np.repeat(np.array(bits, np.uint8), WIDTH // 8)
            frame = av.VideoFrame.from_ndarray(np.tile(row[None, :, None], (HEIGHT, 1, 3)), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return bytes(file.taken) if isinstance(file, Pipe) else file.getvalue()


def number_of(data: bytes) -> int:
    pixels = image_pixels(data)
    assert pixels is not None and pixels.shape == (HEIGHT, WIDTH, 3)
    return sum(int(pixels[HEIGHT // 2, (2 * bit + 1) * WIDTH // 16, 0] > 127) << bit for bit in range(8))


def png_bytes(width: int, height: int, rows: bytes) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def numbered_png(number: int) -> bytes:
    row = np.repeat(np.array([255 * (number >> bit & 1) for bit in range(8)], np.uint8), WIDTH // 8)
    return png_bytes(WIDTH, HEIGHT, (b"\0" + np.repeat(row, 3).tobytes()) * HEIGHT)


def make(folder: Path, files: Mapping[str, bytes], starts: Mapping[str, float], covered: bool = True) -> RecordedFrames:
    """A data set of one video whose frames are ``files``; names in alphabetical order."""
    frames = tuple(FrameFile(path=f"frames/{name}", start=starts[name]) for name in sorted(files))
    windows = (Window(0, 0, 30, ("I wait.",), (), covered),)
    parts = DatasetParts(
        "small", {}, [Video("v", 900, windows, frames)], {}, {f"frames/{n}": b for n, b in files.items()}
    )
    write(parts, folder)
    found = open_frames(load(folder))
    assert found is not None
    return found


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> RecordedFrames:
    """Three videos, numbered on from 0, 60 and 120, and two images with the numbers 200 and 201."""
    files = {name: video_bytes(name, 60 * order) for order, name in enumerate(CODECS)}
    files |= {"one.png": numbered_png(200), "two.png": numbered_png(201)}
    starts = {"h264.mp4": 10.0, "ffv1.mkv": 20.0, "mpeg4.avi": 30.0, "one.png": 40.0, "two.png": 50.5}
    return make(tmp_path_factory.mktemp("frames") / "data", files, starts)


SHOWN = {10 + k / RATE: k for k in range(60)} | {20 + k / RATE: 60 + k for k in range(60)}
SHOWN |= {30 + k / RATE: 120 + k for k in range(60)} | {40.0: 200, 50.5: 201}


@settings(max_examples=150, deadline=None)
@given(st.floats(0, 70), st.floats(0, 70))
def test_the_nearest_frame_up_to_the_limit_by_its_pixels(source: RecordedFrames, at: float, before: float) -> None:
    image = source.nearest("v", at, before)
    allowed = [time for time in SHOWN if time <= before - 0.001]
    if image is None:
        assert not allowed
        return
    assert image.time <= before
    assert number_of(image.data) == min((abs(time - image.time), number) for time, number in SHOWN.items())[1]
    if allowed:
        assert abs(image.time - at) <= min(abs(time - at) for time in allowed) + 0.001


@pytest.mark.parametrize("name", AWKWARD)
def test_awkward_files_give_every_frame_at_its_time(name: str, tmp_path: Path) -> None:
    frames = make(tmp_path / "data", {name: video_bytes(name)}, {name: 10.0})
    for number in range(LENGTH):
        at = 10 + number / RATE + 0.002
        image = frames.nearest("v", at, at)
        assert image is not None and image.time <= at and number_of(image.data) == number


def test_a_video_without_frames_has_none(source: RecordedFrames, tmp_path: Path) -> None:
    assert source.nearest("another", 10, 20) is None
    write(DatasetParts("none", {}, [Video("v", 90, (Window(0, 0, 30, ("I wait.",), (), False),))], {}), tmp_path / "d")
    assert open_frames(load(tmp_path / "d")) is None


def test_two_frames_as_near_give_the_earlier(source: RecordedFrames) -> None:
    image = source.nearest("v", 45.25, 60)
    assert image is not None and image.time == 40.0


def test_many_threads_see_what_one_sees(source: RecordedFrames) -> None:
    wanted = [(10 + 0.7 * k, 60.0) for k in range(50)]
    alone = [source.nearest("v", *request) for request in wanted]
    found: list[list[object]] = []

    def ask() -> None:
        found.append([source.nearest("v", *request) for request in wanted])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [alone] * 4


def test_large_frames_are_jpeg_at_their_own_size(tmp_path: Path) -> None:
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        stream = container.add_stream("libx264", rate=1)
        stream.width, stream.height = 1280, 720
        container.mux(stream.encode(av.VideoFrame.from_ndarray(np.full((720, 1280, 3), 200, np.uint8), format="rgb24")))
        container.mux(stream.encode(None))
    image = make(tmp_path / "data", {"large.mp4": file.getvalue()}, {"large.mp4": 0}).nearest("v", 5, 5)
    assert image is not None and image.data.startswith(b"\xff\xd8\xff")
    pixels = image_pixels(image.data)
    assert pixels is not None and pixels.shape == (720, 1280, 3) and abs(int(pixels.mean()) - 200) < 4


# ---------------------------------------------------------------- files that mean no good


def hostile(secret: Path) -> dict[str, bytes]:
    """By name; ``secret`` is a video that the files try to have opened."""
    return {
        "list.mp4": f"#EXTM3U\n#EXT-X-TARGETDURATION:9\n#EXTINF:9,\nfile://{secret}\n#EXT-X-ENDLIST\n".encode(),
        "concat.mkv": f"ffconcat version 1.0\nfile '{secret}'\n".encode(),
        "dash.webm": b'<?xml version="1.0"?><MPD type="static" mediaPresentationDuration="PT9S"><Period><AdaptationSet '
        b'mimeType="video/webm"><Representation id="1" bandwidth="1"><BaseURL>http://127.0.0.1:9/</BaseURL>'
        b"</Representation></AdaptationSet></Period></MPD>",
        "empty.mp4": b"",
        "zeros.mov": bytes(4096),
        "text.png": b"hello",
        "cut.png": numbered_png(3)[:60],
        "page.jpg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "bomb.png": png_bytes(60_000, 60_000, b""),
        "wide.png": png_bytes(20_000, 20_000, bytes(60_001)),
    }


def test_hostile_files_are_no_frame(tmp_path: Path) -> None:
    secret = tmp_path / "secret.mkv"
    secret.write_bytes(video_bytes("ffv1.mkv"))
    files = hostile(secret)
    frames = make(tmp_path / "data", files, {name: 10.0 * order for order, name in enumerate(sorted(files))})
    for time in range(0, 120, 5):
        assert frames.nearest("v", time, 200) is None
    for name in files:
        with pytest.raises(DataError, match="not a"):
            frame_times(tmp_path / "data" / "frames" / name)


@pytest.mark.parametrize("name", CODECS)
def test_damaged_videos_give_frames_within_the_limit_or_none(name: str, tmp_path: Path) -> None:
    whole, draw = video_bytes(name), random.Random(7)
    served = 0
    for number in range(40):
        damaged = bytearray(whole)
        for _ in range(draw.choice([1, 5, 50])):
            place = draw.randrange(len(damaged) if number % 2 else 400)
            damaged[place] = draw.randrange(256)
        kept = bytes(damaged[: draw.randrange(len(damaged))] if number % 3 == 0 else damaged)
        frames = make(tmp_path / str(number), {name: kept}, {name: 10.0})
        for at, before in ((10, 10.5), (13.5, 12), (900, 900)):
            image = frames.nearest("v", at, before)
            served += image is not None
            assert image is None or (image.time <= before and image_pixels(image.data) is not None)
    assert served


def test_only_the_folders_own_regular_files_are_opened(tmp_path: Path) -> None:
    frames = make(tmp_path / "data", {"one.png": numbered_png(1)}, {"one.png": 1.0})
    file = tmp_path / "data" / "frames" / "one.png"
    elsewhere = tmp_path / "elsewhere.png"
    elsewhere.write_bytes(file.read_bytes())
    file.unlink()
    file.symlink_to(elsewhere)
    with pytest.raises(DataError, match="symbolic link"):
        load(tmp_path / "data")
    with pytest.raises(DataError, match="symbolic link"):
        frames.nearest("v", 1, 1)


def test_a_file_that_changed_is_an_error_and_not_another_frame(tmp_path: Path) -> None:
    frames = make(tmp_path / "data", {"one.png": numbered_png(1)}, {"one.png": 1.0})
    assert frames.nearest("v", 1, 1) is not None
    (tmp_path / "data" / "frames" / "one.png").write_bytes(numbered_png(2))
    with pytest.raises(DataError, match="sha256"):
        frames.nearest("v", 1, 1)


# ---------------------------------------------------------------- the manifest


def change(folder: Path, edit: str, value: object) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["videos"][0]["frames"][0][edit] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("edit", "value"),
    [
        ("path", "frames/../one.png"),
        ("path", "/etc/passwd"),
        ("path", "http://127.0.0.1/one.mp4"),
        ("path", "frames/one.m3u8"),
        ("path", "frames/absent.png"),
        ("start", -1.0),
        ("start", "1"),
        ("rate", 30),
    ],
)
def test_a_wrong_entry_is_one_clear_error(edit: str, value: object, tmp_path: Path) -> None:
    make(tmp_path / "data", {"one.png": numbered_png(1)}, {"one.png": 1.0})
    change(tmp_path / "data", edit, value)
    with pytest.raises(DataError) as caught:
        load(tmp_path / "data")
    assert "\n" not in str(caught.value) and "manifest.json" in str(caught.value)


def test_loading_sees_missing_and_cut_files(tmp_path: Path) -> None:
    make(tmp_path / "data", {"one.png": numbered_png(1)}, {"one.png": 1.0})
    file = tmp_path / "data" / "frames" / "one.png"
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(DataError, match="the manifest says"):
        load(tmp_path / "data")
    file.unlink()
    with pytest.raises(DataError, match="not found"):
        load(tmp_path / "data")


def test_writing_wants_every_named_file_and_no_other(tmp_path: Path) -> None:
    windows = (Window(0, 0, 30, ("I wait.",), (), True),)
    named = Video("v", 90, windows, (FrameFile(path="frames/one.png", start=0),))
    for parts in (DatasetParts("a", {}, [named], {}), DatasetParts("a", {}, [], {}, {"frames/one.png": b"x"})):
        with pytest.raises(DataError, match=r"frames/one\.png"):
            write(parts, tmp_path / "data")
    (tmp_path / "picture").write_bytes(numbered_png(9))
    write(DatasetParts("a", {}, [named], {}, {"frames/one.png": tmp_path / "picture"}), tmp_path / "data")
    assert (tmp_path / "data" / "frames" / "one.png").read_bytes() == numbered_png(9)


def test_the_check_compares_frames_with_what_windows_say(tmp_path: Path) -> None:
    make(tmp_path / "good", {"a.mp4": video_bytes("h264.mp4")}, {"a.mp4": 5.0})
    assert check(tmp_path / "good") == []
    make(tmp_path / "unsaid", {"a.mp4": video_bytes("h264.mp4")}, {"a.mp4": 29.9}, covered=False)
    assert ["a frame lies in it" in str(problem) for problem in check(tmp_path / "unsaid")] == [True]
    make(tmp_path / "late", {"a.mp4": video_bytes("h264.mp4")}, {"a.mp4": 30.0})
    assert ["no frame lies in it" in str(problem) for problem in check(tmp_path / "late")] == [True]
    make(tmp_path / "broken", {"a.mp4": b"nothing"}, {"a.mp4": 5.0})
    assert any("not a video" in str(problem) for problem in check(tmp_path / "broken"))


def test_frames_seen_before_the_last_development_question_are_permitted(tmp_path: Path) -> None:
    windows = (Window(0, 0, 30, ("I wait.",), (), True),)
    named = tuple(FrameFile(path=f"frames/{name}.png", start=start) for name, start in (("one", 5), ("two", 50)))
    asked = (Question("q", "v", "EntityLog", "Where?", {"A": "Here", "B": "There"}, 40), Gold("A", ()))
    images = {file.path: numbered_png(1) for file in named}
    write(DatasetParts("a", {}, [Video("v", 90, windows, named)], {"development": [asked]}, images), tmp_path / "data")
    listed = permitted_artifacts(load(tmp_path / "data"))
    assert [(entry["path"], entry.get("until")) for entry in listed] == [
        ("windows/v.jsonl", 40),
        ("frames/one.png", 40),
        ("questions/development.jsonl", None),
    ]


def test_times_are_counted_from_the_first_frame(tmp_path: Path) -> None:
    for name in CODECS:
        (tmp_path / name).write_bytes(video_bytes(name))
        assert frame_times(tmp_path / name) == pytest.approx([k / RATE for k in range(LENGTH)], abs=0.001)
    (tmp_path / "one.png").write_bytes(numbered_png(1))
    assert frame_times(tmp_path / "one.png") == (0.0,)
