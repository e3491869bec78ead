"""Reading replies: kinds, think blocks, usage."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.interface import ReplyKind
from harness.models.wire import BadReply, Reported, parse_completion, parse_embeddings, parse_usage, without_thinking


def body(message: Any, finish: Any = "stop", **rest: Any) -> Any:
    return json.dumps({"choices": [{"message": message, "finish_reason": finish}], **rest}).encode()


@pytest.mark.parametrize(
    ("message", "finish", "kind", "text"),
    [
        ({"content": "B"}, "stop", ReplyKind.OK, "B"),
        ({"content": "B"}, None, ReplyKind.OK, "B"),
        ({"content": None}, "stop", ReplyKind.EMPTY, ""),
        ({}, "stop", ReplyKind.EMPTY, ""),
        ({"content": " \n"}, "stop", ReplyKind.EMPTY, " \n"),
        ({"content": "<think>hm</think>"}, "stop", ReplyKind.EMPTY, ""),
        ({"content": "<think>hm"}, "length", ReplyKind.TRUNCATED, ""),
        ({"content": "def f("}, "length", ReplyKind.TRUNCATED, "def f("),
        ({"content": None, "refusal": "I cannot"}, "stop", ReplyKind.REFUSED, ""),
        ({"content": "part"}, "content_filter", ReplyKind.REFUSED, "part"),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}, 3]}, "stop", ReplyKind.OK, "ab"),
        ({"content": 5}, "stop", ReplyKind.EMPTY, ""),
        ({"content": "a\ud800b"}, "stop", ReplyKind.OK, "a?b"),
    ],
)
def test_kinds(message: Any, finish: Any, kind: Any, text: Any) -> None:
    done = parse_completion(body(message, finish))
    assert (done.kind, done.text) == (kind, text)


def test_the_raw_reply_is_kept() -> None:
    assert parse_completion(body({"content": "<think>x</think>B"})).raw == "<think>x</think>B"
    assert parse_completion(body({"content": None, "refusal": "no"})).raw == "no"


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("plain", "plain"),
        ("  code\n    indented\n", "  code\n    indented\n"),
        ("<think>a</think>\n\nB", "B"),
        ("<think>a</think>B<think>c</think>D", "BD"),
        ("B <think>never closed", "B"),
        ("opened by the template</think>\nB", "B"),
        ("a</think>B<think>c</think>D", "BD"),
        ("<think>a</think>B</think>C", "B</think>C"),
        ("<think></think>", ""),
    ],
)
def test_think_blocks(raw: Any, text: Any) -> None:
    assert without_thinking(raw) == text


@settings(deadline=None)
@given(st.lists(st.sampled_from(["<think>", "</think>", "a", " "]), max_size=12).map("".join))
def test_nothing_opened_is_left(raw: Any) -> None:
    assert "<think>" not in without_thinking(raw)


def test_think_blocks_take_linear_time() -> None:
    assert without_thinking("<think>" * 500_000) == ""


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 10, "completion_tokens": 5}, Reported(10, 5, 0, 0)),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 15,
                "completion_tokens_details": {"reasoning_tokens": 4},
                "prompt_tokens_details": {"cached_tokens": 8},
            },
            Reported(10, 5, 4, 8),
        ),
        # reasoning left out of completion_tokens, but not of the total
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 5,
                "total_tokens": 115,
                "completion_tokens_details": {"reasoning_tokens": 100},
            },
            Reported(10, 105, 100, 0),
        ),
        ({"prompt_tokens": 10, "completion_tokens": 1, "prompt_cache_hit_tokens": 6}, Reported(10, 1, 0, 6)),
        ({"prompt_tokens": 10, "total_tokens": 10}, Reported(10, 0, 0, 0)),
        (
            {"prompt_tokens": 10, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 99}},
            Reported(10, 5, 0, 10),
        ),
        ({"prompt_tokens": 0, "completion_tokens": 0}, None),
        ({"prompt_tokens": -1, "completion_tokens": 5}, None),
        ({"prompt_tokens": True, "completion_tokens": 5}, None),
        ({"prompt_tokens": 10**30, "completion_tokens": 5}, None),
        ({"prompt_tokens": "10", "completion_tokens": 5}, None),
        ({}, None),
        (None, None),
        ([], None),
    ],
)
def test_usage(usage: Any, expected: Any) -> None:
    assert parse_usage(usage) == expected


def test_text_without_a_token_is_not_believed() -> None:
    def usage(content: str) -> Any:
        reply = {"choices": [{"message": {"content": content}}], "usage": {"prompt_tokens": 9, "completion_tokens": 0}}
        return parse_completion(json.dumps(reply).encode()).usage

    assert usage("some text") is None
    assert usage("") == Reported(9, 0, 0, 0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                ["choices", "message", "content", "usage", "finish_reason", "data", "embedding", "index", "x"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@settings(deadline=None)
@given(JSON)
def test_hostile_replies_raise_one_thing_only(value: Any) -> None:
    data = json.dumps(value).encode("utf-8", "surrogatepass")
    for parse in (parse_completion, lambda data: parse_embeddings(data, 2)):
        try:
            parse(data)
        except BadReply as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"[" * 100_000, b"nonsense", b'{"choices": ['])
def test_broken_bytes(data: Any) -> None:
    with pytest.raises(BadReply):
        parse_completion(data)
