"""The three specialists, each with what makes it abstain; times in choices; the three ways of expansion."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.blocks.events import EventMemory
from policies.blocks.expansion import beside, ledger, narrative
from policies.blocks.frequency import frequency
from policies.blocks.packing import pack
from policies.blocks.relational import relational
from policies.blocks.scoring import score
from policies.blocks.temporal_delta import temporal_delta
from policies.blocks.times import Ago, Span, choose, read_time
from policies.contract import Query, Utterance, Window

HOUR = 3_600.0
DAY = 24 * HOUR
NOW = 2 * DAY + 16 * HOUR
"""Day 3, 16:00."""


def window(index: int, caption: str, start: float | None = None, speaker: str = "") -> Window:
    begins = 30.0 * index if start is None else start
    spoken = (Utterance(speaker, "Yes."),) if speaker else ()
    return Window(index, begins, begins + 30, (caption,), spoken, False)


def memory(*windows: Window) -> EventMemory:
    held = EventMemory()
    held.observe(windows)
    return held


def ask(question: str, *choices: str, time: float = NOW) -> Query:
    return Query("q", "EntityLog", question, dict(zip("ABCDEF", choices, strict=False)), time)


# ---------------------------------------------------------------- times


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("About 3 hours ago", Ago(3 * HOUR)),
        ("an hour and a half ago", Ago(1.5 * HOUR)),
        ("5 and a half hours ago.", Ago(5.5 * HOUR)),
        ("2 days 3 hours ago", Ago(2 * DAY + 3 * HOUR)),
        ("half a day ago", Ago(0.5 * DAY)),
        ("just now", Ago(0.0)),
        ("20 mins ago", Ago(1_200.0)),
        ("this morning", Span(2 * DAY + 6 * HOUR, 2 * DAY + 11 * HOUR)),
        ("Yesterday at noon", Span(DAY + 11 * HOUR, DAY + 14 * HOUR)),
        ("The afternoon before yesterday", Span(14 * HOUR, 18 * HOUR)),
        ("the day before yesterday", Span(0, DAY)),
        ("Last night", Span(DAY + 18 * HOUR, DAY + 27 * HOUR)),
        ("today", Span(2 * DAY, 3 * DAY)),
        ("yesterday 3 pm", Ago(25 * HOUR)),
        ("15:20", Ago(40 * 60.0)),
        ("Ada", None),
        ("3", None),
        ("3 times", None),
        ("Evening", None),
        ("January 5", None),
        ("The last day of the week that Ada spent in the old house by the lake ago", None),
        ("99999999999 days 3 pm ago", None),
        ("", None),
    ],
)
def test_times_in_choices(text: str, expected: object) -> None:
    assert read_time(text, NOW) == expected


@settings(deadline=None, max_examples=60)
@given(st.text(st.sampled_from("0123456789:- ago yesterday pm hours.,/é你"), max_size=60), st.floats(0, 1e7))
def test_any_choice_can_be_read(text: str, now: float) -> None:
    found = read_time(text, now)
    assert found is None or isinstance(found, Span | Ago)


@pytest.mark.parametrize("now", [0.0, 1e12, 1e18])
def test_times_far_off(now: float) -> None:
    assert read_time("yesterday 3 pm", now) is None


def test_a_moment_is_mapped_to_one_choice_or_none() -> None:
    hours = {letter: Ago(n * HOUR) for letter, n in zip("ABCD", (1, 3, 6, 12), strict=True)}
    assert choose(hours, NOW - 3.5 * HOUR, NOW) == "B"
    assert choose(hours, NOW - 4.4 * HOUR, NOW) is None  # 3 is nearest, but more than a quarter off
    assert choose(hours, NOW - 40 * HOUR, NOW) is None
    spans = {"A": Span(0, DAY), "B": Span(14 * HOUR, 18 * HOUR), "C": Span(DAY, 2 * DAY), "D": None}
    assert choose(spans, 30 * HOUR, NOW) == "C"
    assert choose(spans, 15 * HOUR, NOW) is None  # A and B
    assert choose({"A": Ago(HOUR), "B": Ago(HOUR)}, NOW - HOUR, NOW) is None


# ---------------------------------------------------------------- temporal delta

WHEN = ("about 1 hour ago", "about 2 hours ago", "about 4 hours ago", "about 8 hours ago")


def test_the_time_since_the_latest_anchor() -> None:
    held = memory(
        window(0, "I water the fern.", NOW - 8 * HOUR),
        window(1, "Ada waters the fern.", NOW - 4 * HOUR),
        window(2, "Ada eats soup.", NOW - 2 * HOUR),
    )
    found = temporal_delta(held, ask("When was the last time Ada watered the fern?", *WHEN))
    assert found is not None and (found.letter, found.positions) == ("C", (1,))
    assert found.route == "temporal_delta"
    asked = "How many hours ago did Ada eat soup?"
    assert (found := temporal_delta(held, ask(asked, *WHEN))) is not None and found.letter == "B"


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        ("When did Ada water the fern?", WHEN),  # no relative time is asked for
        ("What did Ada water the last time?", ("fern", "mug", "about 4 hours ago", "tree")),  # no times
        ("When was the last time Ada repaired the bicycle?", WHEN),  # no anchor
        ("When was the last time Ada watered the fern?", ("8 hours ago", "9 hours ago", "last night")),  # fits none
        ("When was the last time Ada watered the fern?", ("today", "about 4 hours ago", "yesterday")),  # fits two
    ],
)
def test_temporal_delta_abstains(question: str, choices: tuple[str, ...]) -> None:
    held = memory(window(0, "Ada waters the fern.", NOW - 4 * HOUR), window(1, "Ada eats soup.", NOW - 2 * HOUR))
    assert temporal_delta(held, ask(question, *choices)) is None


def test_what_was_only_talked_about_is_no_anchor() -> None:
    spoken = Window(0, NOW - HOUR, NOW - HOUR + 30, (), (Utterance("Ada", "Shall we water the fern?"),), False)
    query = ask("When was the last time Ada watered the fern?", *WHEN)
    assert temporal_delta(memory(spoken), query) is None


# ---------------------------------------------------------------- frequency


def habit(*names: str) -> EventMemory:
    return memory(*(window(at, f"I see {name}, who cooks soup.") for at, name in enumerate(names)))


@pytest.mark.parametrize(
    ("names", "letter"),
    [
        (["Ada"] * 4 + ["Ben"] * 2, "A"),
        (["Ada"] * 4 + ["Ben"] * 3, None),  # not twice as often
        (["Ada"] * 2, None),  # fewer than three
        (["Ada"] * 3 + ["Ben"] * 3, None),
    ],
)
def test_a_clear_margin_or_abstention(names: list[str], letter: str | None) -> None:
    held, query = habit(*names), ask("Who usually cooks soup?", "Ada", "Ben", "Cleo")
    found = frequency(held, query, score(held, query))
    assert (found and found.letter) == letter
    if found:
        assert found.route == "frequency" and set(found.positions) == {at for at, n in enumerate(names) if n == "Ada"}


def test_one_moment_counts_once() -> None:
    held = memory(*(window(at, "I see Ada, who cooks soup.", 60.0) for at in range(5)))
    query = ask("Who usually cooks soup?", "Ada", "Ben")
    assert score(held, query).counts == (5, 0) and frequency(held, query, score(held, query)) is None


@pytest.mark.parametrize("question", ["Who cooks soup?", "Who cooked soup last?"])
def test_no_habit_is_asked_for(question: str) -> None:
    held, query = habit(*["Ada"] * 6), ask(question, "Ada", "Ben")
    assert frequency(held, query, score(held, query)) is None


def test_numbers_are_not_counted() -> None:
    held = habit(*["Ada"] * 6)
    query = ask("How many times did Ada cook soup?", "3 times", "twice", "6", "Ada")
    assert frequency(held, query, score(held, query)) is None


# ---------------------------------------------------------------- relational

MEAL = "Who did I eat noodles with in the garden?"


def test_everything_asked_must_stand_in_one_record() -> None:
    together = window(0, "I eat noodles in the garden.", speaker="Ben")
    apart = (window(0, "I eat noodles.", speaker="Ben"), window(1, "I sit in the garden.", speaker="Ben"))
    query = ask(MEAL, "Ada", "Ben", "Cleo")
    found = relational(memory(together), query)
    assert found is not None and (found.letter, found.route, found.positions) == ("B", "relational", (0,))
    assert relational(memory(*apart), query) is None


def test_two_choices_bound_abstains_unless_time_settles_it() -> None:
    held = memory(
        window(0, "I eat noodles in the garden.", speaker="Ben"),
        window(1, "I eat noodles in the garden.", speaker="Ada"),
    )
    assert relational(held, ask(MEAL, "Ada", "Ben", "Cleo")) is None
    found = relational(held, ask("Who did I last eat noodles with in the garden?", "Ada", "Ben", "Cleo"))
    assert found is not None and found.letter == "A"
    found = relational(held, ask("Who did I first eat noodles with in the garden?", "Ada", "Ben", "Cleo"))
    assert found is not None and found.letter == "B"


@pytest.mark.parametrize(
    ("question", "choices"),
    [
        ("Who ate noodles in the garden?", ("Ada", "Ben")),  # no interaction
        ("Who was with me?", ("Ada", "Ben")),  # nothing to bind
        (MEAL, ("the fern", "garden")),  # no names
        (MEAL, ("Me", "Ada and Ben")),  # only Ben is there
    ],
)
def test_relational_abstains(question: str, choices: tuple[str, ...]) -> None:
    held = memory(window(0, "I eat noodles in the garden.", speaker="Ben"), window(1, "Nothing.", speaker="Ada"))
    assert relational(held, ask(question, *choices)) is None


# ---------------------------------------------------------------- expansion


def test_neighbours_stand_in_their_anchors_slot_and_come_last() -> None:
    held = memory(window(0, "I open a door."), window(1, "Ada paints."), window(2, "I close a door."))
    query = ask("What does Ada paint?", "wall", "fence")

    def packed(limit: int) -> str:
        return pack(
            held, query, score(held, query), lambda at: f"record {at}", "m", limit, "", lambda at: beside(held, at)
        ).text

    whole = packed(12_500)
    line = next(block for block in whole.split("\n\n") if block.startswith("#1"))
    assert line.endswith("record 1 | before: [DAY1 00:00] I open a door. | after: [DAY1 00:01] I close a door.")
    assert whole.count("#") == packed(len(whole) - 1).count("#") == 3  # the slots stand
    assert "after:" not in packed(len(whole) - 1) and "before:" in packed(len(whole) - 1)


def test_no_neighbour_across_a_gap() -> None:
    held = memory(window(0, "one", 0.0), window(1, "two", 30.0), window(2, "three", 5_000.0))
    assert [at for at, _ in beside(held, 1)] == [0] and not list(beside(held, 2))


def test_the_narrative_is_ten_minutes_around_each_anchor() -> None:
    held = memory(*(window(at, f"moment {at}") for at in range(100)))
    told = [at for at, _ in narrative(held, [50, 52])]
    assert sorted(told) == list(range(40, 63)) and told[:21] == list(range(40, 61))


def test_the_ledger_is_in_order_of_time() -> None:
    held = memory(*(window(at, "Ada paints." if at % 2 else "Ada paints a fence.") for at in range(50)))
    lines = ledger(held, score(held, ask("Who paints the fence?", "Ada", "Ben"))).split("\n")
    assert lines[0] == "ledger:" and len(lines) == 21
    assert lines[1:] == sorted(lines[1:]) and all("fence" in line for line in lines[1:])
