"""The host's side of a shard: serves a policy's requests, and meters all of them at this one place.

A request that may not be served is answered with a typed refusal that the policy can catch. What is not the
policy's fault (an endpoint that is down, a cap of the run) is kept in ``failure``: everything after it is refused,
and the evaluator ends the evaluation, since its figures would say nothing about the policy.
"""

from __future__ import annotations

import base64
import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.evaluation.meter import ConstructionMeter, QuestionMeter, digest, priced, read_digest
from harness.evaluation.outcomes import Cost
from harness.evaluation.prompts import render_read
from harness.evaluation.reading import INSTRUCTION_CHARS, READ_TOKENS, check_read
from harness.evaluation.schema import SchemaError, check_schema, check_value
from harness.models.interface import ChatMessage, ChatReply, ChatRequest, Models, ReplyKind, RequestRefused, Role
from harness.models.letters import parse_letter
from harness.models.structured import Unparseable, parse_json
from policies.contract import (
    BadRequest,
    Budget,
    Build,
    BuildReply,
    Embed,
    EmbedReply,
    Frame,
    Frames,
    FramesReply,
    Generate,
    GenerateReply,
    Message,
    ModelFailed,
    NoModel,
    NotPermitted,
    OverBudget,
    Query,
    Read,
    ReadReply,
    Refused,
    Reply,
    Request,
)
from sandbox import wire

