"""Calls written as text: what is written is read back, anything else is refused in one line."""

from __future__ import annotations

import contextlib
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents.text_protocol import ProtocolError, TextCall, read_calls
from tests.agents.player import written

NAMES = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\r"), max_size=30).filter(
    lambda line: not line.strip().startswith(("<call", "</call>", "<<<<<<<", "=======", ">>>>>>>"))
)
CODE = st.lists(LINE, min_size=1, max_size=5).map("\n".join)


@settings(max_examples=150, deadline=None)
@given(NAMES, CODE, CODE)
def test_an_edit_is_read_as_it_was_written(name: str, search: str, replace: str) -> None:
    text = written([(name, {"path": "policy.py", "search": search, "replace": replace})])
    assert read_calls(text) == [TextCall(name, {"path": "policy.py", "search": search, "replace": replace})]


@settings(max_examples=150, deadline=None)
@given(CODE.filter(lambda text: "\n" in text))
def test_a_file_is_read_as_it_was_written(content: str) -> None:
    text = written([("write", {"path": "policy.py", "content": content}), ("list", {})])
    assert read_calls(text) == [TextCall("write", {"path": "policy.py", "content": content}), TextCall("list", {})]


def test_several_edits_in_one_call() -> None:
    edit = "<<<<<<< SEARCH\n{}\n=======\n{}\n>>>>>>> REPLACE\n"
    text = f"<call edit>\npath: a.py\n{edit.format('x', 'y')}\n{edit.format('  z', '')}</call>"
    assert [c.arguments for c in read_calls(text)] == [
        {"path": "a.py", "search": "x", "replace": "y"},
        {"path": "a.py", "search": "  z", "replace": ""},
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<call write>\npath: a.py\ncontent:\nx = 1", "not closed"),
        ("<call edit>\npath: a.py\n<<<<<<< SEARCH\nx\n</call>", "needs a line"),
        ("<call edit>\npath: a.py\n<<<<<<< SEARCH\nx\n=======\ny\n</call>", "needs a line"),
        ("<call edit>\nhere it comes\n</call>", "line 1"),
        ("<call edit>\n<<<<<<< SEARCH\nx\n=======\ny\n>>>>>>> REPLACE\nmore\n</call>", "text after"),
        ("<call list>\n</call>\n" * 100, "more than 64"),
    ],
)
def test_what_cannot_be_read_is_refused(text: str, message: str) -> None:
    with pytest.raises(ProtocolError, match=message) as caught:
        read_calls(text)
    assert "\n" not in str(caught.value)


PIECES = ["<call a>", "</call>", "x: 1", "y:", "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE", "text", "", "<call b> c"]


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=12))
def test_any_text_is_read_or_refused(lines: list[str]) -> None:
    try:
        calls = read_calls("\n".join(lines))
    except ProtocolError as error:
        assert "\n" not in str(error)
        return
    assert len(calls) <= 64


@pytest.mark.parametrize("text", ["<call " * 100_000, "x:\n" * 200_000, "<call a>\n" + "<<<<<<< SEARCH\n" * 50_000])
def test_a_text_made_to_be_slow_is_read_in_no_time(text: str) -> None:
    began = time.process_time()
    with contextlib.suppress(ProtocolError):
        read_calls(text)
    assert time.process_time() - began < 2
