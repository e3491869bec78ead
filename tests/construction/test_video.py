"""Pictures at their times from files as recorders leave them, and bytes that nobody vouches for."""

from __future__ import annotations

import io
import random
from pathlib import Path

import av
import pytest

from harness.construction.video import look, pictures, sounds
from harness.errors import UserError
from tests.construction.conftest import HEIGHT, RATE, WIDTH, bars, make_clip, read_bars

SECONDS = 25


class Pipe(io.RawIOBase):
    """Takes bytes and cannot be gone back in, so that neither index nor length can be filled in."""

    def __init__(self) -> None:
        self.taken = bytearray()

    def writable(self) -> bool:
        return True

    def write(self, data: bytes) -> int:  # type: ignore[override]
        self.taken += data
        return len(data)


@pytest.mark.parametrize(
    ("name", "codec", "kind", "piped", "key_every"),
    [
        ("fragments.mp4", "libx264", "mp4", True, 12),  # as a browser records it
        ("backwards.avi", "mpeg4", "avi", False, 12),  # frames that need later ones, in a format that has no times
        ("stream.mkv", "ffv1", "matroska", True, 12),  # no index, no length
        ("one-key.mp4", "libx264", "mp4", False, 600),
    ],
)
def test_awkward_files(tmp_path: Path, name: str, codec: str, kind: str, piped: bool, key_every: int) -> None:
    file = Pipe() if piped else io.BytesIO()
    options = {"movflags": "frag_keyframe+empty_moov"} if name == "fragments.mp4" else {}
    with av.open(file, "w", format=kind, options=options) as out:
        stream = out.add_stream(codec, rate=RATE)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.gop_size = key_every
        stream.codec_context.max_b_frames = 0 if codec == "ffv1" else 2
        for number in range(SECONDS * RATE):
            frame = av.VideoFrame.from_ndarray(bars(number), format="rgb24")
            frame.pts = number
            out.mux(stream.encode(frame))
        out.mux(stream.encode(None))
    (tmp_path / name).write_bytes(bytes(file.taken) if isinstance(file, Pipe) else file.getvalue())
    contents = look(tmp_path / name)
    assert contents.duration == pytest.approx(SECONDS) and len(contents.frames) == SECONDS * RATE
    times = [0.0, 0.05, 0.15, 9.95, 20.05, 20.15, 24.95]
    seen = [read_bars(picture) for picture in pictures(tmp_path / name, contents, times)]
    assert seen == [0, 0, 1, 99, 200, 201, 249]


def test_damaged_files_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    draw = random.Random(4)
    whole = [make_clip(tmp_path / "a.mp4", 4), make_clip(tmp_path / "b.mkv", 4)]
    read = refused = 0
    for number in range(120):
        file = whole[number % 2]
        content = bytearray(file.read_bytes())
        for _ in range(draw.choice((1, 5, 50))):
            at = draw.randrange(len(content)) if draw.random() < 0.5 else draw.randrange(min(3_000, len(content)))
            content[at : at + draw.choice((0, 1, 1, 30))] = draw.randbytes(draw.choice((0, 1, 1, 30)))
        damaged = tmp_path / f"damaged{file.suffix}"
        damaged.write_bytes(bytes(content))
        try:
            contents = look(damaged)
            assert 0 < contents.duration < 1e9
            assert len(list(pictures(damaged, contents, [0.0, 1.0, 3.0]))) == 3
            if contents.sound:
                assert len(list(sounds(damaged, contents, [(0.0, 2.0), (2.0, 4.0)]))) == 2
            read += 1
        except UserError as error:
            assert "\n" not in str(error) and "damaged" in str(error)
            refused += 1
    assert read >= 10 and refused >= 10, (read, refused)
