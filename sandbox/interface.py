"""The one interface of the sandbox: run a bundle over a shard under limits, get a typed verdict per question.

Back ends (Docker, bubblewrap) implement ``Sandbox`` and ``Channel``; ``sandbox.stream.run_shard`` drives
either. Nothing here knows of gold answers. All times are seconds measured on the host's monotonic clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

from policies.contract import Answer, Query, Refused, Reply, Request, Window


class Verdict(StrEnum):
    """How one question (or a whole shard) ended. Only OK carries an answer."""

    OK = "OK"
    CRASH = "CRASH"
    TIMEOUT = "TIMEOUT"
    OOM = "OOM"
    OUTPUT_LIMIT = "OUTPUT_LIMIT"
    PROTOCOL = "PROTOCOL"
    SANDBOX_ERROR = "SANDBOX_ERROR"
    """The sandbox failed, not the candidate: the result says nothing about the candidate."""


class SandboxError(Exception):
    """The sandbox itself could not do its work; ``str(error)`` is one line that says what to do."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one container may use. Held by the host; no candidate file can change it."""

    memory_mb: int = 1024
    cpus: float = 1.0
    pids: int = 64
    open_files: int = 64
    file_mb: int = 16
    """Largest file it can write, and the size of its temporary file system."""
    answer_seconds: float = 10.0
    """For one question, time spent inside the host's own services not counted."""
    observe_seconds: float = 60.0
    """For one batch of windows or one settle, likewise."""
    shard_seconds: float = 900.0
    line_bytes: int = 65_536
    """One protocol line that is an answer."""
    request_bytes: int = 1_048_576
    """One protocol line that carries requests."""
    output_bytes: int = 67_108_864
    """All that the channel may carry from one container."""
    log_bytes: int = 65_536
    """What is kept of the candidate's prints."""
    timeouts: int = 5
    """Timed-out questions that end the shard."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """The reviewed bytes of a candidate: sorted (path, content) pairs. See ``sandbox.bundle``."""

    files: tuple[tuple[str, bytes], ...]
    digest: str
    """sha256 of the sorted manifest of (path, size, sha256)."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One video's stream and a subset of its questions, as plain data without gold."""

    key: str
    """Opaque name of the stream, for records; never sent into the sandbox."""
    windows: tuple[Window, ...]
    """In order of (end, start, index)."""
    queries: tuple[Query, ...]
    """In order of (time, id)."""
    batch: int = 256
    """Most windows in one observe call."""
    settle_every: int = 64
    """Windows between two settle calls; batches are cut there."""


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """What became of one question."""

    query_id: str
    verdict: Verdict
    answer: Answer | None
    detail: str = ""
    """One line for a failed verdict, control characters escaped, at most 2,000 characters."""
    seconds: float = 0.0
    """From the question sent to the answer received, host services included."""
    served_seconds: float = 0.0
    """The part of ``seconds`` spent inside the host's services (models, frames)."""


@dataclass(frozen=True, slots=True)
class ShardOutcome:
    """All questions of the shard, in the shard's order, each exactly once."""

    key: str
    questions: tuple[QuestionOutcome, ...]
    runtime_digest: str
    sandbox: str
    """Label of the back end, with what its probes found to hold."""
    log: str = ""
    """The candidate's prints, capped, control characters escaped."""
    observe_seconds: float = 0.0
    restarts: int = 0
    """Times that the stream was started again after a hang or a crash."""


class Host(Protocol):
    """Serves and meters the requests of one shard. Never raises for a request: it returns a Refused."""

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        """Serve one request; ``query`` is the open question, or None during observe and settle (construction)."""
        ...


@dataclass(frozen=True, slots=True)
class Ending:
    """How a container ended, read from the engine or the kernel, never from the candidate."""

    exit_code: int | None
    """None where it still ran when it was closed; negative (minus the signal) where it was ended from outside."""
    oom: bool
    log: str


class Channel(Protocol):
    """One started, single-use runner that waits for its bundle. Never used twice."""

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``. Raises TimeoutError at ``deadline`` (monotonic), BrokenPipeError if it is gone."""
        ...

    def receive(self, limit: int, deadline: float) -> bytes:
        """The next line without its newline. TimeoutError at the deadline, EOFError at the end,
        ValueError for a line over ``limit`` bytes."""
        ...

    def oom_kills(self) -> int:
        """How many of its processes the kernel has ended for memory so far, read from the kernel or the engine."""
        ...

    def close(self) -> Ending:
        """Shut the channel, then kill, inspect, remove. Idempotent; returns within a few seconds."""
        ...

    def retire(self) -> str:
        """End a channel that did all it was asked, without waiting for how it ends. Returns what was printed."""
        ...


@dataclass(frozen=True, slots=True)
class Probe:
    """One start-up probe: a real attempt from inside, and whether the wall held."""

    name: str
    held: bool
    detail: str


class Sandbox(Protocol):
    """A back end with its pool. ``close`` stops the pool and leaves nothing behind."""

    name: str
    """``docker`` or ``bubblewrap``."""
    runtime_digest: str
    limits: Limits

    def open(self) -> Channel:
        """A fresh channel, from the pool where one is ready. Raises SandboxError."""
        ...

    def probe(self) -> tuple[Probe, ...]:
        """Run the start-up probes (once; the result is kept)."""
        ...

    @property
    def label(self) -> str:
        """Name, version and what does not hold, one line; stored with every result."""
        ...

    def close(self) -> None:
        """Stop the pool and every container of it."""
        ...


@dataclass(frozen=True, slots=True)
class Runtime:
    """The locked runtime as a record: what the digest is made of."""

    python: str
    libc: str
    wheels: Mapping[str, str] = field(default_factory=dict)
    """``VERSION sha256:HASH`` by package."""
    code: str = ""
    """sha256 of the runner, the contract and the blocks."""
