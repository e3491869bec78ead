"""The wire: what was sent comes back; whatever else arrives is a typed error, never another exception."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policies.contract import (
    Answer,
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
    NoModel,
    Query,
    Read,
    ReadReply,
    Refused,
    Setup,
    Utterance,
    Window,
)
from sandbox import wire
from sandbox.text import log_text, one_line
from sandbox.wire import WireError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
NUMBER = st.floats(0, 1e6, allow_nan=False)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
MESSAGES = st.lists(st.builds(Message, st.sampled_from(["system", "user", "assistant"]), TEXT), max_size=3).map(tuple)
CHOICES = st.dictionaries(st.sampled_from("ABCDE"), TEXT, min_size=1)
TEXTS = st.lists(TEXT, max_size=3).map(tuple)
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
REQUESTS = st.one_of(
    st.builds(Build, MESSAGES, OBJECT, st.integers(1, 4096)),
    st.builds(Read, TEXT, CHOICES, TEXT, TEXT, TEXTS, st.sampled_from(["answering", "verification"])),
    st.builds(Generate, MESSAGES, st.integers(1, 4096), st.none() | OBJECT),
    st.builds(Embed, TEXTS, TEXTS),
    st.builds(Frames, st.lists(NUMBER, max_size=3).map(tuple)),
)
REPLIES = st.one_of(
    st.builds(BuildReply, JSON),
    st.builds(ReadReply, st.none() | st.sampled_from("ABC"), TEXT),
    st.builds(GenerateReply, TEXT, JSON),
    st.builds(EmbedReply, st.integers(1, 512), TEXTS),
    st.builds(FramesReply, st.lists(st.builds(Frame, TEXT, NUMBER), max_size=3).map(tuple)),
)
QUERY = Query("q", "type", "What?", {"A": "x", "B": "y"}, 60.0)
SEEN = {0, 1, 2}


def over_the_wire(value: Any) -> Any:
    return wire.parse(wire.encode({"v": value}))["v"]


@given(st.builds(Window, st.integers(0, 9999), NUMBER, NUMBER, TEXTS,
                 st.lists(st.builds(Utterance, TEXT, TEXT), max_size=3).map(tuple), st.booleans()))  # fmt: skip
def test_windows_come_back(window: Window) -> None:
    assert wire.window_from_json(over_the_wire(wire.window_to_json(window))) == window


@given(st.builds(Query, TEXT, TEXT, TEXT, CHOICES, NUMBER))
def test_queries_come_back_with_their_choices_in_order(query: Query) -> None:
    back = wire.query_from_json(over_the_wire(wire.query_to_json(query)))
    assert back == query
    assert list(back.choices) == list(query.choices)


def test_a_setup_comes_back() -> None:
    setup = Setup(Budget(frames=1, embeds=2), 99)
    assert wire.setup_from_json(over_the_wire(wire.setup_to_json(setup))) == setup


@given(REQUESTS)
def test_requests_come_back(request: Any) -> None:
    assert wire.requests_from_json([over_the_wire(wire.request_to_json(request))]) == (request,)


@given(REPLIES)
def test_replies_come_back(reply: Any) -> None:
    assert wire.reply_from_json(over_the_wire(wire.reply_to_json(reply))) == reply


def test_refusals_come_back_by_type() -> None:
    back = wire.reply_from_json(over_the_wire(wire.reply_to_json(NoModel("none\nhere"))))
    assert type(back) is NoModel
    assert str(back) == "none\nhere"
    unknown = wire.reply_from_json(over_the_wire(wire.reply_to_json(Refused("bare"))))
    assert isinstance(unknown, Refused)


@given(st.binary(max_size=200) | TEXT.map(str.encode))
def test_any_bytes_are_parsed_or_a_wire_error(line: bytes) -> None:
    with contextlib.suppress(WireError):
        assert isinstance(wire.parse(line), dict)


@pytest.mark.parametrize(
    "line",
    [
        b"", b"[]", b"1", b"null", b"{", b'{"a":1}{"b":2}', b'{"a":1,"a":1}', b'{"b":{"a":1,"a":1}}', b'{"a":NaN}',
        b'{"a":Infinity}', b'{"a":-Infinity}', b'{"a":1e999}', b'{"a":"\\ud800"}', b'{"\\udfff":1}', b'{"a":"\xff"}',
        b'{"a":' + b"[" * 40 + b"]" * 40 + b"}", b"[" * 100_000, b'{"a":' * 100_000, b'{"a":' + b"9" * 5000 + b"}",
        '{"a":1}'.encode("utf-16"), b"\xef\xbb\xbf{}", b'{"a":\'b\'}', b'{"a":1,}', b'{"a":01}', b'{"a":"\n"}',
    ],
)  # fmt: skip
def test_what_is_not_strict_json_is_refused(line: bytes) -> None:
    with pytest.raises(WireError):
        wire.parse(line)


@given(JSON)
def test_any_value_as_a_request_is_a_request_or_a_wire_error(value: Any) -> None:
    for check in (wire.requests_from_json, wire.request_from_json):
        with contextlib.suppress(WireError):
            check(value)


def mutations(valid: dict[str, Any]) -> list[dict[str, Any]]:
    """Each field left out, and each replaced by values of the wrong type; one key too many."""
    wrong: list[Any] = [None, True, 1, -1, 1.5, "x" * 2_000_000, [], [None], {"x": None}, {}, "x"]
    found = [{k: v for k, v in valid.items() if k != name} for name in valid]
    found += [{**valid, name: value} for name in valid for value in wrong if type(value) is not type(valid[name])]
    return [*found, {**valid, "extra": 1}]


@pytest.mark.parametrize(
    "request_", [
        Build((Message("user", "x"),), {"type": "object"}), Read("q", {"A": "x"}, "context"),
        Embed(("x",)), Frames((1.0,)),
    ],
)  # fmt: skip
def test_mutated_requests_are_refused(request_: Any) -> None:
    valid = over_the_wire(wire.request_to_json(request_))
    wire.request_from_json(valid)
    for broken in mutations(valid):
        with pytest.raises(WireError):
            wire.request_from_json(broken)


def answer(**changes: Any) -> dict[str, Any]:
    valid = over_the_wire(wire.answer_to_json(Answer("A", "r", (0, 2), {"z": [1, {"d": None}]}), "q"))
    return {**valid, **changes}


def check_answer(value: Any) -> Answer:
    return wire.answer_from_json(value, QUERY, SEEN, Budget(evidence=3))


def test_an_answer_comes_back() -> None:
    assert check_answer(answer()) == Answer("A", "r", (0, 2), {"z": [1, {"d": None}]})
    assert check_answer(answer(choice=None)).choice is None


@pytest.mark.parametrize(
    "changes",
    [
        {"query": "other"}, {"query": None}, {"choice": "C"}, {"choice": ""}, {"choice": 0}, {"choice": ["A"]},
        {"choice": "a"}, {"route": None}, {"route": "x" * 65}, {"evidence": [3]}, {"evidence": [-1]},
        {"evidence": [0.0]}, {"evidence": [True]}, {"evidence": ["0"]}, {"evidence": [0] * 4}, {"evidence": None},
        {"diagnostics": None}, {"diagnostics": []}, {"diagnostics": {"x": "y" * 8000}}, {"score": 1}, {"seconds": 0},
    ],
)  # fmt: skip
def test_a_wrong_answer_record_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(WireError):
        check_answer(answer(**changes))


@given(OBJECT)
def test_any_object_as_an_answer_is_an_answer_or_a_wire_error(value: dict[str, Any]) -> None:
    with contextlib.suppress(WireError):
        check_answer(answer(**value))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", object(), {1, 2}, b"x", 1j])
def test_what_json_cannot_carry_is_not_sent(value: Any) -> None:
    with pytest.raises(WireError):
        wire.encode({"v": value})


def test_keys_of_any_type_do_not_slip_through_a_check() -> None:
    with pytest.raises(WireError):
        wire.check_json({1: 2}, "x")


@given(st.text(), st.integers(2, 40))
def test_shown_text_is_one_bounded_printable_line(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert len(shown) <= limit
    assert shown.isprintable()


@given(st.binary(max_size=100))
def test_a_log_keeps_its_lines_and_nothing_else_that_controls(data: bytes) -> None:
    shown = log_text(data, 64)
    assert all(character == "\n" or character.isprintable() for character in shown)
    assert shown.count("\n") == data[:64].count(b"\n")


def test_escapes_are_visible() -> None:
    assert one_line("a\x1b[31m\x9b\u202e\n") == "a\\x1b[31m\\x9b\\u202e\\n"
    assert json.dumps(one_line("é")) == '"\\u00e9"'
