"""Between our requests and replies and the JSON of the chat-completions protocol. Every reply is untrusted."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from harness.models.interface import ChatMessage, ChatRequest, ReplyKind, Segment, Tool, ToolCall

MAX_TOKENS = 10**9
"""A reported count above this is not believed."""
MOST_CALLS = 64
"""Tool calls of one reply that are looked at."""
CALL_CHARS = 400_000
"""Longer arguments of a call are cut, so that they are no JSON any more."""


class BadReply(Exception):
    """The endpoint answered with something that is no reply of the protocol. One line."""


@dataclass(frozen=True, slots=True)
class Reported:
    """Usage as the endpoint reports it."""

    prompt: int
    completion: int
    """Reasoning tokens included."""
    reasoning: int
    cached: int


@dataclass(frozen=True, slots=True)
class Completion:
    """One parsed chat completion."""

    kind: ReplyKind
    text: str
    raw: str
    finish_reason: str
    model: str
    usage: Reported | None
    calls: tuple[ToolCall, ...] = ()


# ---------------------------------------------------------------- out


def messages_json(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    """Messages as the protocol has them; images follow the text as data URLs."""
    return [_message(m) for m in messages]


def _message(message: ChatMessage) -> dict[str, Any]:
    body: dict[str, Any] = {"role": message.role, "content": _content(message)}
    if message.answers:
        body["tool_call_id"] = message.answers
    if message.calls:
        body["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in message.calls
        ]
        body["content"] = body["content"] or None
    return body


def tools_json(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """Tools as the protocol has them."""
    return [
        {
            "type": "function",
            "function": {"name": t.name, "description": t.description, "parameters": dict(t.parameters)},
        }
        for t in tools
    ]


def _content(message: ChatMessage) -> str | list[dict[str, Any]]:
    if not message.images:
        return message.content
    parts: list[dict[str, Any]] = [{"type": "text", "text": message.content}]
    for image in message.images:
        kind = "png" if image.startswith(b"\x89PNG") else "jpeg"
        url = f"data:image/{kind};base64,{base64.b64encode(image).decode()}"
        parts.append({"type": "image_url", "image_url": {"url": url}})
    return parts


def response_format(schema: Mapping[str, Any], mode: str) -> dict[str, Any] | None:
    """``mode`` is ``json_schema``, ``json_object`` or ``text`` (None: the parameter is left out)."""
    if mode == "json_schema":
        body = {"name": "reply", "schema": dict(schema), "strict": _is_strict(schema)}
        return {"type": "json_schema", "json_schema": body}
    return {"type": "json_object"} if mode == "json_object" else None


def with_schema_in_prompt(request: ChatRequest) -> tuple[ChatMessage, ...]:
    """The messages with the schema spelled out, for models that take no schema as a parameter."""
    *before, last = request.messages
    wish = (
        f"\n\nReply with one JSON value and nothing else. It must fit this JSON schema:\n{json.dumps(request.schema)}"
    )
    return (*before, ChatMessage(last.role, last.content + wish, last.images))


def _is_strict(schema: Any, depth: int = 0) -> bool:
    """Whether the strict subset holds: every object lists all its properties as required and admits no others."""
    if depth > 32:
        return False
    if isinstance(schema, list):
        return all(_is_strict(item, depth + 1) for item in schema)
    if not isinstance(schema, Mapping):
        return True
    properties = schema.get("properties")
    if schema.get("type") == "object" or properties is not None:
        required = schema.get("required", ())
        named = set(properties) if isinstance(properties, Mapping) else set()
        if schema.get("additionalProperties") is not False or named != set(required) or not named:
            return False
    return all(_is_strict(value, depth + 1) for value in schema.values())


# ---------------------------------------------------------------- in


def parse_json_body(body: bytes) -> dict[str, Any]:
    """The reply's JSON object. Raises BadReply."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        raise BadReply(f"the reply is not JSON ({len(body)} bytes)") from None
    if not isinstance(value, dict):
        raise BadReply("the reply is not a JSON object")
    return value


def parse_completion(body: bytes) -> Completion:
    """Read a chat completion. Raises BadReply."""
    value = parse_json_body(body)
    choices = value.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise BadReply("the reply has no choices")
    message = choices[0].get("message")
    if not isinstance(message, dict):
        raise BadReply("the reply has no message")
    raw = _text(message.get("content"))
    refusal = _text(message.get("refusal"))
    finish = choices[0].get("finish_reason")
    finish = finish if isinstance(finish, str) else ""
    text = without_thinking(raw)
    usage = parse_usage(value.get("usage"))
    calls = tuple(_calls(message.get("tool_calls")))
    return Completion(
        kind=_kind(text or bool(calls) * "called", refusal, finish),
        text=text,
        raw=raw or refusal,
        finish_reason=finish[:64],
        model=str(value.get("model") or "")[:200],
        usage=usage if usage and (usage.completion or not raw) else None,
        calls=calls,
    )


def _calls(value: Any) -> Iterator[ToolCall]:
    """The calls of a reply; what is none is left out, an id that is missing or stands twice is made up."""
    seen: set[str] = set()
    for number, item in enumerate(value[:MOST_CALLS] if isinstance(value, list) else ()):
        function = item.get("function") if isinstance(item, dict) else None
        if not isinstance(function, dict):
            continue
        arguments = function.get("arguments")
        if not isinstance(arguments, str):
            arguments = json.dumps(arguments if isinstance(arguments, dict) else {})
        name = _text(item.get("id"))[:100] or f"call-{number}"
        while name in seen:
            name += "+"
        seen.add(name)
        yield ToolCall(name, _text(function.get("name"))[:100], _text(arguments)[:CALL_CHARS])


