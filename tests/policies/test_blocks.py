"""Golden numbers of the method and properties of the blocks."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies import blocks
from policies.blocks import vectors
from policies.blocks.events import EventMemory
from policies.blocks.extract import read_line
from policies.blocks.fields import fields_choices, fields_question, question_weights, totals
from policies.blocks.formats import SEPARATOR, fit, five_fields, headline, raw
from policies.blocks.packing import EACH, GLOBALS, pack
from policies.blocks.recency import direction, ranked, temporal
from policies.blocks.scoring import overall, score
from policies.blocks.select import earliest, interleave, latest, neighbours, top, top_each, uniform
from policies.blocks.support import leader, support_counts
from policies.blocks.timefmt import stamp
from policies.blocks.tokens import content, speech_question, terms
from policies.contract import EmbedReply, Query, Utterance, Window


def window(index: int, *captions: str, spoken: tuple[tuple[str, str], ...] = ()) -> Window:
    transcript = tuple(Utterance(speaker, text) for speaker, text in spoken)
    return Window(index, 30.0 * index, 30.0 * (index + 1), captions, transcript, False)


def memory(*windows: Window) -> EventMemory:
    held = EventMemory()
    held.observe(windows)
    return held


def ask(question: str, *choices: str, type: str = "EventRecall") -> Query:
    return Query("q", type, question, dict(zip("ABCDEF", choices, strict=False)), 90_000.0)


# ---------------------------------------------------------------- tokens


def test_terms_are_lemmas_and_names_are_kept() -> None:
    assert content("Who bought the KNIVES that Tasha's sister ate with?") == {"buy", "knife", "tasha", "sister", "eat"}
    assert terms("the the mug, Mug!") == ["mug", "mug"]
    assert content("I don\u2019t; she isn't; where who what") == frozenset()
    assert content("José met Zoë") == {"josé", "meet", "zoë"}
    assert max(map(len, terms("x" * 100_000))) <= 40
    assert content("") == content("你好！") == frozenset()


@settings(deadline=None)
@given(st.text(max_size=200))
def test_content_of_any_text_is_casefolded_words(text: str) -> None:
    assert all(term and term == term.casefold() for term in terms(text))
    assert content(text) <= set(terms(text))


def test_questions_about_speech() -> None:
    assert speech_question("What did Ada suggest?") and speech_question("Who told me?")
    assert not speech_question("Where is the mug?")


# ---------------------------------------------------------------- extraction


def test_five_fields_of_a_window() -> None:
    held = memory(
        window(
            0,
            'I hand Ada the small red mug on the kitchen table. Ada says "Put it away".',
            "Ben: Good morning.",
            spoken=(("Cleo", "Is there tea?"), ("", "Yes.")),
        ),
        window(1, "Later Ada waters a plant upstairs, and Ben washes dishes."),
    )
    first = held.records[0]
    assert first.event.startswith("I hand Ada the small red mug") and "Put it away" not in first.event
    assert held.people(0) == ["Cleo", "Ben", "Ada"]
    assert "small red mug" in first.objects and "kitchen table" not in first.objects
    assert "kitchen table" in first.place
    assert first.dialogue == "Cleo: Is there tea? Yes. Put it away Ben: Good morning."
    assert "plant" in held.records[1].objects and "dishes" in held.records[1].objects
    assert held.records[1].place == "upstairs"


def test_names_are_learnt_from_what_was_seen_only() -> None:
    held = memory(window(0, "I greet Ada."))
    assert not held.is_name("ada") and held.people(0) == []
    held.observe([window(1, "I follow Ada.")])
    assert held.is_name("ada") and held.people(0) == held.people(1) == ["Ada"]
    assert not held.is_name("greet")


def test_an_empty_window_is_an_empty_record() -> None:
    held = memory(window(0))
    record = held.records[0]
    assert (record.event, record.people, record.objects, record.place, record.dialogue) == ("", (), "", "", "")
    assert five_fields(held, 0) == "[DAY1 00:00]"


@settings(deadline=None)
@given(st.text(max_size=300))
def test_any_line_can_be_read(text: str) -> None:
    line = read_line(text)
    assert all(line.objects) and all(line.places) and all(line.named)


# ---------------------------------------------------------------- scores


def test_a_name_in_the_event_counts_there_too() -> None:
    held = memory(window(0, "Then Ada."), window(1, "Then I see Ada."))
    assert fields_choices(held, ask("Then?", "Ada"))[:, 0].tolist() == [3.0 + 3.5, 3.0 + 3.5]


def test_a_phrase_needs_two_terms_and_whole_words() -> None:
    held = memory(window(0, "a red carpet"), window(1, "a bored carpetmaker"))
    single = fields_choices(held, ask("?", "carpet"))
    assert single[0, 0] == 3.0 + 2.5 and single[1, 0] == 0
    assert fields_choices(held, ask("?", "red carpet"))[0, 0] == 2 * (3.0 + 2.5) + 5.0


def test_the_question_form_shifts_the_weights() -> None:
    plain = question_weights("Did Ada sing?")
    assert plain == {"EVENT": 3.0, "PEOPLE": 2.5, "OBJECTS": 2.0, "PLACE": 2.0, "DIALOGUE": 1.5}
    assert question_weights("Where was it?")["PLACE"] == 4.0
    assert question_weights("With whom?")["PEOPLE"] == 4.5
    said = question_weights("What did they talk about?")
    assert said["DIALOGUE"] == 4.0 > said["EVENT"]


def test_a_clear_leader_or_none() -> None:
    assert leader([1, 6, 2], least=3, ratio=2, lead=2) == 1
    assert leader([1, 6, 4], least=3, ratio=2, lead=2) is None
    assert leader([2, 0], least=3, ratio=2, lead=2) is None
    assert leader([5, 5], least=0, ratio=0, lead=0) is None
    assert leader([], least=0, ratio=1, lead=0) is None


# ---------------------------------------------------------------- time


def test_temporal_rerank_never_lifts_a_record_without_a_match() -> None:
    scores = np.array([3.0, 0.0, 3.0, 0.0])
    assert direction("When did I last eat?") == 1 and direction("Who used it first?") == -1
    assert direction("Who was on the first floor?") == 0 == direction("the first and the last")
    later = temporal(scores, "the latest")
    assert later[2] > later[0] > 0 and later[1] == later[3] == 0
    assert temporal(scores, "the earliest").argmax() == 0
    assert temporal(scores[:, None], "last")[:, 0].tolist() == later.tolist()
    assert temporal(scores, "who?") is scores


@settings(deadline=None)
@given(st.lists(st.integers(0, 6), max_size=40), st.integers(1, 8), st.sampled_from(("last", "first", "any")))
def test_ranking_is_the_same_as_shifting_all(values: list[int], count: int, word: str) -> None:
    scores = np.array(values, np.float32) / 2
    shifted = temporal(scores, word)
    assert ranked(scores, count, direction(word), len(scores)) == [(at, shifted[at]) for at in top(shifted, count)]
    some = np.flatnonzero(scores != 1)
    shown = [(int(some[at]), shifted[some][at]) for at in top(shifted[some], count)]
    assert ranked(scores[some], count, direction(word), len(scores), some) == shown


@settings(deadline=None)
@given(st.lists(st.integers(-1, 5), max_size=300), st.integers(0, 150))
def test_top_is_a_stable_sort(values: list[int], count: int) -> None:
    scores = np.array(values, float)
    order = sorted(range(len(values)), key=lambda at: (-values[at], at))
    assert top(scores, count) == [at for at in order[:count] if values[at] > 0]


def test_stamps() -> None:
    assert stamp(0) == "DAY1 00:00"
    assert stamp(86_400 + 9 * 3_600 + 5 * 60 + 59.9) == "DAY2 09:05"


# ---------------------------------------------------------------- selectors and formats


@settings(deadline=None)
@given(st.integers(0, 200), st.integers(0, 60))
def test_uniform_positions_are_distinct_and_ordered(size: int, count: int) -> None:
    found = uniform(size, count)
    assert found == sorted(set(found)) and len(found) == min(size, count)
    assert all(0 <= at < size for at in found)


def test_selectors() -> None:
    scores = np.array([[1.0, 0.0], [2.0, 0.0], [2.0, 5.0]])
    assert top(scores[:, 0], 2) == [1, 2] and top(scores[:, 1], 5) == [2]
    assert top_each(scores, 1) == [[1], [2]]
    assert latest(np.array([5.0, 4.0, 0.1, 3.0, 0.0]), 2) == [3, 1] and latest(np.zeros(3), 2) == []
    assert earliest(np.array([0.1, 4.0, 5.0]), 5) == [1, 2]
    assert neighbours([0, 2], 1, 10) == [0, 1, 2, 3]
    assert interleave([[1, 2], [1], [5, 6, 7]]) == [1, 5, 2, 6, 7]


@settings(deadline=None)
@given(st.lists(st.text("ab", max_size=20), max_size=20), st.integers(0, 100))
def test_fit_keeps_the_cap_and_whole_items(texts: list[str], limit: int) -> None:
    kept = fit(enumerate(texts), limit)
    assert len(SEPARATOR.join(text for _, text in kept)) <= limit
    assert all(texts[at] == text for at, text in kept)


def test_formats_are_single_lines() -> None:
    held = memory(window(0, "one\n\ntwo", "I see {0.__class__} %s", spoken=(("Ada", "three\r\nfour"),)))
    for text in (raw(held, 0), five_fields(held, 0), headline(held, 0)):
        assert "\n" not in text and "\r" not in text and "{0.__class__}" in text


# ---------------------------------------------------------------- packing

SENTENCE = st.lists(
    st.sampled_from(["Ada", "Ben", "paints", "fence", "the", "mug", "kitchen"]), min_size=1, max_size=40
)
STREAM = st.lists(SENTENCE.map(" ".join), max_size=40)


QUESTIONS = ("Who paints the fence last?", "Who paints the fence?", "Where did Ada first paint?", "Nothing?")


@settings(deadline=None)
@given(STREAM, st.sampled_from(QUESTIONS), st.integers(1, 8), st.sampled_from((0.0, 4.0)))
def test_rankings_are_those_of_all_scores(lines: list[str], question: str, count: int, bonus: float) -> None:
    """What is computed for matching records alone is what the whole matrix of scores would give."""
    held = memory(*(window(at, line) for at, line in enumerate(lines)))
    query = ask(question, "Ada", "Ben", "the mug", "kitchen fence")
    asked, chosen = fields_question(held, query), fields_choices(held, query)
    scores = temporal(totals(asked, chosen, bonus), question)
    scored = score(held, query, bonus)
    assert list(scored.counts) == support_counts(asked, chosen)
    for column in range(4):
        shown = [(at, float(scores[at, column])) for at in top(scores[:, column], count)]
        assert scored.best(column, count) == shown
    best = scores.max(axis=1)
    assert overall(scored.each(count), count) == [(at, float(best[at])) for at in top(best, count)]
    few = np.arange(len(lines)) % 2 == 0
    shown = [(at, float(scores[at, 0])) for at in top(scores[:, 0] * few, count)]
    assert scored.best(0, count, few) == shown


@settings(deadline=None)
@given(STREAM, st.integers(0, 12_500))
def test_the_cap_is_never_exceeded(lines: list[str], limit: int) -> None:
    held = memory(*(window(at, line) for at, line in enumerate(lines)))
    query = ask("Who paints the fence?", "Ada", "Ben", "the mug", "kitchen fence")
    packed = pack(held, query, score(held, query), lambda at: five_fields(held, at), "events", limit)
    assert len(packed.text) <= limit
    assert len(set(packed.positions)) == len(packed.positions) <= GLOBALS + 4 * EACH
    for position in packed.positions:
        assert packed.text.count(five_fields(held, position)) >= 1


def test_a_long_record_is_dropped_whole_and_the_rest_stays() -> None:
    held = memory(window(0, "Ada paints " + "x" * 20_000), window(1, "Ada paints too"))
    query = ask("Who paints?", "Ada", "Ben")
    packed = pack(held, query, score(held, query), lambda at: raw(held, at), "events")
    assert packed.positions == (1,) and packed.dropped == 3 and "xxx" not in packed.text


# ---------------------------------------------------------------- vectors


def test_vectors_survive_the_journey() -> None:
    there = np.array([[1.0, -0.5], [0.0, 0.0]], np.float32)
    back = vectors.decode(EmbedReply(2, vectors.encode(there)))
    np.testing.assert_array_equal(back, there)
    assert vectors.cosine(back, there[0]).tolist() == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("text", ["!", "AAAA", "AHwAfA=="])
def test_bad_vectors_are_named(text: str) -> None:
    with pytest.raises(ValueError, match="vector 0"):
        vectors.decode(EmbedReply(2, (text,)))


# ---------------------------------------------------------------- the table


def test_the_readme_names_blocks_that_exist() -> None:
    text = (Path(blocks.__path__[0]) / "README.md").read_text(encoding="utf-8")
    named = re.findall(r"`([a-z]\w*)\.([A-Za-z]\w*)", text)
    assert len(named) > 20
    for module, name in named:
        assert hasattr(importlib.import_module(f"policies.blocks.{module}"), name), f"{module}.{name}"
