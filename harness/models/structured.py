"""A JSON value out of a model's reply, checked against the schema that was asked for."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

import json_repair

from harness.display import visible
from harness.models.interface import ChatReply, ReplyKind

REPAIR_CHARS = 200_000
"""Longer texts are not repaired: the repair's time grows faster than its input."""
DEPTH = 64
STEPS = 100_000
"""Comparisons of a part of the value with a part of the schema, at most."""
FENCE = re.compile(r"\A\s*```[a-zA-Z]*[^\S\n]*\n(.*)\n[^\S\n]*```\s*\Z", re.DOTALL)
TYPES: Mapping[str, type | tuple[type, ...]] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "null": type(None),
    "number": (int, float),
    "integer": (int, float),
}


class Unparseable(ValueError):
    """The reply holds no value of the schema. One line that may go back to the model."""


def parse_json(reply: ChatReply | str, schema: Mapping[str, Any], lenient: bool = True) -> Any:
    """The reply's JSON value, checked against ``schema``.

    Args:
        reply: a reply, or its text.
        schema: checked are type, enum, const, properties, required, additionalProperties, items, bounds on length
            and size, anyOf, oneOf, allOf and local ``$ref``; other keywords are ignored.
        lenient: also take JSON out of surrounding prose and mend its syntax. Not for verdicts: there, the whole reply
            must be the value (in a code fence or not).

    Raises:
        Unparseable: refused, empty or cut off; no JSON; or a value that does not fit.
    """
    if isinstance(reply, ChatReply):
        if reply.kind is not ReplyKind.OK:
            raise Unparseable(
                f"the reply was {reply.kind} (finish reason {visible(reply.finish_reason, 40) or 'none'})"
            )
        reply = reply.text
    fenced = FENCE.match(reply)
    text = fenced[1] if fenced else reply
    try:
        value = _loads(text)
    except ValueError:
        if not lenient:
            raise Unparseable("the reply is not JSON alone") from None
        value = _dig_out(text)
    if (fault := fault_of(value, schema)) is not None:
        raise Unparseable(f"the reply does not fit the schema: {fault}")
    return value


def _loads(text: str) -> Any:
    """Strict JSON with finite numbers. Raises ValueError."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON number")

    def finite(digits: str) -> float:
        return number if math.isfinite(number := float(digits)) else refuse(digits)

    try:
        return json.loads(text, parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _dig_out(text: str) -> Any:
    """The object or list that the first bracket of ``text`` opens, mended where it is broken."""
    first = re.search(r"[{\[]", text)
    if first is None or len(text) > REPAIR_CHARS:
        raise Unparseable("the reply holds no JSON")
    try:
        value = json.JSONDecoder().raw_decode(text, first.start())[0]
    except (ValueError, RecursionError):
        try:
            value = json_repair.loads(text[first.start() :])
        except Exception as error:  # a third party's parser over hostile text: whatever it raises, there is no value
            raise Unparseable(f"the reply holds no JSON that can be mended ({type(error).__name__})") from None
    try:
        return _loads(json.dumps(value))
    except (ValueError, TypeError, RecursionError):
        raise Unparseable("the reply holds no JSON") from None


def fault_of(value: Any, schema: Any) -> str | None:
    """What does not fit, as ``value.items[2].name: ...``, or None."""
    return _Check(schema).fault(value, schema, "value", 0)


class _Check:
    """One value against one schema. Schemas may come from candidates: malformed parts are ignored, work is bounded."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._steps = STEPS

    def fault(self, value: Any, schema: Any, where: str, depth: int) -> str | None:
        self._steps -= 1
        if depth > DEPTH or self._steps < 0:
            return f"{where}: nested too deep" if depth > DEPTH else f"{where}: too much to check"
        if not isinstance(schema, Mapping):
            return None if schema is not False else f"{where}: not allowed"
        if isinstance(reference := schema.get("$ref"), str):
            return self.fault(value, self._resolve(reference), where, depth + 1)
        if isinstance(value, float) and not math.isfinite(value):
            return f"{where}: not a finite number"
        return _own_fault(value, schema, where) or self._inner_fault(value, schema, where, depth + 1)

    def _resolve(self, reference: str) -> Any:
        """A local reference's schema; an unknown one admits nothing."""
        found = self._root if reference.startswith("#") else False
        for part in reference.removeprefix("#").strip("/").split("/"):
            found = found.get(part, False) if isinstance(found, Mapping) and part else found
        return found

    def _inner_fault(self, value: Any, schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        for part in _list(schema.get("allOf")):
            if fault := self.fault(value, part, where, depth):
                return fault
        for keyword in ("anyOf", "oneOf"):
            if parts := _list(schema.get(keyword)):
                fits = sum(self.fault(value, part, where, depth) is None for part in parts)
                if not fits or (keyword == "oneOf" and fits > 1):
                    return f"{where}: fits {fits} of the forms of {keyword}"
        if isinstance(value, dict):
            return self._object_fault(value, schema, where, depth)
        if isinstance(value, list) and "items" in schema:
            faults = (self.fault(item, schema["items"], f"{where}[{i}]", depth) for i, item in enumerate(value))
            return next((fault for fault in faults if fault), None)
        return None

    def _object_fault(self, value: dict[str, Any], schema: Mapping[str, Any], where: str, depth: int) -> str | None:
        properties = schema.get("properties")
        properties = properties if isinstance(properties, Mapping) else {}
        for name in _list(schema.get("required")):
            if isinstance(name, str) and name not in value:
                return f"{where}: {visible(name, 80)} is missing"
        for name, item in value.items():
            inner = properties.get(name, schema.get("additionalProperties", True))
            if fault := self.fault(item, inner, f"{where}.{visible(name, 80)}", depth):
                return fault
        return None


def _own_fault(value: Any, schema: Mapping[str, Any], where: str) -> str | None:
    """Type, enum, const and bounds."""
    kinds = schema.get("type")
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(kinds, list) and not any(_is(value, kind) for kind in kinds):
        return f"{where}: must be {' or '.join(map(str, kinds))}, is {_kind(value)}"
    if isinstance(choices := schema.get("enum"), list) and not any(_same(value, c) for c in choices):
        return f"{where}: must be one of {visible(json.dumps(choices), 200)}"
    if "const" in schema and not _same(value, schema["const"]):
        return f"{where}: must be {visible(json.dumps(schema['const']), 200)}"
    for size, low, high in (
        (value if _number(value) else None, "minimum", "maximum"),
        (len(value) if isinstance(value, str) else None, "minLength", "maxLength"),
        (len(value) if isinstance(value, list) else None, "minItems", "maxItems"),
    ):
        if size is not None and _number(schema.get(low)) and size < schema[low]:
            return f"{where}: {low} is {schema[low]}"
        if size is not None and _number(schema.get(high)) and size > schema[high]:
            return f"{where}: {high} is {schema[high]}"
    return None


def _is(value: Any, kind: Any) -> bool:
    expected = TYPES.get(kind) if isinstance(kind, str) else None
    if expected is None or (isinstance(value, bool) and kind != "boolean"):
        return False
    return isinstance(value, expected) and not (
        kind == "integer" and isinstance(value, float) and not value.is_integer()
    )


def _kind(value: Any) -> str:
    return next((kind for kind in TYPES if _is(value, kind)), type(value).__name__)


def _same(value: Any, other: Any) -> bool:
    return bool(value == other) and (type(value) is type(other) or (_number(value) and _number(other)))


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
