"""Counting by lines gives what counting the whole text gives."""

from __future__ import annotations

import bpe_openai
from hypothesis import given
from hypothesis import strategies as st

from harness.models.counting import count_tokens

PARTS = st.sampled_from(
    ["\n", "\r\n", "\r", "\n\n", " ", "\t", "\x0b", "\u2028", "/", ".", ",", "'s", "a", "Bee", "12", "语", ""]
)


@given(st.lists(PARTS | st.text(max_size=3), max_size=60).map("".join))
def test_lines_are_cut_where_no_token_reaches_across(text: str) -> None:
    whole = bpe_openai.get_encoding("o200k_base").encode_ordinary(text)
    assert count_tokens(text) == len(whole)
    assert count_tokens(text) == len(whole), "and again, from what was kept"
