"""Inside the sandbox: one candidate over one stream, told by the host over fd 0, a forked child per question.

Uses the standard library, the contract and the wire. It shares its interpreter with the candidate, so nothing here
is a wall: it contains accidents. What the host believes is what ``wire`` lets through and what the kernel reports.

At a question the line buffer is empty and the host writes nothing until the question is settled; the child then
talks to the host itself while the parent waits for it.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import gc
import hashlib
import os
import platform
import random
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Generator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from policies.contract import Answer, BadRequest, Json, Query, Refused, Reply, Request, Setup
from sandbox import wire
from sandbox.loader import MemoryModules, OwnNames

PACKAGE = "candidate"
DETAIL = 2_000
NOBODY = 65534
MADV_COLLAPSE = 25
MANY = 8
"""With so many questions, and each time their number has doubled, it pays to have the memory put in large pages."""


class Lines:
    """The protocol's two ends: raw reads into a block of its own, and a private descriptor for writing."""

    def __init__(self, source: int, sink: int) -> None:
        self._source = source
        self._sink = sink
        self.owner = os.getpid()
        """The one process that may speak; a process that the candidate forked and that comes back to us ends."""
        self._buffer = bytearray(1 << 20)
        self._start = self._end = 0
        self._waiting: deque[dict[str, Json]] = deque()

    def write(self, line: bytes) -> None:
        """Write one whole line."""
        if os.getpid() != self.owner:
            os._exit(1)
        view = memoryview(line)
        while view:
            view = view[os.write(self._sink, view) :]

    def command(self) -> dict[str, Json]:
        """The next message, those first that came in while a reply was awaited. Ends the process at end of input."""
        return self._waiting.popleft() if self._waiting else wire.parse(self._line())

    def replies(self) -> list[Json]:
        """The next replies; commands that the host had sent ahead are kept for later."""
        while True:
            message = wire.parse(self._line())
            if message["kind"] == "replies":
                return list(message["replies"])
            self._waiting.append(message)

    def resume(self) -> None:
        """Skip what a child left unread, up to the host's word that the question is closed."""
        closed = wire.encode({"kind": "closed"}).strip()
        while self._line() != closed:
            pass

    def _line(self) -> bytes:
        searched = self._start
        while (found := self._buffer.find(b"\n", searched, self._end)) < 0:
            searched = self._end
            if self._end == len(self._buffer):
                searched -= self._start
                self._make_room()
            got = os.readv(self._source, [memoryview(self._buffer)[self._end :]])
            if not got:
                os._exit(0)
            self._end += got
        line = bytes(memoryview(self._buffer)[self._start : found])
        self._buffer[self._start : found + 1] = bytes(len(line) + 1)  # nothing of an earlier question stays
        self._start = found + 1
        if self._start == self._end:
            self._start = self._end = 0
        return line

    def _make_room(self) -> None:
        """Move what is unread to the front; only a line longer than all of the block makes it grow."""
        unread = self._end - self._start
        self._buffer[: self._end] = self._buffer[self._start : self._end] + bytes(self._start)
        self._start, self._end = 0, unread
        if unread == len(self._buffer):
            self._buffer.extend(bytes(unread))


