"""One channel from its bundle to its end: commands out, hostile lines in, deadlines on the host's clock.

Time that the host's own services take is never counted against the candidate.
"""

from __future__ import annotations

import base64
import hashlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ParamSpec, TypeVar

from policies.contract import Json, Query, Setup, Window
from sandbox import wire
from sandbox.bundle import verify
from sandbox.interface import Bundle, Channel, Ending, Host, Limits, QuestionOutcome, Verdict
from sandbox.text import one_line

P = ParamSpec("P")
T = TypeVar("T")

CREDIT = 49_152
"""Bytes of commands sent ahead of their acknowledgement; less than a pipe holds, so that neither side can block."""
_CLOSED = wire.encode({"kind": "closed"})


class Failure(Exception):
    """The channel is of no more use. ``verdict`` is None where it ended by itself: how it ended then decides."""

    def __init__(self, verdict: Verdict | None, detail: str) -> None:
        super().__init__(detail)
        self.verdict = verdict
        self.detail = one_line(detail)
        self.query: Query | None = None
        """The question that was open."""
        self.seconds = 0.0
        self.served_seconds = 0.0


class Session:
    """Drives one channel for one candidate; ``limits`` and ``deadline`` (monotonic, of the shard) are the host's."""

    def __init__(self, channel: Channel, limits: Limits, host: Host, deadline: float) -> None:
        self._channel = channel
        self._limits = limits
        self._host = host
        self._deadline = deadline
        self._received = 0
        self._seen: set[int] = set()
        self._setup: Setup | None = None
        self._unsent = b""
        self.oom_kills = 0
        """Seen when it was last asked for."""
        self.served_seconds = 0.0
        self.questions = 0
        """Questions put so far."""

    def close(self) -> Ending:
        """End the channel and everything in it."""
        return self._channel.close()

    def retire(self) -> str:
        """End a channel that did all it was asked. Returns what was printed."""
        return self._channel.retire()

    # ------------------------------------------------------------ the stream

    def start(self, bundle: Bundle, setup: Setup) -> None:
        """Send the bundle; the policy is constructed when this returns. Raises Failure, BundleError."""
        verify(bundle)
        files = [
            [name, hashlib.sha256(content).hexdigest(), base64.b64encode(content).decode()]
            for name, content in bundle.files
        ]
        limits = {"line_bytes": self._limits.line_bytes, "request_bytes": self._limits.request_bytes}
        message = {"kind": "start", "setup": wire.setup_to_json(setup), "files": files, "limits": limits}
        self._setup = setup
        self.feed([wire.encode(message)])

    def saw(self, windows: Iterable[Window]) -> None:
        """Note the windows that evidence may name from now on."""
        self._seen.update(window.index for window in windows)

    def feed(self, commands: Sequence[bytes]) -> float:
        """Send commands, a few ahead, and await that each is done. Returns the seconds the candidate took."""
        began, served = time.monotonic(), self.served_seconds
        waiting: deque[int] = deque()
        for command in commands:
            while waiting and sum(waiting) + len(command) > CREDIT:
                self._await_done()
                waiting.popleft()
            self._send(command, self._limits.observe_seconds)
            waiting.append(len(command))
        for _ in waiting:
            self._await_done()
        return time.monotonic() - began - (self.served_seconds - served)

    def _await_done(self) -> None:
        timer = _Timer(self, self._limits.observe_seconds)
        while True:
            message, _ = self._receive(timer)
            match wire.kind_of(message):
                case "done":
                    self._exact(message, ("kind",))
                    return
                case "requests":
                    self._serve(message, None, timer)
                case "failed":
                    self._exact(message, ("kind", "detail"))
                    raise Failure(Verdict.CRASH, self._text(message["detail"]))
                case other:
                    raise Failure(Verdict.PROTOCOL, f"{other!r} while windows were observed")

    # ------------------------------------------------------------ a question

    def ask(self, query: Query) -> QuestionOutcome:
        """Put one question and wait until it is settled. Raises Failure where the channel is lost over it."""
        self.questions += 1
        timer = _Timer(self, self._limits.answer_seconds)
        try:
            return self._ask(query, timer)
        except Failure as failure:
            failure.query, failure.seconds, failure.served_seconds = query, timer.elapsed, timer.served
            raise

    def _ask(self, query: Query, timer: _Timer) -> QuestionOutcome:
        self._send(wire.encode({"kind": "question", "query": wire.query_to_json(query)}), timer.limit)
        answer = None
        crash: str | None = None
        seconds = 0.0
        while True:
            message, size = self._receive(timer)
            kind = wire.kind_of(message)
            if kind == "settled":
                break
            if answer is not None or crash is not None:
                raise Failure(Verdict.PROTOCOL, f"{kind!r} after the question was answered")
            if kind == "requests":
                self._serve(message, query, timer)
            elif kind == "answer":
                if size > self._limits.line_bytes:
                    raise Failure(Verdict.OUTPUT_LIMIT, f"an answer of {size} bytes")
                assert self._setup is not None
                answer = self._checked(wire.answer_from_json, message, query, self._seen, self._setup.budget)
                seconds = timer.elapsed
            elif kind == "crash":
                self._exact(message, ("kind", "detail"))
                crash = self._text(message["detail"])
            else:
                raise Failure(Verdict.PROTOCOL, f"{kind!r} while a question was open")
        self._exact(message, ("kind", "status"))
        status = self._checked(wire.integer, message["status"], "status", -128, 255)
        self._unsent = _CLOSED
        verdict, detail = Verdict.OK, ""
        if status != 0 or answer is None:
            answer, seconds = None, timer.elapsed
            verdict, detail = Verdict.CRASH, crash or f"no answer; the child ended with status {status}"
            if self.ran_out_of_memory():
                verdict, detail = Verdict.OOM, f"the kernel ended the child at {self._limits.memory_mb} MB"
        return QuestionOutcome(query.id, verdict, answer, one_line(detail), seconds, timer.served)

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel ended processes for memory since this was last asked."""
        before, self.oom_kills = self.oom_kills, self._channel.oom_kills()
        return self.oom_kills > before

    # ------------------------------------------------------------ lines

    def _serve(self, message: Mapping[str, Json], query: Query | None, timer: _Timer) -> None:
        """Serve the requests of one line; the clock of the candidate stands still meanwhile."""
        self._exact(message, ("kind", "requests"))
        requests = self._checked(wire.requests_from_json, message["requests"])
        began = time.monotonic()
        replies = [wire.reply_to_json(self._host.serve(request, query)) for request in requests]
        line = wire.encode({"kind": "replies", "replies": replies})
        taken = time.monotonic() - began
        timer.served += taken
        self.served_seconds += taken
        self._send(line, self._limits.answer_seconds)

    def _send(self, data: bytes, seconds: float) -> None:
        data, self._unsent = self._unsent + data, b""
        try:
            self._channel.send(data, min(time.monotonic() + seconds, self._deadline + self.served_seconds))
        except TimeoutError:
            raise Failure(Verdict.TIMEOUT, "it did not read what was sent to it") from None
        except BrokenPipeError:
            self._drain()
            raise Failure(None, "it ended while it was sent to") from None

    def _drain(self) -> None:
        """It is gone; a last word of why may still lie in the channel."""
        try:
            message, _ = self._receive(_Timer(self, 1.0))
        except Failure:
            return
        if message.get("kind") == "failed":
            raise Failure(Verdict.CRASH, self._text(message.get("detail")))

    def _receive(self, timer: _Timer) -> tuple[dict[str, Json], int]:
        """The next message and its size in bytes. Raises Failure."""
        try:
            line = self._channel.receive(self._limits.request_bytes, timer.deadline(self._deadline))
        except TimeoutError:
            raise Failure(Verdict.TIMEOUT, f"nothing within {timer.limit:g} s") from None
        except EOFError:
            raise Failure(None, "it ended") from None
        except ValueError:
            raise Failure(Verdict.OUTPUT_LIMIT, f"a line of more than {self._limits.request_bytes} bytes") from None
        self._received += len(line) + 1
        if self._received > self._limits.output_bytes:
            raise Failure(Verdict.OUTPUT_LIMIT, f"more than {self._limits.output_bytes} bytes in all")
        message = self._checked(wire.parse, line)
        self._checked(wire.kind_of, message)
        return message, len(line)

    def _exact(self, message: Mapping[str, Json], keys: tuple[str, ...]) -> None:
        self._checked(wire.record, message, str(message["kind"]), keys)

    def _text(self, value: Json) -> str:
        return self._checked(wire.text, value, "detail", wire.MAX_TEXT)

    @staticmethod
    def _checked(check: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return check(*args, **kwargs)
        except wire.WireError as error:
            raise Failure(Verdict.PROTOCOL, str(error)) from None


class _Timer:
    """A span of the candidate's time; ``served`` is what the host's services took out of it."""

    def __init__(self, session: Session, limit: float) -> None:
        self._session = session
        self._began = time.monotonic()
        self.limit = limit
        self.served = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds since the start, services included."""
        return time.monotonic() - self._began

    def deadline(self, shard: float) -> float:
        """When the span ends on the monotonic clock, or the shard's own span where that ends first."""
        return min(self._began + self.limit + self.served, shard + self._session.served_seconds)
