"""The subset of JSON Schema: what is taken, what fits, and that hostile input is cheap to refuse."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.schema import SchemaError, check_schema, check_value

FIELDS = {
    "type": "object",
    "properties": {
        "event": {"type": "string"},
        "people": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "count": {"type": "integer"},
        "kind": {"enum": ["a", "b", None]},
    },
    "required": ["event"],
    "additionalProperties": False,
}


def test_a_usual_schema_is_taken() -> None:
    check_schema(FIELDS)


@pytest.mark.parametrize(
    "value",
    [{"event": ""}, {"event": "x", "people": ["p", "q", "r"], "count": 3, "kind": None}, {"event": "x", "kind": "a"}],
)
def test_fitting_values(value: Any) -> None:
    check_value(value, FIELDS)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "no object"),
        ({}, "lacks 'event'"),
        ({"event": 1}, "value.event is no string"),
        ({"event": "x", "more": 1}, "unknown key"),
        ({"event": "x", "people": ["a", "b", "c", "d"]}, "4 items"),
        ({"event": "x", "people": ["a", 2]}, r"people\[1\] is no string"),
        ({"event": "x", "count": True}, "no integer"),
        ({"event": "x", "count": 1.0}, "no integer"),
        ({"event": "x", "kind": "c"}, "none of the allowed"),
    ],
)
def test_values_that_do_not_fit(value: Any, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        check_value(value, FIELDS)


def test_true_is_not_one_and_nan_is_no_number() -> None:
    with pytest.raises(SchemaError):
        check_value(True, {"enum": [1]})
    with pytest.raises(SchemaError):
        check_value(float("nan"), {"type": "number"})


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "text"},
        {"type": ["string", "null"]},
        {"type": "string", "pattern": "(a+)+$"},
        {"$ref": "#"},
        {"type": "object", "properties": {"a": 3}},
        {"type": "object", "required": "event"},
        {"type": "array", "items": []},
        {"type": "array", "maxItems": True},
        {"enum": []},
        {"type": "string", "description": "x" * 9_000},
        {"type": "number", "enum": [float("inf")]},
        {"type": "string", "description": "\ud800"},
        {"type": "array", "maxItems": 10**5_000},
    ],
)
def test_schemas_that_are_not_taken(schema: Any) -> None:
    with pytest.raises(SchemaError):
        check_schema(schema)


def test_a_deep_schema_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(100_000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(SchemaError):
        check_schema(schema)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(json_values)
def test_any_json_is_judged_without_a_crash(value: Any) -> None:
    try:
        check_value(json.loads(json.dumps(value)), FIELDS)
    except SchemaError as error:
        assert "\n" not in str(error)
    if isinstance(value, dict):
        try:
            check_schema(value)
        except SchemaError as error:
            assert "\n" not in str(error)
