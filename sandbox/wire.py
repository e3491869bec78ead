"""The wire: strict, bounded JSON lines between the host and the runner.

Both sides use this file: the host treats every line it receives as hostile; inside, the same checks turn a
policy's honest mistake into an error that it can read. Only the standard library and the contract are used.

    host → runner   start, observe, settle, question, replies, closed
    runner → host   ready, done, requests, answer, crash (a question), failed (the stream), settled

A window travels as the list [index, start, end, captions, [[speaker, text], ...], frames]; everything else as an
object with exactly the keys of its dataclass, and ``type`` where several types can stand.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, cast

from policies import contract
from policies.contract import (
    Answer,
    Budget,
    Build,
    Embed,
    Frames,
    Generate,
    Json,
    Message,
    Query,
    Read,
    Refused,
    Reply,
    Request,
    Setup,
    Utterance,
    Window,
)

MAX_DEPTH = 32
MAX_REQUESTS = 64
"""Requests in one list."""
MAX_DIAGNOSTICS = 8_000
MAX_ROUTE = 64
MAX_TEXT = 1_048_576
MAX_ITEMS = 4_096


class WireError(ValueError):
    """A line or a value is not what the protocol allows; ``str(error)`` says where and why."""


# ---------------------------------------------------------------- lines


def encode(message: Mapping[str, Json]) -> bytes:
    """One line with its newline. Raises WireError for what JSON cannot carry (NaN, lone surrogates, other types).

    A numpy scalar goes as its Python value: a policy that computes with arrays need not convert each number.
    """
    try:
        text = json.dumps(message, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_scalar)
        return text.encode() + b"\n"
    except (TypeError, ValueError, RecursionError) as error:
        raise WireError(f"cannot be sent: {error}") from None


def _scalar(value: Any) -> Json:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def parse(line: bytes) -> dict[str, Json]:
    """One line as an object. Raises WireError for anything but strict, shallow, finite JSON in UTF-8."""
    try:
        value = json.loads(line.decode(), object_pairs_hook=_unique, parse_constant=_constant)
    except (ValueError, RecursionError) as error:
        raise WireError(f"not a line of the protocol: {type(error).__name__}: {str(error)[:200]}") from None
    if type(value) is not dict:
        raise WireError("not an object")
    check_json(value, "line")
    return value


def check_json(value: Json, where: str, depth: int = MAX_DEPTH) -> None:
    """Raise WireError unless ``value`` is plain JSON, at most ``depth`` deep, finite, without lone surrogates."""
    if depth < 0:
        raise WireError(f"{where}: nested too deep")
    kind = type(value)
    if kind is str:
        _encodable(value, where)
    elif kind is float:
        if not math.isfinite(value):
            raise WireError(f"{where}: not finite")
    elif kind is list or kind is tuple:
        for item in value:
            check_json(item, where, depth - 1)
    elif kind is dict:
        for key, item in value.items():
            if type(key) is not str:
                raise WireError(f"{where}: a key is not a string")
            _encodable(key, where)
            check_json(item, where, depth - 1)
    elif value is not None and kind is not int and kind is not bool:
        raise WireError(f"{where}: {kind.__name__} is not JSON")


def _unique(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise WireError("a key stands twice")
    return value


def _constant(name: str) -> Json:
    raise WireError(f"{name} is not allowed")


def _encodable(value: str, where: str) -> None:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise WireError(f"{where}: a lone surrogate") from None


# ---------------------------------------------------------------- exact types


def record(value: Json, where: str, keys: Collection[str]) -> dict[str, Json]:
    """An object with exactly these keys."""
    if type(value) is not dict:
        raise WireError(f"{where}: not an object")
    if value.keys() != set(keys):
        raise WireError(f"{where}: keys are not {', '.join(sorted(keys))}")
    return value


def text(value: Json, where: str, limit: int = MAX_TEXT) -> str:
    """A string of at most ``limit`` characters."""
    if type(value) is not str:
        raise WireError(f"{where}: not a string")
    if len(value) > limit:
        raise WireError(f"{where}: {len(value)} characters, at most {limit} are allowed")
    _encodable(value, where)
    return value


def integer(value: Json, where: str, low: int = 0, high: int = 2**31) -> int:
    """An integer (never a bool) within the bounds."""
    if type(value) is not int:
        raise WireError(f"{where}: not an integer")
    if not low <= value <= high:
        raise WireError(f"{where}: not between {low} and {high}")
    return value


def number(value: Json, where: str) -> float:
    """A finite number (never a bool)."""
    if type(value) not in (int, float):
        raise WireError(f"{where}: not a number")
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise WireError(f"{where}: not finite")
    return result


def sequence(value: Json, where: str, limit: int = MAX_ITEMS) -> Sequence[Json]:
    """A list of at most ``limit`` items."""
    if type(value) not in (list, tuple):
        raise WireError(f"{where}: not a list")
    if len(value) > limit:
        raise WireError(f"{where}: {len(value)} items, at most {limit} are allowed")
    return cast(Sequence[Json], value)


def mapping(value: Json, where: str) -> dict[str, Json]:
    """An object with any keys and JSON values."""
    if type(value) is not dict:
        raise WireError(f"{where}: not an object")
    check_json(value, where)
    return value


def _texts(value: Json, where: str) -> tuple[str, ...]:
    return tuple(text(item, where) for item in sequence(value, where))


def _choices(value: Json, where: str) -> dict[str, str]:
    if type(value) is not dict or not 1 <= len(value) <= 26:
        raise WireError(f"{where}: not an object of 1 to 26 choices")
    return {text(letter, where, 8): text(choice, where) for letter, choice in value.items()}


# ---------------------------------------------------------------- host → runner


def window_to_json(window: Window) -> Json:
    """A window as its list."""
    lines = [[line.speaker, line.text] for line in window.transcript]
    return [window.index, window.start, window.end, list(window.captions), lines, window.frames]


def window_from_json(value: Json) -> Window:
    """The inverse; the host is trusted, so only the shape is relied upon."""
    index, start, end, captions, lines, frames = value
    return Window(index, start, end, tuple(captions), tuple(Utterance(who, said) for who, said in lines), frames)


def query_to_json(query: Query) -> Json:
    """A query as an object."""
    fields = ("id", "type", "question", "choices", "time")
    return {name: getattr(query, name) for name in fields} | {"choices": dict(query.choices)}


def query_from_json(value: Json) -> Query:
    """The inverse."""
    return Query(**value)


def setup_to_json(setup: Setup) -> Json:
    """A setup as an object."""
    budget = {name: getattr(setup.budget, name) for name in Budget.__dataclass_fields__}
    return {"budget": budget, "seed": setup.seed}


def setup_from_json(value: Json) -> Setup:
    """The inverse."""
    return Setup(Budget(**value["budget"]), value["seed"])


def reply_to_json(reply: Reply | Refused) -> Json:
    """A reply, or a refusal by the name of its type."""
    if isinstance(reply, Refused):
        name = type(reply).__name__
        return {"type": name if name in contract.REFUSALS else "BadRequest", "detail": str(reply)[:2_000]}
    values = {name: getattr(reply, name) for name in type(reply).__dataclass_fields__}
    if isinstance(reply, contract.FramesReply):
        values["frames"] = [{"ref": frame.ref, "time": frame.time} for frame in reply.frames]
    elif isinstance(reply, contract.EmbedReply):
        values["vectors"] = list(reply.vectors)
    return {"type": type(reply).__name__, **values}


def reply_from_json(value: Json) -> Reply | Refused:
    """The inverse; a refusal comes back as an error object."""
    fields = dict(value)
    name = fields.pop("type")
    if name in contract.REFUSALS:
        return contract.REFUSALS[name](fields["detail"])
    if name == "FramesReply":
        return contract.FramesReply(tuple(contract.Frame(**frame) for frame in fields["frames"]))
    if name == "EmbedReply":
        return contract.EmbedReply(fields["dimensions"], tuple(fields["vectors"]))
    kinds: dict[str, Callable[..., Reply]] = {
        "BuildReply": contract.BuildReply,
        "ReadReply": contract.ReadReply,
        "GenerateReply": contract.GenerateReply,
    }
    return kinds[name](**fields)


# ---------------------------------------------------------------- runner → host: requests


def request_to_json(request: Request) -> Json:
    """A request as an object; nothing is checked here (``request_from_json`` does)."""
    values = {name: getattr(request, name) for name in type(request).__dataclass_fields__}
    if isinstance(request, Build | Generate):
        values["messages"] = [{"role": m.role, "content": m.content} for m in request.messages]
        values["schema"] = None if request.schema is None else dict(request.schema)
    if isinstance(request, Read):
        values["choices"] = dict(request.choices)
    return {"type": type(request).__name__, **values}


def request_from_json(value: Json) -> Request:
    """A request, every field of its exact type. Raises WireError."""
    if type(value) is not dict or type(value.get("type")) is not str or value["type"] not in _REQUESTS:
        raise WireError(f"request: type is none of {', '.join(_REQUESTS)}")
    return _REQUESTS[value["type"]](value)


def _messages(value: Json) -> tuple[Message, ...]:
    messages = []
    for item in sequence(value, "messages", 256):
        fields = record(item, "message", ("role", "content"))
        if fields["role"] not in ("system", "user", "assistant"):
            raise WireError("message: role is not system, user or assistant")
        messages.append(Message(fields["role"], text(fields["content"], "message")))
    return tuple(messages)


def _build(value: Json) -> Build:
    fields = record(value, "Build", ("type", "messages", "schema", "max_tokens"))
    tokens = integer(fields["max_tokens"], "Build.max_tokens", 1)
    return Build(_messages(fields["messages"]), mapping(fields["schema"], "Build.schema"), tokens)


def _read(value: Json) -> Read:
    keys = ("type", "question", "choices", "context", "instructions", "frames", "part")
    fields = record(value, "Read", keys)
    if fields["part"] not in ("answering", "verification"):
        raise WireError("Read.part: not answering or verification")
    return Read(
        text(fields["question"], "Read.question"),
        _choices(fields["choices"], "Read.choices"),
        text(fields["context"], "Read.context"),
        text(fields["instructions"], "Read.instructions"),
        _texts(fields["frames"], "Read.frames"),
        fields["part"],
    )


def _generate(value: Json) -> Generate:
    fields = record(value, "Generate", ("type", "messages", "max_tokens", "schema"))
    schema = fields["schema"]
    return Generate(
        _messages(fields["messages"]),
        integer(fields["max_tokens"], "Generate.max_tokens", 1),
        None if schema is None else mapping(schema, "Generate.schema"),
    )


def _embed(value: Json) -> Embed:
    fields = record(value, "Embed", ("type", "texts", "frames"))
    return Embed(_texts(fields["texts"], "Embed.texts"), _texts(fields["frames"], "Embed.frames"))


def _frames(value: Json) -> Frames:
    fields = record(value, "Frames", ("type", "times"))
    return Frames(tuple(number(item, "Frames.times") for item in sequence(fields["times"], "Frames.times")))


_REQUESTS: Mapping[str, Callable[[Json], Request]] = {
    "Build": _build,
    "Read": _read,
    "Generate": _generate,
    "Embed": _embed,
    "Frames": _frames,
}


def requests_from_json(value: Json) -> tuple[Request, ...]:
    """The requests of one line, at least one."""
    items = sequence(value, "requests", MAX_REQUESTS)
    if not items:
        raise WireError("requests: none")
    return tuple(request_from_json(item) for item in items)


# ---------------------------------------------------------------- runner → host: answers


def answer_to_json(answer: Answer, query: str) -> Json:
    """An answer to the question with this id; nothing is checked here."""
    return {
        "kind": "answer",
        "query": query,
        "choice": answer.choice,
        "route": answer.route,
        "evidence": list(answer.evidence),
        "diagnostics": dict(answer.diagnostics),
    }


def answer_from_json(value: Json, query: Query, seen: Collection[int], budget: Budget) -> Answer:
    """The answer to the open question ``query``, where ``seen`` holds the indices of the windows sent so far.

    Raises WireError for another question's id, a choice that is no letter of the question, evidence that was not
    seen or is too long, a long route, or diagnostics that are no JSON or too long.
    """
    fields = record(value, "answer", ("kind", "query", "choice", "route", "evidence", "diagnostics"))
    if fields["query"] != query.id:
        raise WireError("answer: not for the open question")
    choice = fields["choice"]
    if choice is not None and text(choice, "answer.choice", 8) not in query.choices:
        raise WireError(f"answer.choice: {choice!a} is no letter of the question")
    evidence = tuple(integer(item, "answer.evidence") for item in sequence(fields["evidence"], "answer.evidence"))
    if len(evidence) > budget.evidence:
        raise WireError(f"answer.evidence: {len(evidence)} references, at most {budget.evidence} are allowed")
    if any(index not in seen for index in evidence):
        raise WireError("answer.evidence: a window that was not seen")
    diagnostics = mapping(fields["diagnostics"], "answer.diagnostics")
    size = len(json.dumps(diagnostics, ensure_ascii=False, separators=(",", ":")))
    if size > MAX_DIAGNOSTICS:
        raise WireError(f"answer.diagnostics: {size} characters, at most {MAX_DIAGNOSTICS} are allowed")
    return Answer(choice, text(fields["route"], "answer.route", MAX_ROUTE), evidence, diagnostics)


def kind_of(message: Mapping[str, Any]) -> str:
    """The kind of a message from the runner."""
    return text(message.get("kind"), "kind", 16)