class Runner:
    """Holds the candidate's policy and carries out the host's commands."""

    def __init__(self, lines: Lines, start: Mapping[str, Json]) -> None:
        self._lines = lines
        self._limits: Mapping[str, int] = start["limits"]
        self._setup: Setup = wire.setup_from_json(start["setup"])
        self._seen: set[int] = set()
        self._asked = 0
        seed_everything(self._setup.seed)
        self._policy = load(start["files"]).Policy(self._setup)

    def observe(self, windows: Sequence[Json]) -> None:
        """Give the policy its next windows."""
        batch = [wire.window_from_json(value) for value in windows]
        self._seen.update(window.index for window in batch)
        self._drive(self._policy.observe(batch))

    def settle(self) -> None:
        """Let the policy do batched work."""
        self._drive(self._policy.settle())

    def question(self, message: Json) -> None:
        """Fork a child for the question, wait for it, and report how it ended."""
        flush()
        gc.freeze()
        self._asked += 1
        if self._asked >= MANY and self._asked.bit_count() == 1:
            collapse()
        child = os.fork()
        if child == 0:
            self._child(message)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        gc.unfreeze()
        kill_strays()
        self._lines.write(wire.encode({"kind": "settled", "status": status}))
        self._lines.resume()

    def _child(self, message: Json) -> NoReturn:
        status = 1
        self._lines.owner = os.getpid()
        try:
            volunteer_for_oom()
            query = wire.query_from_json(message)
            self._lines.write(self._answer_line(self._drive(self._policy.answer(query)), query))
            status = 0
        except BaseException as error:
            self._lines.write(wire.encode({"kind": "crash", "detail": describe(error)}))
        finally:
            flush()
            os._exit(status)

    def _answer_line(self, answer: Any, query: Query) -> bytes:
        """The answer as it is sent, checked as the host will check it, so that a mistake shows as a plain error."""
        if not isinstance(answer, Answer):
            raise TypeError(f"answer() returned {type(answer).__name__}, not an Answer")
        try:
            line = wire.encode(wire.answer_to_json(answer, query.id))
            wire.answer_from_json(wire.parse(line), query, self._seen, self._setup.budget)
        except wire.WireError as error:
            raise ValueError(str(error)) from None
        if len(line) > self._limits["line_bytes"]:
            raise ValueError(f"the answer takes {len(line)} bytes, at most {self._limits['line_bytes']} are allowed")
        return line

    def _drive(self, outcome: Any) -> Any:
        """Run a method to its end, serving what it yields where it is a generator."""
        if not isinstance(outcome, Generator):
            return outcome
        try:
            wanted = next(outcome)
            while True:
                try:
                    reply = self._ask(wanted)
                except Refused as refusal:
                    wanted = outcome.throw(refusal)
                else:
                    wanted = outcome.send(reply)
        except StopIteration as stop:
            return stop.value

    def _ask(self, wanted: Any) -> Any:
        if not isinstance(wanted, list | tuple):
            (reply,) = self._serve([wanted])
            if isinstance(reply, Refused):
                raise reply
            return reply
        replies: list[Reply | Refused] = []
        for first in range(0, len(wanted), wire.MAX_REQUESTS):
            replies += self._serve(wanted[first : first + wire.MAX_REQUESTS])
        return replies

    def _serve(self, wanted: Sequence[Any]) -> list[Reply | Refused]:
        """Replies in the order of ``wanted``; what cannot be sent is refused here and stays at its place."""
        replies: list[Reply | Refused] = []
        sendable: list[bytes] = []
        places: list[int] = []
        for place, request in enumerate(wanted):
            replies.append(BadRequest("not served"))
            try:
                sendable.append(self._checked(request))
                places.append(place)
            except wire.WireError as error:
                replies[place] = BadRequest(str(error))
        for group in self._groups(sendable):
            self._lines.write(b'{"kind":"requests","requests":[' + b",".join(group) + b"]}\n")
            for value in self._lines.replies():
                replies[places.pop(0)] = wire.reply_from_json(value)
        return replies

    def _checked(self, request: Any) -> bytes:
        """The request as it is sent, checked as the host will check it."""
        if not isinstance(request, Request):
            raise TypeError(f"yielded {type(request).__name__}, not a request")
        line = wire.encode(wire.request_to_json(request)).rstrip(b"\n")
        if len(line) + 64 > self._limits["request_bytes"]:
            raise wire.WireError(f"the request takes {len(line)} bytes, at most {self._limits['request_bytes']}")
        wire.requests_from_json(wire.parse(b'{"requests":[' + line + b"]}")["requests"])
        return line

    def _groups(self, requests: list[bytes]) -> list[list[bytes]]:
        """Requests in groups that each fit one line."""
        groups: list[list[bytes]] = []
        room = 0
        for request in requests:
            size = len(request) + 1
            if size > room:
                groups.append([])
                room = self._limits["request_bytes"] - 64
            groups[-1].append(request)
            room -= size
        return groups


