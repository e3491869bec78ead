"""Every model of a run behind one object: stored replies, the ledger and the clients put together."""

from __future__ import annotations

import hashlib
import math
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from harness.config import Config
from harness.models.client import Client, LostInFlight, Timing
from harness.models.counting import AUDIO_TOKENS_PER_SECOND, count_prompt, count_tokens, worst_case
from harness.models.embedder import PackagedEmbedder
from harness.models.identity import digest_of, document_of, shaped
from harness.models.interface import (
    ChatReply,
    ChatRequest,
    Embedded,
    ModelError,
    Models,
    ReplyKind,
    Role,
    Segment,
    ToolCall,
    Transcript,
    Usage,
)
from harness.models.ledger import MEASURES, Ledger
from harness.models.prices import Priced, price_of
from harness.models.quirks import Learned, Quirks
from harness.models.replies import REPLIES, CallRecord, ReplyStore
from harness.models.vectors import gathered, places, shared_out
from harness.models.wire import Reported
from harness.settings import Cap, RoleModel

SHARED_SCOPES = {
    Role.BUILDER: "build",
    Role.EMBEDDER: "embed",
    Role.CAPTIONER: "caption",
    Role.TRANSCRIBER: "transcribe",
}
"""Roles whose replies depend on nothing but the request: stored by content, shared by all of the run."""
LOST_ATTEMPTS = 3
"""Times that a call is sent whose reply does not come; each is booked at its reservation."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What a role runs on, for the banner of a run."""

    role: Role
    model: RoleModel
    priced: Priced


@dataclass(frozen=True, slots=True)
class Call:
    """One call to be bought."""

    role: Role
    scope: str
    digest: str
    document: Mapping[str, Any]
    """The request as stored."""
    worst: Usage
    send: Callable[[float], tuple[Mapping[str, Any], Usage]]
    """Send within the seconds given; returns the reply as stored and what it came to."""
    keep: Callable[[int, Usage, float, Mapping[str, Any]], None] | None = None
    """Store the reply in a way of its own: (row, usage, seconds, reply)."""