def _kind(text: str, refusal: str, finish: str) -> ReplyKind:
    if refusal.strip() or finish == "content_filter":
        return ReplyKind.REFUSED
    if finish == "length":
        return ReplyKind.TRUNCATED
    return ReplyKind.OK if text.strip() else ReplyKind.EMPTY


def _text(content: Any) -> str:
    """Content is a string, null, or (some endpoints) a list of text parts. Lone surrogates are replaced."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return content.encode("utf-8", "replace").decode() if isinstance(content, str) else ""


def without_thinking(text: str) -> str:
    """``text`` without ``<think>`` blocks; an unclosed block runs to the end, an unopened one from the start."""
    opening, closing = "<think>", "</think>"
    if (end := text.find(closing)) >= 0 and not 0 <= text.find(opening) < end:
        text = text[end + len(closing) :].lstrip()  # the opening tag was in the model's chat template
    kept: list[str] = []
    at = 0
    while (start := text.find(opening, at)) >= 0:
        kept.append(text[at:start])
        end = text.find(closing, start)
        if end < 0:
            return "".join(kept).strip()
        at = end + len(closing)
    return "".join([*kept, text[at:]]).strip() if kept else text


def parse_usage(value: Any) -> Reported | None:
    """Reported usage, or None where it is missing or cannot be true."""
    if not isinstance(value, dict):
        return None
    # Transcriptions report input and output tokens instead, or a duration and no tokens.
    prompt = _count(value.get("prompt_tokens", value.get("input_tokens")))
    completion = _count(value.get("completion_tokens", value.get("output_tokens", 0)))
    if not prompt or completion is None:
        return None  # nothing is sent without a prompt: an endpoint that says so does not count
    total = _count(value.get("total_tokens"))
    if total is not None:
        completion = max(completion, total - prompt)  # some endpoints leave reasoning out of completion_tokens
    details, prompt_details = value.get("completion_tokens_details"), value.get("prompt_tokens_details")
    reasoning = _count(details.get("reasoning_tokens")) if isinstance(details, dict) else None
    cached = _count(prompt_details.get("cached_tokens")) if isinstance(prompt_details, dict) else None
    if cached is None:
        cached = _count(value.get("prompt_cache_hit_tokens"))
    return Reported(prompt, completion, min(reasoning or 0, completion), min(cached or 0, prompt))


def _count(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_TOKENS else None


def parse_embeddings(body: bytes, expected: int) -> tuple[tuple[bytes, ...], Reported | None]:
    """``expected`` vectors as little-endian float16 bytes, in the order of the texts. Raises BadReply."""
    value = parse_json_body(body)
    data = value.get("data")
    if not isinstance(data, list) or len(data) != expected:
        raise BadReply(f"the reply does not hold {expected} vectors")
    vectors: list[bytes | None] = [None] * expected
    for position, item in enumerate(data):
        index = item.get("index", position) if isinstance(item, dict) else None
        if not isinstance(index, int) or not 0 <= index < expected or vectors[index] is not None:
            raise BadReply("the reply's vectors are not numbered")
        vectors[index] = _vector(item.get("embedding"))
    done = tuple(vector for vector in vectors if vector is not None)
    if len({len(vector) for vector in done}) > 1:
        raise BadReply("the reply's vectors differ in length")
    return done, parse_usage(value.get("usage"))


def _vector(value: Any) -> bytes:
    try:
        if isinstance(value, str):
            numbers = np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4")
        elif isinstance(value, list) and all(isinstance(x, (int, float)) and math.isfinite(x) for x in value):
            numbers = np.asarray(value, dtype="<f4")
        else:
            raise BadReply("a vector of the reply is neither base64 nor numbers")
    except (ValueError, OverflowError):
        raise BadReply("a vector of the reply is not base64 of 32-bit floats") from None
    if not numbers.size or not np.isfinite(numbers).all() or np.abs(numbers).max() > 65_504:
        raise BadReply("a vector of the reply is empty or not finite")
    return numbers.astype("<f2").tobytes()


def parse_transcription(body: bytes, length: float) -> tuple[str, tuple[Segment, ...], Reported | None]:
    """Text and segments, within ``length`` seconds and in order of time. Raises BadReply."""
    value = parse_json_body(body)
    if not isinstance(value.get("text"), str):
        raise BadReply("the reply holds no transcript")
    listed = value.get("segments")
    found = [_segment(item, length) for item in listed] if isinstance(listed, list) else []
    segments = sorted((s for s in found if s is not None), key=lambda s: (s.start, s.end))
    usage = value.get("usage")
    by_length = isinstance(usage, dict) and usage.get("type") == "duration"
    return _text(value["text"]), tuple(segments), Reported(0, 0, 0, 0) if by_length else parse_usage(usage)


def _segment(item: Any, length: float) -> Segment | None:
    """One segment with its times cut to the audio's; None where it has no text or no times."""
    if not isinstance(item, dict) or not (text := _text(item.get("text")).strip()):
        return None
    start, end = item.get("start"), item.get("end")
    if not isinstance(start, (int, float)) or not isinstance(end, (int, float)):
        return None
    if not (math.isfinite(start) and math.isfinite(end)):
        return None
    start = min(max(float(start), 0.0), length)
    return Segment(start, min(max(float(end), start), length), text)
