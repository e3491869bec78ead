"""The multi-key index: four keys, the best one counts, an empty one never."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation.schema import check_schema, check_value
from policies.blocks.bm25 import bm25
from policies.blocks.keys import BATCH, KEY_CHARS, KEYS, KeyMemory, Keys
from policies.blocks.postings import Postings
from policies.blocks.rewrite import FOUR_KEYS, Rewriter
from policies.blocks.tokens import terms
from policies.blocks.vectors import encode
from policies.contract import Build, BuildReply, Embed, EmbedReply, ModelFailed, NoModel, Utterance, Window

BLANK = Keys("", "", "", "")
Serve = Callable[[Any], Any]


def windows(count: int) -> list[Window]:
    return [Window(at, 30.0 * at, 30.0 * at + 30, (f"I lift cup {at}.",), (), False) for at in range(count)]


def drive(asking: Any, serve: Serve) -> list[Any]:
    """Everything asked, one by one."""
    asked: list[Any] = []
    try:
        wanted = next(asking)
        while True:
            asked += wanted
            wanted = asking.send([serve(one) for one in wanted])
    except StopIteration:
        return asked


def vectors_of(table: dict[str, Sequence[float]]) -> Serve:
    def serve(request: Embed) -> EmbedReply:
        rows = np.array([table[text] for text in request.texts], np.float32)
        return EmbedReply(rows.shape[1], encode(rows))

    return serve


def memory_of(keys: Sequence[Keys], serve: Serve | None = None) -> KeyMemory:
    memory = KeyMemory()
    memory.observe(windows(len(keys)), keys)
    if serve is not None:
        drive(memory.embed(memory.bare[:]), serve)
    return memory


def test_there_are_four_keys() -> None:
    assert KEYS == ("EVENT_ACTION", "DIALOGUE_MENTION", "OBJECT", "SUMMARY")
    assert Keys("a", "b", "c", "d").texts == ("a", "b", "c", "d")


def test_relevance_is_the_largest_cosine_over_the_keys() -> None:
    table = {"e": (3.0, 4.0), "d": (0.0, 2.0), "o": (-1.0, 0.0), "s": (1.0, 0.0), "t": (4.0, 3.0)}
    memory = memory_of([Keys("e", "d", "o", "s"), Keys("o", "d", "e", ""), Keys("", "o", "", "")], vectors_of(table))
    assert memory.cosine(np.array([5.0, 0.0], np.float32)) == pytest.approx([1.0, 0.6, -1.0])
    assert memory.cosine(np.array([0.0, 1.0], np.float32)) == pytest.approx([1.0, 1.0, 0.0])
    assert memory.bare == []


def test_an_empty_key_is_not_embedded_and_a_window_without_keys_never_matches() -> None:
    memory = KeyMemory()
    memory.observe(windows(2), [Keys("", " \n", "o", ""), Keys("e", "", "", "")])
    memory.observe([Window(2, 60.0, 90.0, (), (), False)])
    asked = drive(memory.embed(memory.bare[:]), vectors_of({"o": (-1.0, 0.0), "e": (0.0, -1.0)}))
    assert [text for request in asked for text in request.texts] == ["o", "e"]
    assert memory.cosine(np.array([1.0, 0.0], np.float32)).tolist() == [-1.0, 0.0, -np.inf]
    assert memory.bare == [2]


def test_without_an_embedder_it_says_so_and_is_not_asked_again() -> None:
    memory = memory_of([Keys("cup lifted", "", "", "")], lambda request: NoModel("none"))
    assert memory.embedder is False and memory.bare == [0]
    assert drive(memory.embed([0]), lambda request: pytest.fail("asked again")) == []


def test_requests_are_of_bounded_size_and_one_that_fails_leaves_its_windows_bare() -> None:
    keys = [Keys(f"event {at}", "x" * 9_000, f"thing {at}", "") for at in range(25)]
    asked: list[Embed] = []

    def serve(request: Embed) -> EmbedReply | ModelFailed:
        asked.append(request)
        rows = np.ones((len(request.texts), 2), np.float32)
        return ModelFailed("down") if len(asked) == 2 else EmbedReply(2, encode(rows))

    memory = memory_of(keys, serve)
    assert [len(request.texts) for request in asked] == [BATCH, BATCH, 75 - 2 * BATCH]
    assert max(len(text) for request in asked for text in request.texts) == KEY_CHARS
    assert memory.bare == [*range(10, 22)] and memory.embedder  # 32 texts end inside window 10, 64 inside window 21
    scores = memory.cosine(np.ones(2, np.float32))
    assert np.flatnonzero(np.isfinite(scores)).tolist() == [*range(10), *range(22, 25)]
    drive(memory.embed(memory.bare[:]), lambda request: EmbedReply(2, encode(np.ones((len(request.texts), 2)))))
    assert memory.bare == [] and np.isfinite(memory.cosine(np.ones(2, np.float32))).all()


def test_the_fallback_is_the_largest_bm25_over_the_keys() -> None:
    keys = [Keys("Ada waters the fern", "Ada: it is dry", "", ""), Keys("", "water the fern, Ben", "fern", "fern dry")]
    memory = memory_of(keys)
    each = []
    for column in range(4):
        index = Postings()
        for one in keys:
            listed = terms(one.texts[column])
            index.add({term: listed.count(term) for term in listed})
        each.append(bm25(index, terms("who watered the fern")))
    assert memory.lexical("who watered the fern").tolist() == np.max(each, axis=0).tolist()
    assert memory.lexical("submarine").tolist() == [0.0, 0.0]


def test_keys_by_rule() -> None:
    memory = KeyMemory()
    line = "Ben opens the drawer and takes out a knife."
    memory.observe([Window(0, 0.0, 30.0, (line, line, "Ada: Careful!"), (Utterance("Ben", "Got it."),), False)])
    keys = memory.keys[0]
    assert keys.event == line
    assert keys.dialogue == "Ben: Got it. Ada: Careful!"
    assert keys.objects == "open drawer, take knife"
    assert {"ben", "drawer", "knife"} <= set(keys.summary.split()) and "the" not in keys.summary.split()


@given(st.lists(st.lists(st.floats(-4, 4, width=16), min_size=3, max_size=3), min_size=4, max_size=40), st.data())
def test_windows_observed_later_change_no_score(rows: list[list[float]], data: st.DataObject) -> None:
    count = len(rows) // 4
    cut = data.draw(st.integers(1, count))
    table = {f"{at}/{key}": rows[4 * at + key] for at in range(count) for key in range(4)}
    keys = [Keys(*(f"{at}/{key}" for key in range(4))) for at in range(count)]
    query = np.array([1.0, -2.0, 0.5], np.float32)
    whole, prefix = memory_of(keys, vectors_of(table)), memory_of(keys[:cut], vectors_of(table))
    assert whole.cosine(query)[:cut].tolist() == prefix.cosine(query).tolist()


# ---------------------------------------------------------------- keys by the builder


def test_the_builder_writes_four_keys() -> None:
    value = {
        "EVENT_ACTION": "Ada\nlifts a cup",
        "DIALOGUE_MENTION": "",
        "OBJECT": "cup: table to shelf",
        "SUMMARY": "cup",
    }
    asked: list[Build] = []

    def serve(request: Build) -> BuildReply:
        asked.append(request)
        return BuildReply(value if len(asked) == 1 else dict.fromkeys(KEYS, " "))

    memory = KeyMemory()
    rewriter = Rewriter(FOUR_KEYS, memory.observe)
    rewriter.observe(windows(2))
    drive(rewriter.settle(), serve)
    check_schema(asked[0].schema)
    check_value(value, asked[0].schema)
    assert list(asked[0].schema["properties"]) == list(KEYS)
    assert memory.keys[0] == Keys("Ada lifts a cup", "", "cup: table to shelf", "cup")
    assert memory.keys[1].event == "I lift cup 1." and rewriter.label == {"model": 1, "rules": 1}
