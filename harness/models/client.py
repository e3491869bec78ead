"""One client for any endpoint that speaks the OpenAI protocol: one call, with retries for what costs nothing.

Failures are of four kinds. *Transient* (429, 5xx, no connection): nothing was bought, the call is sent again here.
*Refused parameter* (400, 422): learned, and sent again without it. *Lost in flight* (time-out, broken or unreadable
reply): it may have been bought, so it is the caller's to book before anything is sent again. All else is final.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

from harness.display import visible
from harness.models.interface import ChatRequest, ModelError, RequestRefused, Segment
from harness.models.quirks import BAD_SCHEMA, Quirks, refused_parameter
from harness.models.transport import REPLY_BYTES, Unreadable, bounded_http_client
from harness.models.wire import (
    BadReply,
    Completion,
    Reported,
    messages_json,
    parse_completion,
    parse_embeddings,
    parse_transcription,
    response_format,
    tools_json,
    with_schema_in_prompt,
)
from harness.settings import RoleModel

T = TypeVar("T")
TRANSIENT = {408, 409, 425, 429}
NOT_SENT = {"ConnectError", "ConnectTimeout", "PoolTimeout", "ProxyError"}
"""Names of the HTTP library's errors for a request that never left; the library differs between versions."""
NO_TOOLS = re.compile(r"\btools?\b|tool[ _]us|function[ _]call", re.IGNORECASE)
NO_SUCH_MODEL = re.compile(r"model_not_found|\bmodel\b[^.]{0,120}(not found|not exist|unknown|invalid)", re.IGNORECASE)
NOT_TAKEN = re.compile(r"\b(image|audio|multimodal)\b.{0,40}\bnot supported", re.IGNORECASE)
"""A model without eyes or ears; llama.cpp's server says so with status 500, and says it every time."""
ADAPTATIONS = 8
"""Refused parameters that one call may learn."""
CONNECTS = 5
"""Attempts where nothing answers at the address, about 6 s in all: a wrong address should not cost minutes."""


class LostInFlight(Exception):
    """The call was sent and no usable reply came: it may have been billed. One line."""


class _Transient(Exception):
    def __init__(self, reason: str, retry_after: float | None = None, attempts: int = 1_000) -> None:
        super().__init__(reason)
        self.retry_after, self.attempts = retry_after, attempts


class _Adapted(Exception):
    """A parameter was learned; send again."""