# ---------------------------------------------------------------- the candidate


def load(files: Sequence[Json]) -> Any:
    """Compile the candidate's files from memory under one package and import its ``policy`` module."""
    sources = {f"{PACKAGE}/__init__.py": ""}
    for name, digest, content in files:
        data = base64.b64decode(content)
        if hashlib.sha256(data).hexdigest() != digest:
            raise ImportError(f"{name} does not have the digest that was announced")
        sources[f"{PACKAGE}/{name}"] = data.decode()
    modules = MemoryModules(sources)
    sys.meta_path.insert(0, modules)
    sys.meta_path.append(OwnNames(PACKAGE, modules))
    return import_module(f"{PACKAGE}.policy")


def seed_everything(seed: int) -> None:
    """The same draws in every run for a policy that draws without a seed of its own."""
    random.seed(seed)
    with contextlib.suppress(ImportError):
        import_module("numpy").random.seed(seed % 2**32)


# ---------------------------------------------------------------- the process


def flush() -> None:
    """Empty the print buffers, so that a child does not print them once more. The candidate may have broken them."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(BaseException):
            stream.flush()


def volunteer_for_oom() -> None:
    """Under memory pressure the kernel takes the child, not the parent that holds the stream."""
    with contextlib.suppress(OSError):
        number = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(number, b"1000")
        os.close(number)


def kill_strays() -> None:
    """End what a child left running, until none is left. Only as the sandbox's user in a pid namespace of its own (a
    low pid)."""
    if os.getuid() == NOBODY and os.getpid() < 32:
        with contextlib.suppress(OSError):
            for _ in range(1000):
                os.kill(-1, signal.SIGKILL)
                time.sleep(0.001)


def collapse() -> None:
    """Ask the kernel to hold this process's memory in large pages, which a fork copies faster. An old one refuses."""
    libc = ctypes.CDLL(None)
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/maps").read_text(encoding="ascii", errors="replace").splitlines():
            span, rights, _, _, inode, *name = line.split()
            if rights == "rw-p" and inode == "0" and name != ["[stack]"]:
                first, last = (int(edge, 16) for edge in span.split("-"))
                libc.madvise(ctypes.c_void_p(first), ctypes.c_size_t(last - first), MADV_COLLAPSE)


def describe(error: BaseException) -> str:
    """The last line of the traceback, and where in the candidate it was."""
    with contextlib.suppress(BaseException):
        last = traceback.format_exception_only(type(error), error)[-1].strip()
        frames = traceback.extract_tb(error.__traceback__)
        own = [frame for frame in frames if frame.filename.startswith(f"{PACKAGE}/")]
        where = f" ({own[-1].filename.removeprefix(PACKAGE + '/')}:{own[-1].lineno} in {own[-1].name})" if own else ""
        return (last[: DETAIL - len(where)] + where).encode(errors="replace").decode()
    return type(error).__name__


def main(preloaded: Sequence[str]) -> None:
    """Import what every policy uses, say ready, then follow the host's commands until the input ends."""
    sink = os.dup(1)
    os.dup2(2, 1)
    lines = Lines(0, sink)
    for name in (*preloaded, "numpy.random", "simplemma"):
        import_module(name)
    libc = " ".join(platform.libc_ver())
    lines.write(wire.encode({"kind": "ready", "python": platform.python_version(), "libc": libc}))
    try:
        follow(lines)
    except BaseException as error:
        lines.write(wire.encode({"kind": "failed", "detail": describe(error)}))
    finally:
        flush()
        os._exit(1)


def follow(lines: Lines) -> NoReturn:
    """Carry out commands; each but a question is acknowledged with ``done``."""
    runner = Runner(lines, lines.command())
    done = wire.encode({"kind": "done"})
    lines.write(done)
    while True:
        message = lines.command()
        match message["kind"]:
            case "observe":
                runner.observe(message["windows"])
                lines.write(done)
            case "settle":
                runner.settle()
                lines.write(done)
            case "question":
                runner.question(message["query"])
            case other:
                raise ValueError(f"unknown command {other!r}")
