"""Meta-memory: append-only, recall within a budget, failures included, nothing held out shown."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from meta_memory.lessons import lesson_by_rule
from meta_memory.memory import MEASURED, MetaMemory, Need
from meta_memory.records import Attempt, AttemptView
from meta_memory.view import WITHHELD, in_short, scan, view

REJECTED = ["malformed", "intake", "static", "duplicates", "smoke", "dynamic", "reviewer", "develop"]
REJECTED += ["audit", "validate"]
OUTCOMES = [*REJECTED, "promoted"]


def attempt(iteration: int, parent: int = 0, outcome: str = "develop", text: str = "", **more: object) -> Attempt:
    fields: dict[str, object] = {
        "iteration": iteration,
        "parent": parent,
        "title": text[:20] or f"idea {iteration}",
        "hypothesis": text or f"idea number {iteration}",
        "outcome": outcome,
    }
    return Attempt.model_validate(fields | more)


def words(text: str) -> int:
    return len(re.findall(r"\w+", text))


HISTORY = [
    attempt(1, 0, "promoted", "Count support over distinct days for habit questions"),
    attempt(2, 1, "develop", "Widen every anchor by ten windows of narrative"),
    attempt(3, 1, "static", "Recency tilt among good matches for last-time questions"),
    attempt(4, 1, "promoted", "Bonus when question and choice meet in one record"),
    attempt(5, 4, "validate", "Prefer dialogue field for speech questions"),
    attempt(6, 4, "smoke", "Rewrite the query with the model before ranking"),
    attempt(7, 0, "develop", "Drop stop words in choice matching"),
]


def recall(budget: int, parent: int = 4, hypothesis: str = "", weakest: str = "") -> list[int]:
    views = MetaMemory(HISTORY).recall(Need(parent, "", weakest, hypothesis), budget, words)
    assert sum(words(v.model_dump_json()) for v in views) <= budget
    return [v.iteration for v in views]


def test_append_only() -> None:
    memory = MetaMemory(HISTORY)
    assert memory.attempts == tuple(HISTORY)
    with pytest.raises(ValueError):
        memory.append(attempt(7))
    memory.append(attempt(8))
    assert [a.iteration for a in memory.attempts] == list(range(1, 9))


def test_everything_fits_a_large_budget_and_nothing_a_small_one() -> None:
    assert recall(100_000) == [1, 2, 3, 4, 5, 6, 7]
    assert recall(5) == []


def test_a_tight_budget_holds_lineage_likeness_and_failures() -> None:
    one = words(view(HISTORY[3]).model_dump_json())
    chosen = recall(4 * one, hypothesis="a recency tilt for questions about the last time")
    assert 4 in chosen  # the parent itself
    assert 3 in chosen  # the most similar idea, a failure from another parent
    assert 6 in chosen  # the newest failure from this parent


def test_hypothesis_decides_who_is_alike() -> None:
    one = words(view(HISTORY[3]).model_dump_json()) + 2
    assert 7 in recall(3 * one, hypothesis="drop stop words when matching choices")
    assert 2 in recall(3 * one, hypothesis="widen anchors by more narrative windows")


def test_what_moved_the_weakest_type_is_recalled() -> None:
    moved = {3: {"HabitInsight": 0.2, "EventRecall": -0.01}, 6: {"EventRecall": -0.3}}
    history = [a.model_copy(update={"dev_delta_by_type": moved.get(a.iteration, {})}) for a in HISTORY]
    one = max(words(view(a).model_dump_json()) for a in history)
    for weakest, found in (("HabitInsight", 3), ("EventRecall", 6)):
        views = MetaMemory(history).recall(Need(0, "", weakest, "drop stop words in choice matching"), 2 * one, words)
        assert found in [v.iteration for v in views]


def test_the_parents_own_idea_counts_beside_the_one_at_hand() -> None:
    history = [*HISTORY, attempt(8, 0, "develop", "Bonus for questions and choices that meet in a record, doubled")]
    one = max(words(view(a).model_dump_json()) for a in history)
    views = MetaMemory(history).recall(Need(4, "", "", ""), 2 * one, words)
    assert {4, 8} <= {v.iteration for v in views}


TOP = {"Call>@top": 1, "Call>12": 1, "Call>@bm25_question": 1, "Call>@uniform": -1, "Call>_": 3, "Assign>Call": 2}
"""Twelve windows by BM25 in place of even ones, as pieces of syntax."""
LOOP = TOP | {"Call>_": 2, "For>_": 1, "For>Call": 1}
"""The same, written as a loop."""


def failed(iteration: int = 3, outcome: str = "develop", **more: object) -> Attempt:
    return attempt(iteration, 1, outcome, "Choose the twelve windows that match best by BM25", change=TOP, **more)


def test_a_repeat_is_known_by_what_is_done_however_it_is_told() -> None:
    memory = MetaMemory([failed()])
    for told in ("", "Rank every caption lexically and keep the dozen most relevant", "Choose windows by BM25"):
        found = memory.similar_failure(told, LOOP, Need(1))
        assert found is not None and found.attempt.iteration == 3
        assert 0.5 < found.likeness.done < 1 and found.likeness.ingredients == 4


@pytest.mark.parametrize(
    "change",
    [
        {**TOP, "Call>8": 1, "Call>12": 0},  # another number is another experiment
        {**TOP, "Call>@fields": 1, "Call>@bm25_question": 0},  # so is another block
        {**TOP, "Call>@top": 2},  # or the same one twice
        {"Call>@top": 1, "keyword>12": 1, "Return>@bm25_question": 1, "List>@uniform": -1, "While>_": 9},  # other uses
        {piece: -count for piece, count in TOP.items()},
        {},
    ],
)
def test_what_is_done_otherwise_is_no_repeat_however_it_is_told(change: dict[str, int]) -> None:
    made = {piece: count for piece, count in change.items() if count}
    assert MetaMemory([failed()]).similar_failure(failed().hypothesis, made, Need(1)) is None


def test_a_small_change_is_a_repeat_only_in_like_words() -> None:
    half = {"FloorDiv>2": 1, "Assign>FloorDiv": 1, "Assign>_": -1}
    memory = MetaMemory([attempt(2, 1, "validate", "Use half of the characters", change=half)])
    assert memory.similar_failure("Use half as many characters", half, Need(1)) is not None
    assert memory.similar_failure("Show every second neighbour of an anchor", half, Need(1)) is None


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_only_what_was_measured_and_failed_is_refused(outcome: str) -> None:
    found = MetaMemory([failed(outcome=outcome)]).similar_failure("", LOOP, Need(1))
    assert (found is not None) == (outcome in MEASURED)


def test_a_verdict_holds_for_its_parent() -> None:
    memory = MetaMemory([failed(parent_tree="t1")], [failed(9, run="earlier", parent_tree="t5")])
    assert memory.similar_failure("", LOOP, Need(4, "t4")) is None
    own = memory.similar_failure("", LOOP, Need(1, "t1"))
    assert own is not None and own.attempt.label == "3"
    foreign = memory.similar_failure("", LOOP, Need(1 + 6, "t5"))
    assert foreign is not None and foreign.attempt.label == "earlier:9"
    nameless = [failed(9, run="earlier", parent_tree="")]
    assert MetaMemory([], nameless).similar_failure("", LOOP, Need(1)) is None  # 1 is a number of the other run


def test_the_most_alike_failure_is_named() -> None:
    memory = MetaMemory([failed(2, title="x"), failed(3).model_copy(update={"change": LOOP})])
    found = memory.similar_failure("", LOOP, Need(1))
    assert found is not None and found.attempt.iteration == 3


def test_attempts_of_another_run_are_recalled_under_their_own_numbers() -> None:
    foreign = [a.model_copy(update={"run": "earlier", "parent_tree": "t0"}) for a in HISTORY]
    memory = MetaMemory(HISTORY[:3], foreign)
    assert [a.label for a in memory.attempts[:2]] == ["earlier:1", "earlier:2"] and memory.attempts[-1].label == "3"
    views = memory.recall(Need(0, "t0", "", "drop stop words in choice matching"), 100_000, words)
    assert [v.label for v in views] == [f"earlier:{n}" for n in range(1, 8)] + ["1", "2", "3"]
    memory.append(attempt(4))  # numbers of the other run do not stand in the way


def test_a_summary_holds_the_newest_in_short() -> None:
    history = [a.model_copy(update={"lesson": "Long lesson.", "cause": "cause"}) for a in HISTORY]
    memory = MetaMemory(history)
    one = max(words(in_short(a).model_dump_json()) for a in history)
    views = memory.summary(2 * one, words)
    assert [v.iteration for v in views] == [6, 7]
    assert not any(v.lesson or v.cause or v.dev_by_type for v in views)


def test_view_has_no_field_for_held_out_figures() -> None:
    assert not [name for name in AttemptView.model_fields if "valid" in name or name.startswith("test")]


@pytest.mark.parametrize(
    "text",
    [
        "validation accuracy 0.6137 against 0.6402",
        "61.4 % on the held-out split",
        "held-out: 0.61, needs 0.64",
        "not significant, p = 0.213",
        "p=0.21; interval [0.55, 0.67]",
        "accuracy was .614 there",
        "it reached 61.37%",
        "fell to 61.4 points",
        "accuracy 0,6137",
    ],
)
def test_no_held_out_figure_in_any_text(text: str) -> None:
    record = attempt(
        9, 4, "validate", "some idea", cause=text, lesson=text, validation_accuracy=0.6137, validation_p=0.213,
        dev_accuracy=0.71, dev_delta=0.02,
    )  # fmt: skip
    for made in (record, record.model_copy(update={"lesson": lesson_by_rule(record)})):
        shown = view(made).model_dump(include={"cause", "lesson"})
        joined = json.dumps(shown)
        for digits in ("0.61", "61.4", "61.37", ".614", "0,61", "0.64", "0.213", "0.21", "0.55", "0.67"):
            assert digits not in joined, joined
        assert WITHHELD in joined


def test_development_figures_stay() -> None:
    record = attempt(9, 4, "validate", "idea", dev_accuracy=0.7, dev_delta=0.025, validation_accuracy=0.61)
    text = "Development accuracy 0.70 (+2.5 points), 6 anchors, 12,500 characters."
    assert scan(text, record) == text
    assert "+2.5 points" in lesson_by_rule(record)
    assert "+2.5 points" in view(record.model_copy(update={"lesson": lesson_by_rule(record)})).lesson


@given(st.floats(0, 1), st.floats(0, 1), st.integers(1, 6), st.sampled_from(OUTCOMES))
def test_own_figures_are_withheld_at_any_precision(accuracy: float, p: float, digits: int, outcome: str) -> None:
    record = attempt(
        3, 1, outcome, "idea", validation_accuracy=accuracy, validation_p=p,
        cause=f"reached {accuracy:.{digits}f} or {100 * accuracy:.{digits}f} % with {p:.{digits}f}",
    )  # fmt: skip
    assert not re.search(r"\d\.\d", view(record).cause)
    assert not re.search(rf"(?<![\d.]){re.escape(f'{accuracy:.{digits}f}')}(?!\d)", lesson_by_rule(record))


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_every_outcome_has_a_lesson_of_its_own(outcome: str) -> None:
    lesson = lesson_by_rule(attempt(2, 1, outcome, cause="a cause", rules=("S05",), dev_by_type={"A": 0.4, "B": 0.2}))
    others = {lesson_by_rule(attempt(2, 1, other, cause="a cause", rules=("S05",))) for other in OUTCOMES} - {lesson}
    assert len(others) >= len(OUTCOMES) - 1
    assert 20 < len(lesson) < 400 and "\n" not in lesson
    if outcome in ("develop", "promoted"):
        assert "weakest type in development is B (20 %)" in lesson


def test_a_lesson_tells_expected_and_measured_by_type_and_what_the_code_did() -> None:
    record = failed(
        expected={"accuracy": "+8 points.", "tokens": "half", "latency": "none"}, dev_delta=-0.0213,
        dev_accuracy=0.4, dev_by_type={"A": 0.4, "B": 0.2}, dev_delta_by_type={"A": 0.11, "B": -0.2, "C": 0.02},
        tokens_per_question=900.0, parent_tokens_per_question=1000.0,
    )  # fmt: skip
    lesson = lesson_by_rule(record)
    assert "Did not pass the development bar (-2.1 points against its parent" in lesson
    assert "Expected accuracy +8 points, measured -2.1 points; tokens half, measured -10 %." in lesson
    assert "By type about B -20, A +10 points." in lesson and " C " not in lesson  # one question's effect is not told
    assert "The code brought in 12, bm25_question, top and dropped uniform." in lesson
    unmeasured = lesson_by_rule(failed(outcome="smoke", expected={"accuracy": "+8"}, cause="K01 crash: KeyError"))
    assert "Rejected at smoke: K01 crash: KeyError." in unmeasured and "Expected" not in unmeasured


def test_a_refused_repeat_teaches_the_earlier_number() -> None:
    record = attempt(9, 1, "duplicates", rules=("D04",), cause="D04 the idea of attempt 3 in other words")
    assert "attempt 3" in lesson_by_rule(record) and "try something else" in lesson_by_rule(record)
    assert "attempt 3" in view(record).cause


@given(
    st.lists(st.sampled_from(OUTCOMES), max_size=12), st.integers(0, 12), st.text(max_size=60), st.integers(0, 2_000)
)
def test_recall_is_deterministic_ordered_and_within_budget(
    outcomes: list[str], parent: int, hypothesis: str, budget: int
) -> None:
    history = [attempt(i, (i * 7) % i, outcome) for i, outcome in enumerate(outcomes, 1)]
    need = Need(parent, "", "EventRecall", hypothesis)
    first = MetaMemory(history).recall(need, budget, words)
    assert first == MetaMemory(history).recall(need, budget, words)
    assert [v.iteration for v in first] == sorted({v.iteration for v in first})
    assert sum(words(v.model_dump_json()) for v in first) <= budget
