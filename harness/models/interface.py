"""What the rest of the harness knows of models: roles, requests, typed replies, usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol


class Role(StrEnum):
    """Who asks. Each role is configured apart (model, endpoint, caps)."""

    RESEARCHER = "researcher"
    IMPLEMENTER = "implementer"
    REVIEWER = "reviewer"
    ANALYST = "analyst"
    BUILDER = "builder"
    ANSWER = "answer"
    EMBEDDER = "embedder"
    CAPTIONER = "captioner"
    """Describes frames; asked only when memory is built from a video."""
    TRANSCRIBER = "transcriber"
    """Writes down speech; asked only when memory is built from a video."""


class ReplyKind(StrEnum):
    """How a model call ended, as far as the reply itself tells."""

    OK = "ok"
    EMPTY = "empty"
    """Null or blank content, or nothing beside a think block; and no tool is called."""
    REFUSED = "refused"
    TRUNCATED = "truncated"
    """finish_reason length."""


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call; ``parameters`` is a JSON schema of its arguments."""

    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call as a model wrote it; ``arguments`` is JSON text, unchecked."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message; ``images`` are PNG or JPEG bytes sent as data URLs after the text."""

    role: str
    content: str
    images: tuple[bytes, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    """Of an ``assistant`` message."""
    answers: str = ""
    """Of a ``tool`` message: the id of the call whose result it is."""


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """One chat completion. ``schema`` asks for JSON by response_format where the model takes it."""

    messages: tuple[ChatMessage, ...]
    max_tokens: int
    temperature: float = 0.0
    seed: int | None = None
    schema: Mapping[str, Any] | None = None
    tools: tuple[Tool, ...] = ()


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens and dollars of one or more calls."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    """Reasoning tokens included."""
    reasoning_tokens: int = 0
    cached_tokens: int = 0
    dollars: float = 0.0
    estimated: bool = False
    """True where the endpoint reported no usage and tokens were counted offline."""

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.requests + other.requests,
            self.prompt_tokens + other.prompt_tokens,
            self.completion_tokens + other.completion_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
            self.cached_tokens + other.cached_tokens,
            self.dollars + other.dollars,
            self.estimated or other.estimated,
        )


@dataclass(frozen=True, slots=True)
class ChatReply:
    """A reply as received. ``text`` has think blocks removed; ``raw`` is what came."""

    kind: ReplyKind
    text: str
    raw: str
    usage: Usage
    seconds: float
    model: str
    finish_reason: str
    stored: bool
    """True where it came from the reply store and nothing was sent."""
    calls: tuple[ToolCall, ...] = ()
    """Tools that the model calls, in order; at most ``wire.MOST_CALLS``."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One stretch of speech, in seconds from the beginning of the audio that was sent."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Transcript:
    """What was said in a piece of audio; ``segments`` is empty where the model gives no times."""

    text: str
    segments: tuple[Segment, ...]
    usage: Usage
    seconds: float
    """That the call took."""
    stored: bool
    """True where it came from the reply store and nothing was sent."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """Little-endian float16 vectors, one for each text, and what they came to."""

    vectors: tuple[bytes, ...]
    usage: Usage
    seconds: float
    """Of the calls that bought them."""


class ModelError(Exception):
    """No reply could be had: endpoint down, wrong key, wrong model, retries used up. One line, what to do."""


class RequestRefused(ModelError):
    """The endpoint refused this one request (its content, its size): other requests may well be served."""


class CapReached(Exception):
    """Sending the call could pass a cap of the run; nothing was sent. One line naming the cap."""


class Models(Protocol):
    """Every model of a run behind one object; thread-safe."""

    def has(self, role: Role) -> bool:
        """Whether a model is configured for the role. Offline: False for all."""
        ...

    def describe(self, role: Role) -> str:
        """Model name for records, or ``offline``."""
        ...

    def chat(self, role: Role, request: ChatRequest, scope: str) -> ChatReply:
        """Send one call, or take its stored reply.

        ``scope`` names the call's place, for example ``0007/review/0`` or ``0007/develop/<query>/2``: the reply
        store's key is (role, scope, digest of the request). Raises RequestRefused, ModelError, CapReached.
        """
        ...

    def embed(self, texts: tuple[str, ...], scope: str) -> Embedded:
        """Embed what is not stored, and take the rest from the store. Raises RequestRefused, ModelError, CapReached."""
        ...

    def transcribe(self, audio: bytes, length: float, scope: str) -> Transcript:
        """What is said in a WAV file of ``length`` seconds. Raises RequestRefused, ModelError, CapReached."""
        ...

    def spent(self) -> Mapping[Role, Usage]:
        """Booked so far in the run, per role."""
        ...
