"""The contract of a memory policy: what it sees, what it may ask for, what it returns.

A policy sees a stream. The host sends one video's windows in order of their end time and puts each
question at its query time; nothing is written behind a question until that question is settled. So
at a question the process holds exactly the windows with ``end <= query.time``.

A policy package holds ``policy.py`` with a class ``Policy`` (see the protocol below). Each of its three
methods may be a plain function or a generator that yields a request, or a list of requests served
together, and is sent the reply (for a list: a list of replies in the same order). A refused single
request is raised inside the generator as its ``Refused`` error; in a list the error object stands at its
place instead of a reply.

Units: times are seconds on the video's own axis (day 1, 00:00 is 0; a day is 86,400), text sizes are
characters unless a name says tokens.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, TypeAlias, runtime_checkable

Json: TypeAlias = Any
"""A JSON value: None, bool, int, finite float, str, list of Json, or dict with str keys."""


# ---------------------------------------------------------------- what a policy sees


@dataclass(frozen=True, slots=True)
class Utterance:
    """One line of the transcript; ``speaker`` is empty where it is not known."""

    speaker: str
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """One raw caption window (about 30 s). Raw: the five fields and all keys are what a policy makes of it."""

    index: int
    """Position in the video's stream, from 0; the reference used in ``Answer.evidence``."""
    start: float
    end: float
    captions: tuple[str, ...]
    transcript: tuple[Utterance, ...]
    frames: bool
    """Whether frames of this window can be requested."""


@dataclass(frozen=True, slots=True)
class Query:
    """A question at its query time. The id is opaque and differs from run to run."""

    id: str
    type: str
    """The question-type label, for example ``EventRecall``."""
    question: str
    choices: Mapping[str, str]
    """Choice text by letter, in the order shown (A, B, C, ...)."""
    time: float
    """Query time t_q in seconds."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What the host allows, from the run's configuration. A policy's own caps may be tighter."""

    context_chars: int = 12_500
    """Characters of ``Read.context`` (SEEM appendix: hard cap 12,500)."""
    reads: int = 3
    """Read requests per question."""
    generates: int = 10
    """Generate requests per question: five rounds of a query and a filter, MERIT's default here."""
    generate_tokens: int = 512
    """Completion tokens per Generate request."""
    frames: int = 4
    """Frames per question (SEEM appendix: at most 4)."""
    embeds: int = 64
    """Texts embedded per question."""
    evidence: int = 64
    """Window references in one Answer."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a policy is constructed with; the same for every policy of an evaluation."""

    budget: Budget
    seed: int


# ---------------------------------------------------------------- what it returns


@dataclass(frozen=True, slots=True)
class Answer:
    """The policy's answer: a letter of the query's choices, or None to abstain (counted as wrong)."""

    choice: str | None
    route: str
    """Name of the route that produced the answer, for example ``reader``; at most 64 characters."""
    evidence: tuple[int, ...] = ()
    """``Window.index`` of the windows whose content was used."""
    diagnostics: Mapping[str, Json] = field(default_factory=dict)
    """Route metadata z_t of the method: small JSON values, at most 8,000 characters when encoded."""


# ---------------------------------------------------------------- requests and replies

Part: TypeAlias = Literal["answering", "verification"]


@dataclass(frozen=True, slots=True)
class Message:
    """One chat message."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Build:
    """Ask the fixed *builder* model for a JSON value of ``schema``; stored by content, booked as construction."""

    messages: tuple[Message, ...]
    schema: Mapping[str, Json]
    max_tokens: int = 512


@dataclass(frozen=True, slots=True)
class Read:
    """Ask the fixed answer model f for one letter. Only while a question is open."""

    question: str
    choices: Mapping[str, str]
    context: str
    instructions: str = ""
    frames: tuple[str, ...] = ()
    """Frame references from a ``Frames`` reply to the same question."""
    part: Part = "answering"
    """Which cost it is booked under."""


@dataclass(frozen=True, slots=True)
class Generate:
    """Ask f for free text (query rewriting, filtering), or for JSON of ``schema``."""

    messages: tuple[Message, ...]
    max_tokens: int = 256
    schema: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Embed:
    """Embed texts, or frames by reference, with the fixed embedding model."""

    texts: tuple[str, ...] = ()
    frames: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Frames:
    """Ask for the frames nearest to ``times`` (seconds); each must be at most the query time."""

    times: tuple[float, ...]


Request: TypeAlias = Build | Read | Generate | Embed | Frames


@dataclass(frozen=True, slots=True)
class BuildReply:
    """``value`` fits the requested schema."""

    value: Json


@dataclass(frozen=True, slots=True)
class ReadReply:
    """``choice`` is a letter of the request's choices, or None where the reply named none or several."""

    choice: str | None
    text: str


@dataclass(frozen=True, slots=True)
class GenerateReply:
    """``value`` is the parsed JSON where a schema was given, else None."""

    text: str
    value: Json = None


@dataclass(frozen=True, slots=True)
class EmbedReply:
    """One vector per text or frame, as base64 of little-endian float16 (``policies.blocks.vectors`` decodes)."""

    dimensions: int
    vectors: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """A frame's reference for ``Read.frames`` and the time it was taken at, in seconds."""

    ref: str
    time: float


@dataclass(frozen=True, slots=True)
class FramesReply:
    """Frames found, in the order of the requested times; times without a frame are left out."""

    frames: tuple[Frame, ...]


Reply: TypeAlias = BuildReply | ReadReply | GenerateReply | EmbedReply | FramesReply


# ---------------------------------------------------------------- refusals


class Refused(Exception):
    """A request was not served. ``str(error)`` is one line that says why."""


class NoModel(Refused):
    """No model is configured for this request (offline profile). State a fallback."""


class OverBudget(Refused):
    """The request would pass the budget of the run or of this question."""


class NotPermitted(Refused):
    """The request may not be made now: frames after the query time, or Read without an open question."""


class BadRequest(Refused):
    """The request is malformed: unknown frame, no choices, an empty text."""


class ModelFailed(Refused):
    """The model did not give a usable reply: refusal, truncation, time-out, no parseable value."""


REFUSALS: Mapping[str, type[Refused]] = {
    kind.__name__: kind for kind in (NoModel, OverBudget, NotPermitted, BadRequest, ModelFailed)
}

# ---------------------------------------------------------------- the policy

Asking: TypeAlias = Generator[Any, Any, Any]
"""A method written as a generator: yields Request or list[Request], receives Reply or list[Reply | Refused]."""


@runtime_checkable
class MemoryPolicy(Protocol):
    """What ``policy.py`` must define under the name ``Policy``."""

    def __init__(self, setup: Setup) -> None: ...

    def observe(self, windows: Sequence[Window]) -> Asking | None:
        """Take in the next windows, in order of end time."""

    def settle(self) -> Asking | None:
        """Called every N windows, never tied to questions: a place to batch work such as embeddings."""

    def answer(self, query: Query) -> Asking | Answer:
        """Answer one question. Runs in a forked child: nothing it changes is seen by later questions."""