BUILD_TOKENS = 1_024
"""Completion cap of a Build. Not given."""
BUILDS_PER_WINDOW = 4
"""Distinct Build requests per window of the video: one rewrite each in the source, more than twice that in the
systems it compares with."""
EMBEDS_PER_WINDOW = 16
"""Texts embedded in construction per window: four keys and five fields, with room to spare. Not given."""
EMBED_CHARS = 8_000
"""Cap of one text to embed. Not given."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FrameImage:
    """One frame: its time in seconds and its PNG or JPEG bytes."""

    time: float
    data: bytes


class FrameSource(Protocol):
    """Where frames come from; None of it is known to a policy."""

    def nearest(self, video: str, at: float, before: float) -> FrameImage | None:
        """The frame nearest to ``at`` and not later than ``before``; None where there is none."""
        ...


class OfflineReader(Protocol):
    """Who answers a Read where no answer model does."""

    def answer(self, read: Read, digest: str, images: Sequence[bytes] = ()) -> tuple[ReadReply, Cost]:
        """Reply and cost; ``images`` are the frames that ``read`` refers to, as PNG or JPEG bytes."""
        ...


class Services:
    """Serves one shard, in one thread. Implements ``sandbox.interface.Host``."""

    def __init__(
        self,
        models: Models,
        offline: OfflineReader,
        budget: Budget,
        video: str,
        windows: int,
        scope: str,
        frames: FrameSource | None = None,
        opened: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.perf_counter,
        read_offline: bool = False,
    ) -> None:
        """``windows`` bounds construction; ``opened`` is called when a question makes its first request.

        With ``read_offline`` letters come from ``offline`` although an answer model is configured.
        """
        self.models, self.offline, self.budget = models, offline, budget
        self.video, self.windows, self.scope = video, windows, scope
        self.frame_source, self.opened, self.clock = frames, opened, clock
        self.read_offline = read_offline
        self.questions: dict[str, QuestionMeter] = {}
        self.construction = ConstructionMeter()
        self.failure: Exception | None = None
        self._images: dict[str, FrameImage] = {}

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        """Serve one request. Never raises: a refusal is returned, a failure that is not the policy's is kept."""
        if self.failure is not None:
            return ModelFailed("the evaluation is ending: an earlier call failed")
        try:
            _require_text(request)
            if query is None:
                return self._construct(request)
            return self._answer(request, query, self._meter(query))
        except Refused as refusal:
            return refusal
        except RequestRefused:
            return ModelFailed("the model's endpoint refused this request")
        except Exception as error:
            log.debug("serving %s failed", type(request).__name__, exc_info=True)
            self.failure = error
            return ModelFailed("the call failed; this is not the policy's fault")

    def _meter(self, query: Query) -> QuestionMeter:
        if query.id not in self.questions:
            self.questions[query.id] = QuestionMeter()
            self._images = {}
            self.opened()
        return self.questions[query.id]

    # ------------------------------------------------------------ construction: no question is open

    def _construct(self, request: Request) -> Reply:
        if isinstance(request, Build):
            return self._build(request)
        if isinstance(request, Embed):
            return self._embed_windows(request)
        raise NotPermitted(f"{type(request).__name__} is served only while a question is open")

    def _build(self, build: Build) -> BuildReply:
        self._need(Role.BUILDER, "Build")
        self._check_messages(build.messages, build.max_tokens, BUILD_TOKENS)
        _checked_schema(build.schema)
        key = digest({"messages": _pairs(build.messages), "schema": dict(build.schema), "max_tokens": build.max_tokens})
        done = self.construction.builds
        if key not in done and len(done) >= BUILDS_PER_WINDOW * self.windows:
            raise OverBudget(f"more than {BUILDS_PER_WINDOW} Build requests per window of the video")
        done.setdefault(key, Cost())  # one that the endpoint refuses costs nothing, and is counted all the same
        reply = self._chat(Role.BUILDER, build.messages, build.max_tokens, build.schema, "build")
        done[key] = priced(reply.usage, reply.seconds)
        return BuildReply(_value(reply, build.schema))

    def _embed_windows(self, embed: Embed) -> EmbedReply:
        self._need(Role.EMBEDDER, "Embed")
        self._check_embed(embed)
        key = digest({"texts": list(embed.texts)})
        done = self.construction
        if key not in done.embeds:
            if done.embedded + len(embed.texts) > EMBEDS_PER_WINDOW * self.windows:
                raise OverBudget(f"more than {EMBEDS_PER_WINDOW} texts embedded per window of the video")
            done.embedded += len(embed.texts)
        reply, cost = self._embedded(embed, "build")
        done.embeds[key] = cost
        return reply

    # ------------------------------------------------------------ a question is open

    def _answer(self, request: Request, query: Query, meter: QuestionMeter) -> Reply:
        match request:
            case Read():
                return self._read(request, query, meter)
            case Generate():
                return self._generate(request, query, meter)
            case Embed():
                return self._embed(request, query, meter)
            case Frames():
                return self._frames(request, query, meter)
            case Build():
                raise NotPermitted("Build is construction: ask in observe or settle, not while a question is open")

    def _read(self, read: Read, query: Query, meter: QuestionMeter) -> ReadReply:
        check_read(read, query, self.budget, meter.reads, self._images)
        meter.reads += 1
        key = read_digest(read)
        meter.read_digests.append(key)
        if self.models.has(Role.ANSWER) and not self.read_offline:
            reply, cost = self._asked(read, self._scope(query, meter))
        else:
            reply, cost = self.offline.answer(read, key, [self._images[ref].data for ref in read.frames])
        meter.book_read(read.part, cost)
        choice = reply.choice if reply.choice in read.choices else None
        meter.unparsed += choice is None
        return ReadReply(choice, reply.text)

    def _asked(self, read: Read, scope: str) -> tuple[ReadReply, Cost]:
        """The answer model's letter: by schema where it takes one, else by the letter parser."""
        system, user = render_read(read)
        user = ChatMessage("user", user.content, tuple(self._images[ref].data for ref in read.frames))
        letters = list(read.choices)
        schema = {
            "type": "object",
            "properties": {"answer": {"type": "string", "enum": letters}},
            "required": ["answer"],
            "additionalProperties": False,
        }
        reply = self.models.chat(Role.ANSWER, ChatRequest((system, user), READ_TOKENS, schema=schema), scope)
        choice = parse_letter(reply.text, read.choices) if reply.kind is ReplyKind.OK else None
        return ReadReply(choice, reply.text), priced(reply.usage, reply.seconds)

    def _generate(self, generate: Generate, query: Query, meter: QuestionMeter) -> GenerateReply:
        self._need(Role.ANSWER, "Generate")
        self._check_messages(generate.messages, generate.max_tokens, self.budget.generate_tokens)
        if generate.schema is not None:
            _checked_schema(generate.schema)
        if meter.generates >= self.budget.generates:
            raise OverBudget(f"more than {self.budget.generates} Generate requests for one question")
        meter.generates += 1
        scope = self._scope(query, meter)
        reply = self._chat(Role.ANSWER, generate.messages, generate.max_tokens, generate.schema, scope)
        cost = priced(reply.usage, reply.seconds)
        meter.retrieval += cost
        meter.model_seconds += cost.seconds
        if reply.kind is not ReplyKind.OK:
            raise ModelFailed(f"the model's reply was {reply.kind.value}")
        return GenerateReply(reply.text, None if generate.schema is None else _value(reply, generate.schema))

    def _embed(self, embed: Embed, query: Query, meter: QuestionMeter) -> EmbedReply:
        self._need(Role.EMBEDDER, "Embed")
        self._check_embed(embed)
        if meter.embeds + len(embed.texts) > self.budget.embeds:
            raise OverBudget(f"more than {self.budget.embeds} texts embedded for one question")
        meter.embeds += len(embed.texts)
        reply, cost = self._embedded(embed, self._scope(query, meter))
        meter.retrieval += cost
        meter.embed_seconds += cost.seconds
        return reply

    def _frames(self, frames: Frames, query: Query, meter: QuestionMeter) -> FramesReply:
        if not frames.times or not all(math.isfinite(t) and t >= 0 for t in frames.times):
            raise BadRequest("Frames.times must be times in seconds, at least one")
        if max(frames.times) > query.time:
            raise NotPermitted("frames after the query time")
        if meter.frames + len(frames.times) > self.budget.frames:
            raise OverBudget(f"more than {self.budget.frames} frames for one question")
        started = self.clock()
        images = (
            [self.frame_source.nearest(self.video, t, query.time) for t in frames.times] if self.frame_source else []
        )
        found = [image for image in images if image is not None and image.time <= query.time]
        seconds = self.clock() - started
        served = []
        for image in found:
            ref = f"frame-{len(self._images)}"
            self._images[ref] = image
            served.append(Frame(ref, image.time))
        meter.frames += len(served)
        meter.frame_seconds += seconds
        meter.retrieval += Cost(frames=len(served), seconds=seconds)
        return FramesReply(tuple(served))

    # ------------------------------------------------------------ shared checks and calls

    def _need(self, role: Role, name: str) -> None:
        if not self.models.has(role):
            raise NoModel(f"no model is configured for {name}")

    def _check_messages(self, messages: Sequence[Message], max_tokens: int, most: int) -> None:
        if not messages or not any(message.content.strip() for message in messages):
            raise BadRequest("messages are empty")
        if max_tokens < 1:
            raise BadRequest("max_tokens must be at least 1")
        if max_tokens > most:
            raise OverBudget(f"max_tokens {max_tokens}, at most {most} are allowed")
        limit = self.budget.context_chars + INSTRUCTION_CHARS
        if sum(len(message.content) for message in messages) > limit:
            raise OverBudget(f"messages of more than {limit} characters")

    def _check_embed(self, embed: Embed) -> None:
        if embed.frames:
            raise NoModel("no model that embeds frames is configured")
        if not embed.texts or not all(text.strip() for text in embed.texts):
            raise BadRequest("Embed.texts must be texts, at least one, none of them empty")
        if max(map(len, embed.texts)) > EMBED_CHARS:
            raise OverBudget(f"a text of more than {EMBED_CHARS} characters to embed")

    def _scope(self, query: Query, meter: QuestionMeter) -> str:
        """Place of the question's next call in the reply store; the same in whatever order shards run."""
        ordinal = meter.calls
        meter.calls += 1
        return f"{self.scope}/{query.id}/{ordinal}"

    def _chat(
        self, role: Role, messages: Sequence[Message], max_tokens: int, schema: Mapping[str, Any] | None, scope: str
    ) -> ChatReply:
        sent = tuple(ChatMessage(message.role, message.content) for message in messages)
        return self.models.chat(role, ChatRequest(sent, max_tokens, schema=schema), scope)

    def _embedded(self, embed: Embed, scope: str) -> tuple[EmbedReply, Cost]:
        done = self.models.embed(embed.texts, scope)
        encoded = tuple(base64.b64encode(vector).decode("ascii") for vector in done.vectors)
        return EmbedReply(len(done.vectors[0]) // 2, encoded), priced(done.usage, done.seconds)


def _pairs(messages: Sequence[Message]) -> list[list[str]]:
    return [[message.role, message.content] for message in messages]


def _checked_schema(schema: Mapping[str, Any]) -> None:
    try:
        check_schema(schema)
    except SchemaError as error:
        raise BadRequest(str(error)) from None


def _value(reply: ChatReply, schema: Mapping[str, Any]) -> Any:
    """The reply as a JSON value of the schema. Small models fence or mis-quote JSON: that is repaired, not trusted."""
    try:
        value = parse_json(reply)
        check_value(value, schema)
        wire.check_json(value, "value")
        wire.encode({"value": value})
    except Unparseable as error:
        raise ModelFailed(str(error)) from None
    except (SchemaError, wire.WireError, RecursionError) as error:
        raise ModelFailed(f"the model's reply does not fit the schema: {error}") from None
    return value


def _require_text(request: Request) -> None:
    """Refuse lone surrogates: they cannot be sent, stored or hashed."""
    match request:
        case Read():
            texts = [request.question, request.context, request.instructions, *request.choices.values()]
        case Build() | Generate():
            texts = [message.content for message in request.messages]
        case Embed():
            texts = list(request.texts)
        case Frames():
            texts = []
    for text in texts:
        try:
            text.encode("utf-8")
        except UnicodeEncodeError:
            raise BadRequest("text that is not valid Unicode (a lone surrogate)") from None
