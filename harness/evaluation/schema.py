"""A small part of JSON Schema: what a policy may ask a model for, and whether a value fits.

Only the keywords below are taken, so that a schema means the same to every endpoint and to this check. No
references and no regular expressions: a candidate writes the schema, and checking it must stay cheap.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any

MAX_BYTES = 8_000
MAX_DEPTH = 8

_TYPES: Mapping[str, Callable[[Any], bool]] = {
    "object": lambda v: type(v) is dict,
    "array": lambda v: type(v) is list,
    "string": lambda v: type(v) is str,
    "integer": lambda v: type(v) is int,
    "number": lambda v: type(v) is int or (type(v) is float and math.isfinite(v)),
    "boolean": lambda v: type(v) is bool,
    "null": lambda v: v is None,
}
_KEYWORDS = {"type", "properties", "required", "additionalProperties", "items", "enum", "minItems", "maxItems"}
_NOTES = {"title", "description"}


class SchemaError(ValueError):
    """The schema is none of the subset, or a value does not fit; one line."""


def check_schema(schema: Mapping[str, Any]) -> None:
    """Raises SchemaError for a schema outside the subset."""
    try:
        size = len(json.dumps(schema, allow_nan=False, ensure_ascii=False).encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as error:
        raise SchemaError(f"schema is no JSON ({type(error).__name__})") from None
    if size > MAX_BYTES:
        raise SchemaError(f"schema of {size} bytes, at most {MAX_BYTES} are taken")
    _check(schema, 0)


def _check(schema: Any, depth: int) -> None:
    if depth > MAX_DEPTH:
        raise SchemaError(f"schema deeper than {MAX_DEPTH} levels")
    if not isinstance(schema, Mapping):
        raise SchemaError("schema: each part must be an object")
    unknown = sorted(str(key) for key in schema if key not in _KEYWORDS | _NOTES)
    if unknown:
        raise SchemaError(f"schema keyword {ascii(unknown[0])[:60]} is not taken; use {', '.join(sorted(_KEYWORDS))}")
    kind = schema.get("type")
    if not (type(kind) is str and kind in _TYPES) and not ("type" not in schema and "enum" in schema):
        raise SchemaError(f"schema type must be one of {', '.join(_TYPES)}")
    if "enum" in schema and (type(schema["enum"]) is not list or not schema["enum"]):
        raise SchemaError("schema enum must be a non-empty list")
    for key in ("minItems", "maxItems"):
        if key in schema and (type(schema[key]) is not int or schema[key] < 0):
            raise SchemaError(f"schema {key} must be a number of items")
    required = schema.get("required", [])
    if type(required) is not list or not all(type(name) is str for name in required):
        raise SchemaError("schema required must be a list of names")
    if type(schema.get("additionalProperties", True)) is not bool:
        raise SchemaError("schema additionalProperties must be true or false")
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        raise SchemaError("schema properties must be an object")
    for part in properties.values():
        _check(part, depth + 1)
    if "items" in schema:
        _check(schema["items"], depth + 1)


def check_value(value: Any, schema: Mapping[str, Any], where: str = "value") -> None:
    """Raises SchemaError where ``value`` does not fit a schema that passed ``check_schema``."""
    kind = schema.get("type")
    if kind is not None and not _TYPES[kind](value):
        raise SchemaError(f"{where} is no {kind}")
    if "enum" in schema and not any(type(value) is type(option) and value == option for option in schema["enum"]):
        raise SchemaError(f"{where} is none of the allowed values")
    if type(value) is dict:
        properties = schema.get("properties", {})
        for name in schema.get("required", ()):
            if name not in value:
                raise SchemaError(f"{where} lacks {ascii(name)[:60]}")
        for name, item in value.items():
            if name in properties:
                check_value(item, properties[name], f"{where}.{ascii(name)[1:-1][:60]}")
            elif not schema.get("additionalProperties", True):
                raise SchemaError(f"{where} has an unknown key {ascii(name)[:60]}")
    if type(value) is list:
        if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
            raise SchemaError(f"{where} has {len(value)} items")
        if "items" in schema:
            for index, item in enumerate(value):
                check_value(item, schema["items"], f"{where}[{index}]")