class ModelHub:
    """The models of the chosen profile. Thread-safe. Implements ``Models``."""

    def __init__(self, config: Config, folder: Path, timing: Timing | None = None) -> None:
        """Open ``folder/replies.db``. Raises UserError: a key or price is missing, or the file is unusable."""
        self._config = config
        self._timing = timing or Timing()
        self._terms = {
            role: Terms(role, model, price_of(model, config.prices, config.caps.dollars))
            for role in Role
            if (model := config.role(role)) is not None
        }
        self._keys = {role: self._key(role) for role in self._terms}
        self._replies = ReplyStore(folder / REPLIES)
        self._ledger = Ledger(config.caps, self._replies.booked())
        self._quirks: dict[tuple[str, str], Quirks] = {}
        self._clients: dict[Role, Client] = {}
        self._packaged: PackagedEmbedder | None = None
        self._lock = threading.Lock()
        self._held: dict[tuple[Role, str, str], tuple[threading.Lock, int]] = {}

    # ------------------------------------------------------------ the protocol

    def has(self, role: Role) -> bool:
        """Whether the profile names a model for the role."""
        return role in self._terms

    def describe(self, role: Role) -> str:
        """Model name for records."""
        return self._terms[role].model.model if role in self._terms else "offline"

    def chat(self, role: Role, request: ChatRequest, scope: str) -> ChatReply:
        """See ``Models.chat``; the builder's replies are stored by content, whatever the scope."""
        terms = self._named(role)
        request = shaped(request, terms.model)
        document = document_of(request)
        prompt = worst_case(count_prompt(request))
        dollars = terms.priced.worst_dollars(prompt, request.max_tokens)
        worst = Usage(1, prompt, request.max_tokens, dollars=dollars, estimated=True)

        def send(seconds: float) -> tuple[Mapping[str, Any], Usage]:
            done = self._client(role).chat(request, seconds)
            said = done.raw + "".join(c.name + c.arguments for c in done.calls)
            estimate = None if done.usage else Reported(count_prompt(request), count_tokens(said), 0, 0)
            reply: dict[str, Any] = {
                "kind": done.kind,
                "text": done.text,
                "raw": done.raw,
                "finish_reason": done.finish_reason,
            }
            model = done.model or terms.model.model
            if done.calls:
                reply["calls"] = [[c.id, c.name, c.arguments] for c in done.calls]
            return {**reply, "model": model}, _usage(done.usage, estimate, terms.priced)

        record, stored = self._once(role, scope, document, worst, send)
        reply = record.reply or {}
        return ChatReply(
            kind=ReplyKind(reply["kind"]),
            text=reply["text"],
            raw=reply["raw"],
            usage=record.usage,
            seconds=record.seconds,
            model=reply["model"],
            finish_reason=reply["finish_reason"],
            stored=stored,
            calls=tuple(ToolCall(*call) for call in reply.get("calls", ())),
        )

    def embed(self, texts: tuple[str, ...], scope: str) -> Embedded:
        """See ``Models.embed``; vectors are stored by content, whatever the scope."""
        terms = self._named(Role.EMBEDDER)
        if not texts:
            return Embedded((), Usage(), 0.0)
        embedder, name = self._embedder()
        wanted = places(name, texts)
        with self._alone((Role.EMBEDDER, name, "")):  # one call at a time, so that no text is bought twice
            found = self._replies.vectors(wanted)
            missing = {digest: text for digest, text in wanted.items() if digest not in found}
            if missing:
                self._buy(self._embedding(terms, embedder, name, missing))
                found |= self._replies.vectors(missing)
        return gathered(name, texts, found)

    def _embedding(
        self, terms: Terms, embedder: Client | PackagedEmbedder, name: str, missing: Mapping[str, str]
    ) -> Call:
        """The call that embeds ``missing``, texts by digest."""
        texts = tuple(missing.values())
        counted = sum(map(count_tokens, texts))
        prompt = worst_case(counted)
        worst = Usage(1, prompt, 0, dollars=terms.priced.worst_dollars(prompt, 0), estimated=True)
        vectors: tuple[bytes, ...] = ()

        def send(seconds: float) -> tuple[Mapping[str, Any], Usage]:
            nonlocal vectors
            vectors, reported = embedder.embed(texts, seconds)
            return {}, _usage(reported, Reported(counted, 0, 0, 0), terms.priced)

        def keep(row: int, usage: Usage, seconds: float, reply: Mapping[str, Any]) -> None:
            self._replies.store_vectors(row, usage, seconds, shared_out(missing, vectors, usage, seconds))

        document = {"model": name, "texts": list(texts)}
        scope = SHARED_SCOPES[Role.EMBEDDER]
        return Call(Role.EMBEDDER, scope, digest_of(name, document), document, worst, send, keep)

    def transcribe(self, audio: bytes, length: float, scope: str) -> Transcript:
        """See ``Models.transcribe``; transcripts are stored by content, whatever the scope."""
        terms = self._named(Role.TRANSCRIBER)
        by_minute = terms.priced.audio_dollars(length)
        tokens = worst_case(math.ceil(AUDIO_TOKENS_PER_SECOND * length))
        dollars = by_minute + terms.priced.worst_dollars(tokens, tokens)
        worst = Usage(1, tokens, tokens, dollars=dollars, estimated=True)

        def send(seconds: float) -> tuple[Mapping[str, Any], Usage]:
            text, segments, reported = self._client(Role.TRANSCRIBER).transcribe(audio, length, seconds)
            usage = _usage(reported, None, terms.priced)
            reply = {"text": text, "segments": [[s.start, s.end, s.text] for s in segments]}
            return reply, replace(usage, dollars=usage.dollars + by_minute)

        document = {"audio": hashlib.sha256(audio).hexdigest(), "length": length}
        record, stored = self._once(Role.TRANSCRIBER, scope, document, worst, send)
        reply = record.reply or {}
        segments = tuple(Segment(*segment) for segment in reply["segments"])
        return Transcript(reply["text"], segments, record.usage, record.seconds, stored)

    def spent(self) -> Mapping[Role, Usage]:
        """Booked so far in the run, earlier sessions included; roles without a call are left out."""
        return self._ledger.spent()

    # ------------------------------------------------------------ for the command line

    @property
    def terms(self) -> tuple[Terms, ...]:
        """Model, endpoint and price of each role that has one."""
        return tuple(self._terms.values())

    @property
    def paid(self) -> bool:
        """Whether any model costs money, as far as is known."""
        return any(t.priced.price is None or t.priced.price.input or t.priced.price.output for t in self.terms)

    def seconds(self) -> Mapping[Role, float]:
        """Seconds inside calls, by role."""
        return self._ledger.seconds()

    def learned(self) -> tuple[tuple[str, Learned], ...]:
        """(model, fact) of every parameter that a model of this run refused."""
        places = {(t.model.place, t.model.model) for t in self.terms}
        return tuple((model, fact) for url, model in sorted(places) for fact in self._replies.learned(url, model))

    def banner(self) -> tuple[str, ...]:
        """Lines to print before a run: who runs on what at which price, and the caps."""
        lines = [f"{t.role}: {t.model.model} at {t.model.place}, {t.priced.text}" for t in self.terms]
        lines.append(f"caps of the run: {_caps_text(self._config.caps)}")
        return (*lines, *(f"caps of {role}: {_caps_text(cap)}" for role, cap in self._config.caps.roles.items()))

    def close(self) -> None:
        """Close connections and the store."""
        for client in self._clients.values():
            client.close()
        self._replies.close()

    # ------------------------------------------------------------ buying

    def _once(
        self,
        role: Role,
        scope: str,
        document: Mapping[str, Any],
        worst: Usage,
        send: Callable[[float], tuple[Mapping[str, Any], Usage]],
    ) -> tuple[CallRecord, bool]:
        """The stored reply, or a bought one; identical calls made at the same time are bought once."""
        scope = SHARED_SCOPES.get(role, scope)
        name = self._terms[role].model.model
        document, digest = {"model": name, **document}, digest_of(name, document)
        with self._alone((role, scope, digest)):
            if (record := self._replies.find(role, scope, digest)) is not None:
                return record, True
            self._buy(Call(role, scope, digest, document, worst, send))
            record = self._replies.find(role, scope, digest)
            assert record is not None
            return record, False

    def _key(self, role: Role) -> str | None:
        return self._config.key(role)

    def _buy(self, call: Call) -> None:
        ends = self._timing.clock() + self._terms[call.role].model.deadline
        for attempt in range(1, LOST_ATTEMPTS + 1):
            try:
                self._attempt(call, max(ends - self._timing.clock(), 1.0))
                return
            except LostInFlight as error:
                wait = self._timing.backoff(attempt)
                if attempt == LOST_ATTEMPTS or self._timing.clock() + wait >= ends:
                    raise ModelError(f"{error}; sent {attempt} times, each booked at its reservation") from None
                self._timing.sleep(wait)

    def _attempt(self, call: Call, seconds: float) -> None:
        """Reserve, write the intent, send, write the reply, settle. Raises LostInFlight, ModelError, CapReached."""
        model = self._terms[call.role].model
        reservation = self._ledger.reserve(call.role, call.worst, seconds)
        granted = reservation.amount.seconds
        usage, took = Usage(), 0.0
        try:
            to = (model.model, model.place)
            row = self._replies.intend(call.role, call.scope, call.digest, to, call.document, call.worst, granted)
            usage, took = call.worst, granted
            started = self._timing.clock()
            try:
                reply, actual = call.send(granted)
            except ModelError as error:
                usage, took = Usage(), self._timing.clock() - started
                self._replies.refused(row, took, str(error))
                raise
            except LostInFlight as error:
                took = self._timing.clock() - started
                self._replies.lost(row, usage, took, str(error))
                raise
            took = self._timing.clock() - started
            (call.keep or self._replies.store)(row, actual, took, reply)
            usage = actual
        finally:
            # Anything unforeseen, an interrupt included, leaves the intent and the worst case standing.
            self._ledger.settle(reservation, usage, took)

    def _named(self, role: Role) -> Terms:
        if role not in self._terms:
            raise ModelError(f"profile {self._config.run.profile} names no model for role {role}")
        return self._terms[role]

    def _client(self, role: Role) -> Client:
        with self._lock:
            if role not in self._clients:
                model = self._terms[role].model
                place = (model.place, model.model)
                if place not in self._quirks:
                    record = partial(self._replies.learn, *place)
                    usual = "max_completion_tokens" if model.at_openai else "max_tokens"
                    self._quirks[place] = Quirks(self._replies.learned(*place), record, usual)
                self._clients[role] = Client(model, self._keys[role], self._quirks[place], self._timing)
            return self._clients[role]

    def _embedder(self) -> tuple[Client | PackagedEmbedder, str]:
        """What embeds, and the name under which its vectors are stored."""
        model = self._terms[Role.EMBEDDER].model
        if not model.packaged:
            return self._client(Role.EMBEDDER), model.model
        with self._lock:
            self._packaged = self._packaged or PackagedEmbedder()
            return self._packaged, f"{model.model}@{self._packaged.digest}"

    @contextmanager
    def _alone(self, key: tuple[Role, str, str]) -> Iterator[None]:
        """Hold the lock of one request; it exists as long as somebody holds or waits for it."""
        with self._lock:
            lock, users = self._held.get(key, (threading.Lock(), 0))
            self._held[key] = (lock, users + 1)
        try:
            with lock:
                yield
        finally:
            with self._lock:
                lock, users = self._held[key]
                if users == 1:
                    del self._held[key]
                else:
                    self._held[key] = (lock, users - 1)


