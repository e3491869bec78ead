"""The engine's framed stream over a real socket pair."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox.docker_stream import Attached


def frame(stream: int, payload: bytes) -> bytes:
    return bytes([stream, 0, 0, 0]) + len(payload).to_bytes(4, "big") + payload


def soon() -> float:
    return time.monotonic() + 15.0


@pytest.fixture
def pair() -> Iterator[tuple[Attached, socket.socket]]:
    ours, engine = socket.socketpair()
    yield Attached(ours, log_bytes=100, print_bytes=10_000), engine
    ours.close()
    engine.close()


@settings(max_examples=60, deadline=None)
@given(
    lines=st.lists(st.binary(max_size=40).map(lambda line: line.replace(b"\n", b" ")), max_size=8),
    prints=st.lists(st.binary(max_size=30), max_size=5),
    cuts=st.lists(st.integers(1, 60), max_size=40),
)
def test_any_framing_and_chunking_gives_the_same_lines(
    lines: list[bytes], prints: list[bytes], cuts: list[int]
) -> None:
    text = b"".join(line + b"\n" for line in lines)
    frames = b"".join(frame(1, text[n : n + 7]) + frame(2, b"") for n in range(0, len(text), 7))
    frames += b"".join(frame(2, part) for part in prints)
    ours, engine = socket.socketpair()
    with ours, engine:
        attached = Attached(ours, log_bytes=1000, print_bytes=10_000)
        for cut in cuts:
            engine.sendall(frames[:cut])
            frames = frames[cut:]
        engine.sendall(frames)
        assert [attached.receive(100, soon()) for _ in lines] == lines
        engine.close()
        with pytest.raises(EOFError):
            attached.receive(100, soon())
        assert attached.ended and attached.gone
        assert bytes(attached._log) == b"".join(prints)


def test_log_is_capped_and_escaped(pair: tuple[Attached, socket.socket]) -> None:
    attached, engine = pair
    engine.sendall(frame(2, b"\x1b[2J" + b"x" * 5000) + frame(1, b"line\n"))
    assert attached.receive(100, soon()) == b"line"
    assert attached.log().startswith("\\x1b[2Jxxx")
    assert len(attached.log()) <= 100


@pytest.mark.parametrize("data", [frame(1, b"x" * 101), frame(1, b"x" * 101 + b"\n"), frame(2, b"y" * 10_001)])
def test_too_much_is_refused(pair: tuple[Attached, socket.socket], data: bytes) -> None:
    attached, engine = pair
    engine.sendall(data)
    with pytest.raises(ValueError, match="over its limit"):
        attached.receive(100, soon())


def test_nothing_in_time(pair: tuple[Attached, socket.socket]) -> None:
    attached, _ = pair
    with pytest.raises(TimeoutError):
        attached.receive(100, time.monotonic() + 0.02)
    with pytest.raises(TimeoutError):
        attached.send(b"x" * 50_000_000, time.monotonic() + 0.05)


def test_sending_takes_in_what_comes_meanwhile(pair: tuple[Attached, socket.socket]) -> None:
    """Both sides write more than the sockets hold before either has read: neither may block for good."""
    attached, engine = pair
    ours, theirs = b"a" * 3_000_000, frame(1, b"b" * 2_999_999 + b"\n")

    def other_side() -> None:
        engine.sendall(theirs)
        got = 0
        while got < len(ours):
            got += len(engine.recv(1 << 20))

    thread = threading.Thread(target=other_side)
    thread.start()
    attached.send(ours, time.monotonic() + 10)
    thread.join(10)
    assert not thread.is_alive()
    assert len(attached.receive(4_000_000, soon())) == 2_999_999


def test_the_other_side_is_gone(pair: tuple[Attached, socket.socket]) -> None:
    attached, engine = pair
    engine.sendall(frame(1, b"last\n"))
    engine.close()
    with pytest.raises(BrokenPipeError):
        attached.send(b"x", soon())
    assert attached.gone
    assert attached.receive(100, soon()) == b"last"
