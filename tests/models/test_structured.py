"""JSON out of replies."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, TypeAdapter, ValidationError

from harness.models.interface import ChatReply, ReplyKind, Usage
from harness.models.structured import Unparseable, fault_of, parse_json

SCHEMA = {
    "type": "object",
    "properties": {"choice": {"enum": ["A", "B"]}, "why": {"type": "string", "maxLength": 10}},
    "required": ["choice"],
    "additionalProperties": False,
}


def reply(text: Any, kind: Any = ReplyKind.OK) -> Any:
    return ChatReply(kind, text, text, Usage(), 0.0, "m", "stop", False)


@pytest.mark.parametrize(
    "text",
    [
        '{"choice": "A"}',
        ' \n{"choice": "A"}\n',
        '```json\n{"choice": "A"}\n```',
        'Here it is: {"choice": "A"} - as asked {braces}',
        "Sure!\n```\n{'choice': 'A'}\n```",
        '{"choice": "A"',
        '{choice: "A",}',
    ],
)
def test_lenient(text: Any) -> None:
    assert parse_json(reply(text), SCHEMA) == {"choice": "A"}


def test_a_verdict_is_the_whole_reply_or_none() -> None:
    assert parse_json('```json\n{"choice": "A"}\n```', SCHEMA, lenient=False) == {"choice": "A"}
    for text in ('The code prints {"choice": "A"}', '{"choice": "A"', '{"choice": "A"} {"choice": "B"}', ""):
        with pytest.raises(Unparseable):
            parse_json(text, SCHEMA, lenient=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "no JSON"),
        ("", "no JSON"),
        ('{"choice": "C"}', "value.choice: must be one of"),
        ("{}", "choice is missing"),
        ('{"choice": "A", "more": 1}', "value.more: not allowed"),
        ('{"choice": "A", "why": 5}', "value.why: must be string, is number"),
        ('{"choice": "A", "why": "far too long"}', "maxLength is 10"),
        ('["A"]', "must be object, is array"),
        ("[" * 100_000, "no JSON"),
        ('{"choice": "' + "x" * 300_000, "no JSON"),
    ],
)
def test_faults_are_one_line(text: Any, words: Any) -> None:
    with pytest.raises(Unparseable) as caught:
        parse_json(text, SCHEMA)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [ReplyKind.EMPTY, ReplyKind.REFUSED, ReplyKind.TRUNCATED])
def test_a_reply_that_did_not_end_well_is_never_parsed(kind: Any) -> None:
    with pytest.raises(Unparseable, match=kind.value):
        parse_json(reply('{"choice": "A"}', kind), SCHEMA)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", "-1e999"])
def test_numbers_are_finite(text: Any) -> None:
    with pytest.raises(Unparseable):
        parse_json(f'{{"x": {text}}}', {"type": "object"}, lenient=False)


class Inner(BaseModel):
    number: int
    flag: bool | None = None


class Outer(BaseModel):
    model_config = {"extra": "forbid", "strict": True}
    name: str
    inner: list[Inner] = []
    ratio: float = 0.0


NAMES = ["name", "inner", "ratio", "number", "flag"]
SMALL = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2).map(lambda x: x + 0.5) | st.text(max_size=3),
    lambda x: (
        st.lists(x, max_size=3) | st.dictionaries(st.sampled_from(["name", "inner", "ratio", "number", "flag"]), x)
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(
    SMALL
    | st.fixed_dictionaries(
        {"name": st.text(max_size=3)},
        optional={"inner": st.lists(st.fixed_dictionaries({"number": SMALL}), max_size=2), "ratio": SMALL},
    )
)
def test_agrees_with_pydantic_on_its_own_schemas(value: Any) -> None:
    try:
        TypeAdapter(Outer).validate_json(json.dumps(value), strict=True)
        fits = True
    except ValidationError:
        fits = False
    assert (fault_of(value, Outer.model_json_schema()) is None) == fits


SCHEMAS = st.recursive(
    st.sampled_from([True, False, None, 3, "x", {}, {"type": "object"}, {"$ref": "#"}, {"$ref": "#/x"}, {"$ref": 3}]),
    lambda s: st.dictionaries(
        st.sampled_from(
            [
                "type",
                "enum",
                "const",
                "required",
                "properties",
                "items",
                "anyOf",
                "oneOf",
                "allOf",
                "minimum",
                "maxLength",
                "minItems",
                "$ref",
                "$defs",
            ]
        ),
        s | st.lists(s, max_size=2),
        max_size=4,
    ),
    max_leaves=12,
)


@settings(deadline=None)
@given(SMALL, SCHEMAS)
def test_hostile_schemas_break_nothing(value: Any, schema: Any) -> None:
    fault = fault_of(value, schema)
    assert fault is None or "\n" not in fault


def test_a_schema_that_explodes_is_cut() -> None:
    bomb = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}
    assert fault_of(1, bomb) is not None