@dataclass(frozen=True, slots=True)
class Timing:
    """Clock and patience, passed in so that tests need not wait."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    jitter: Callable[[], float] = random.random
    """Uniform in [0, 1)."""

    def backoff(self, attempt: int) -> float:
        """Seconds to wait after failed ``attempt`` (from 1): 0.5, 1, 2, ... 30, of which up to half is random."""
        return float(min(30.0, 0.5 * 2 ** min(attempt - 1, 10))) * (0.5 + 0.5 * self.jitter())


class Client:
    """One model at one endpoint. Thread-safe."""

    def __init__(
        self, endpoint: RoleModel, key: str | None, quirks: Quirks, timing: Timing, reply_bytes: int = REPLY_BYTES
    ) -> None:
        # Imported here: a run without models should not pay for it (about a second).
        import openai

        self._openai = openai
        self.endpoint, self.quirks, self.timing = endpoint, quirks, timing
        self._key = key
        self.where = f"model {visible(endpoint.model, 80)} at {endpoint.base_url}"
        self._sdk = openai.OpenAI(
            api_key=key or "none",
            base_url=endpoint.base_url,
            max_retries=0,
            http_client=bounded_http_client(reply_bytes, endpoint.loopback),
        )

    def chat(self, request: ChatRequest, seconds: float) -> Completion:
        """One completion within ``seconds``. Raises LostInFlight, RequestRefused, ModelError."""
        plain: list[str] = []  # this one request's schema was refused as a schema: spell it out instead

        def once(timeout: float) -> Completion:
            arguments = self._chat_arguments(request, plain)
            try:
                reply = self._sdk.chat.completions.with_raw_response.create(**arguments, timeout=timeout)
                return parse_completion(reply.http_response.content)
            except self._openai.APIStatusError as error:
                if "response_format" in arguments and BAD_SCHEMA.search(_message(error)) and not plain:
                    plain.append("text")
                    raise _Adapted from None
                raise self._status_error(error, arguments) from None

        return self._until_done(once, seconds)

    def embed(self, texts: tuple[str, ...], seconds: float) -> tuple[tuple[bytes, ...], Reported | None]:
        """float16 vectors of ``texts`` within ``seconds``. Raises LostInFlight, RequestRefused, ModelError."""

        def once(timeout: float) -> tuple[tuple[bytes, ...], Reported | None]:
            arguments: dict[str, Any] = {"model": self.endpoint.model, "input": list(texts)}
            # Without the parameter the package asks for base64 by itself: "float" is what every endpoint knows.
            arguments["encoding_format"] = "base64" if self.quirks.takes("encoding_format") else "float"
            try:
                reply = self._sdk.embeddings.with_raw_response.create(**arguments, timeout=timeout)
                return parse_embeddings(reply.http_response.content, len(texts))
            except self._openai.APIStatusError as error:
                raise self._status_error(error, arguments) from None

        return self._until_done(once, seconds)

    def transcribe(
        self, audio: bytes, length: float, seconds: float
    ) -> tuple[str, tuple[Segment, ...], Reported | None]:
        """What is said in a WAV file of ``length`` seconds. Raises LostInFlight, RequestRefused, ModelError."""

        def once(timeout: float) -> tuple[str, tuple[Segment, ...], Reported | None]:
            arguments: dict[str, Any] = {"model": self.endpoint.model, "response_format": self.quirks.timed}
            file = ("audio.wav", audio, "audio/wav")
            try:
                create = self._sdk.audio.transcriptions.with_raw_response.create
                reply = create(**arguments, file=file, timeout=timeout)
                return parse_transcription(reply.http_response.content, length)
            except self._openai.APIStatusError as error:
                raise self._status_error(error, arguments) from None

        return self._until_done(once, seconds)

    def listed_models(self, seconds: float) -> bytes | None:
        """Body of the endpoint's list of models; None where it has none. Raises ModelError."""
        return self._asked(lambda timeout: self._sdk.models.with_raw_response.list(timeout=timeout), seconds)

    def knows_model(self, seconds: float) -> bool:
        """Whether the endpoint describes the model under its name; costs nothing. Raises ModelError."""
        retrieve = self._sdk.models.with_raw_response.retrieve
        return self._asked(lambda timeout: retrieve(self.endpoint.model, timeout=timeout), seconds) is not None

    def _asked(self, ask: Callable[[float], Any], seconds: float) -> bytes | None:
        def once(timeout: float) -> bytes | None:
            try:
                return bytes(ask(timeout).http_response.content)
            except self._openai.APIStatusError as error:
                if error.status_code in (401, 403) or error.status_code < 400:
                    raise self._status_error(error, {}) from None
                return None

        try:
            return self._until_done(once, seconds)
        except LostInFlight as error:
            raise ModelError(str(error)) from None

    def close(self) -> None:
        """Close the connections."""
        self._sdk.close()

    def _chat_arguments(self, request: ChatRequest, plain: list[str]) -> dict[str, Any]:
        mode = plain[0] if plain else self.quirks.format
        messages = request.messages
        arguments: dict[str, Any] = {"model": self.endpoint.model}
        if request.schema is not None:
            if mode != "json_schema":
                messages = with_schema_in_prompt(request)
            if (asked := response_format(request.schema, mode)) is not None:
                arguments["response_format"] = asked
        arguments["messages"] = messages_json(messages)
        if request.tools:
            arguments["tools"] = tools_json(request.tools)
        arguments[self.quirks.token_parameter] = request.max_tokens
        if self.quirks.takes("temperature"):
            arguments["temperature"] = request.temperature
        if request.seed is not None and self.quirks.takes("seed"):
            arguments["seed"] = request.seed
        return arguments

    def _until_done(self, once: Callable[[float], T], seconds: float) -> T:
        ends = self.timing.clock() + seconds
        attempt, adapted = 1, 0
        while True:
            left = ends - self.timing.clock()
            if left <= 0:
                raise ModelError(f"{self.where}: no reply within the call's {seconds:.0f} s")
            try:
                return self._classified(once, min(self.endpoint.timeout, left))
            except _Adapted:
                adapted += 1
                if adapted > ADAPTATIONS:
                    raise ModelError(f"{self.where}: refuses one parameter after the other") from None
            except _Transient as error:
                if attempt >= min(self.endpoint.attempts, error.attempts):
                    raise ModelError(f"{self.where}: gave up after {attempt} attempts: {error}") from None
                wait = error.retry_after or self.timing.backoff(attempt)
                if wait >= ends - self.timing.clock():
                    reason = f"{error}; the next attempt in {wait:.0f} s would pass the call's {seconds:.0f} s"
                    raise ModelError(f"{self.where}: {reason}") from None
                self.timing.sleep(wait)
                attempt += 1

    def _classified(self, once: Callable[[float], T], timeout: float) -> T:
        """Run one attempt; turn what went wrong below the protocol into _Transient or LostInFlight."""
        try:
            return once(timeout)
        except (BadReply, Unreadable) as error:
            raise LostInFlight(f"{self.where}: {error}") from None
        except self._openai.APIConnectionError as error:
            cause = error.__cause__
            if isinstance(cause, Unreadable):
                raise LostInFlight(f"{self.where}: {cause}") from None
            name = type(cause).__name__
            if name in NOT_SENT:
                reason = f"no connection ({self._shown(str(cause) or name)}); is it up?"
                raise _Transient(reason, attempts=CONNECTS) from None
            what = "no reply in time" if "Timeout" in name else f"the connection broke ({self._shown(name)})"
            raise LostInFlight(f"{self.where}: {what}") from None

    def _status_error(self, error: Any, arguments: dict[str, Any]) -> Exception:
        """What a status of 300 or more means. ``error`` is the package's APIStatusError."""
        status, message = int(error.status_code), self._shown(_message(error))
        if "tools" in arguments and status not in (401, 403, 429) and NO_TOOLS.search(_message(error)):
            return RequestRefused(f"{self.where}: takes no tools ({status}): {message}")
        if status in (401, 403):
            variable = self.endpoint.key_variable or self.endpoint.key_file or "key_env in the profile (none is named)"
            return ModelError(f"{self.where}: the key was refused ({status}): {message}; check {variable}")
        if status == 404 or (status in (400, 422) and NO_SUCH_MODEL.search(_message(error))):
            return ModelError(f"{self.where}: no such model or address ({status}): {message}; check model and base_url")
        if status == 402 or (status == 429 and "insufficient_quota" in _message(error) + str(error.code)):
            return ModelError(f"{self.where}: the account has no credit left ({status}): {message}")
        if (status in TRANSIENT or status >= 500) and not NOT_TAKEN.search(_message(error)):
            return _Transient(f"status {status}: {message}", _retry_after(error.response.headers))
        if status in (400, 422):
            parameter = refused_parameter(error.body, _message(error), arguments)
            if parameter and self.quirks.learn(parameter, arguments[parameter], message):
                return _Adapted()
        if status < 400:
            return ModelError(f"{self.where}: answered with a redirect ({status}); set base_url to the final address")
        return RequestRefused(f"{self.where}: refused the request ({status}): {message}")

    def _shown(self, text: str) -> str:
        return visible(text.replace(self._key, "***") if self._key else text, 300)


def _message(error: Any) -> str:
    """The endpoint's own words: OpenAI's ``message``, else the body as it came."""
    body = error.body
    if isinstance(body, dict) and isinstance(body.get("message"), str):
        return " ".join(f"{body['message']} {body.get('code') or ''}".split())
    return " ".join((body if isinstance(body, str) else json.dumps(body, default=str)).split())[:4_000]


def _retry_after(headers: Any) -> float | None:
    """Seconds that the endpoint asks to wait, given in seconds or as a date; None where it does not say."""
    value = str(headers.get("retry-after") or "").strip()
    try:
        seconds = float(value)
    except ValueError:
        try:
            now = headers.get("date")
            reference = parsedate_to_datetime(now).timestamp() if now else time.time()
            seconds = parsedate_to_datetime(value).timestamp() - reference
        except (ValueError, TypeError, OverflowError):
            return None
    return seconds if 0 < seconds < 1e9 else None