class OfflineModels:
    """The offline profile: no model for any role, nothing is ever sent. Implements ``Models``."""

    def has(self, role: Role) -> bool:
        """Never."""
        return False

    def describe(self, role: Role) -> str:
        """``offline``."""
        return "offline"

    def chat(self, role: Role, request: ChatRequest, scope: str) -> ChatReply:
        """Raises ModelError."""
        raise ModelError(f"the offline profile has no model for role {role}")

    def embed(self, texts: tuple[str, ...], scope: str) -> Embedded:
        """Raises ModelError."""
        raise ModelError("the offline profile has no embedding model")

    def transcribe(self, audio: bytes, length: float, scope: str) -> Transcript:
        """Raises ModelError."""
        raise ModelError("the offline profile has no model for transcripts")

    def spent(self) -> Mapping[Role, Usage]:
        """Nothing."""
        return {}


def offline_models() -> Models:
    """The models of a run without models."""
    return OfflineModels()


def open_models(config: Config, folder: Path) -> Models:
    """The models of the configuration's profile; with none, no file is made. Raises UserError."""
    if not any(config.role(role) for role in Role):
        return offline_models()
    return ModelHub(config, folder)


# ---------------------------------------------------------------- values


def _usage(reported: Reported | None, estimate: Reported | None, priced: Priced) -> Usage:
    counts = reported or estimate or Reported(0, 0, 0, 0)
    dollars = priced.dollars(counts.prompt, counts.completion, counts.cached)
    return Usage(1, counts.prompt, counts.completion, counts.reasoning, counts.cached, dollars, reported is None)


def _caps_text(cap: Cap) -> str:
    return ", ".join(f"{getattr(cap, m):g} {m}" for m in MEASURES if getattr(cap, m) is not None) or "none"
