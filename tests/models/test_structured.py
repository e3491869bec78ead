"""JSON out of replies."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.interface import ChatReply, ReplyKind, Usage
from harness.models.structured import Unparseable, parse_json


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
    assert parse_json(reply(text)) == {"choice": "A"}


def test_a_verdict_is_the_whole_reply_or_none() -> None:
    assert parse_json('```json\n{"choice": "A"}\n```', lenient=False) == {"choice": "A"}
    for text in ('The code prints {"choice": "A"}', '{"choice": "A"', '{"choice": "A"} {"choice": "B"}', ""):
        with pytest.raises(Unparseable):
            parse_json(text, lenient=False)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("no", "no JSON"),
        ("", "no JSON"),
        ("[" * 100_000, "no JSON"),
        ('{"choice": "' + "x" * 300_000, "no JSON"),
    ],
)
def test_faults_are_one_line(text: Any, words: Any) -> None:
    with pytest.raises(Unparseable) as caught:
        parse_json(text)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", [ReplyKind.EMPTY, ReplyKind.REFUSED, ReplyKind.TRUNCATED])
def test_a_reply_that_did_not_end_well_is_never_parsed(kind: Any) -> None:
    with pytest.raises(Unparseable, match=kind.value):
        parse_json(reply('{"choice": "A"}', kind))


@pytest.mark.parametrize("text", ["NaN", "Infinity", "1e999", "-1e999"])
def test_numbers_are_finite(text: Any) -> None:
    with pytest.raises(Unparseable):
        parse_json(f'{{"x": {text}}}', lenient=False)


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5), st.lists, max_leaves=6))
def test_what_was_written_is_read_back_fenced_or_not(value: Any) -> None:
    text = json.dumps(value)
    assert parse_json(text, lenient=False) == parse_json(f"```json\n{text}\n```") == value


@settings(deadline=None)
@given(st.text(alphabet="{}[]\"',:aA1 \n`", max_size=60))
def test_nothing_but_a_value_or_one_line(text: str) -> None:
    try:
        json.dumps(parse_json(text), allow_nan=False)
    except Unparseable as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize("filler", [" ", "```", "```\n", "{", "[1,", '"', "\n "])
def test_a_long_reply_takes_no_long_time(filler: str) -> None:
    text = "```json\n{" + filler * (5_000_000 // len(filler)) + "x```"
    started = time.thread_time()
    with pytest.raises(Unparseable):
        parse_json(text)
    assert time.thread_time() - started < 2
