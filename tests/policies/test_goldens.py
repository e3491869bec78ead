"""The method's own numbers, words and examples. ``python -m tests.mutation`` changes each and expects a failure."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from policies.blocks import packing, verification
from policies.blocks.events import EventMemory
from policies.blocks.extract import FIELDS
from policies.blocks.fields import fields_choices, fields_question, question_weights, totals
from policies.blocks.formats import five_fields
from policies.blocks.instructions import STRUCTURED, VERIFY
from policies.blocks.packing import pack
from policies.blocks.recency import direction, temporal
from policies.blocks.scoring import score
from policies.blocks.support import choice_hit_counts, support_counts
from policies.blocks.visual_need import excluded, strong_visual_need
from policies.blocks.weak_text import weak_text
from policies.contract import (
    Answer,
    Budget,
    Frame,
    Frames,
    FramesReply,
    ModelFailed,
    NoModel,
    Query,
    Read,
    ReadReply,
    Refused,
    Setup,
    Utterance,
    Window,
)
from policies.v01.policy import Policy as V01
from policies.v18.policy import Policy as V18
from policies.v47.policy import Policy as V47
from policies.v49.policy import Policy as V49
from tests.policies.driving import drive


def window(index: int, *captions: str, spoken: Iterable[tuple[str, str]] = (), frames: bool = False) -> Window:
    transcript = tuple(Utterance(speaker, text) for speaker, text in spoken)
    return Window(index, 30.0 * index, 30.0 * (index + 1), captions, transcript, frames)


def memory(*windows: Window) -> EventMemory:
    held = EventMemory()
    held.observe(windows)
    return held


def ask(question: str, *choices: str, type: str = "EventRecall", time: float = 90_000.0) -> Query:
    return Query("q", type, question, dict(zip("ABCDEFGH", choices, strict=False)), time)


class Host:
    """Serves one policy: letters for Read in turn, frames where there are some; keeps what was asked."""

    def __init__(self, *letters: str | Refused | None, frames: bool = True) -> None:
        self.letters, self.frames = list(letters), frames
        self.reads: list[Read] = []
        self.asked_frames: list[Frames] = []

    def serve(self, request: Any) -> Any:
        if isinstance(request, Read):
            self.reads.append(request)
            letter = self.letters[min(len(self.reads), len(self.letters)) - 1]
            return letter if isinstance(letter, Refused) else ReadReply(letter, letter or "")
        if isinstance(request, Frames):
            self.asked_frames.append(request)
            found = [Frame(f"frame-{at}", at) for at in request.times] if self.frames else []
            return FramesReply(tuple(found))
        return NoModel("no model")


def answer(policy: Any, windows: Sequence[Window], query: Query, host: Host) -> Answer:
    drive(policy.observe(windows), host.serve)
    drive(policy.settle(), host.serve)
    found = drive(policy.answer(query), host.serve)
    assert isinstance(found, Answer)
    return found


def setup(**budget: int) -> Setup:
    return Setup(Budget(**budget), 0)


# ---------------------------------------------------------------- records and scores


def test_a_record_has_exactly_five_fields() -> None:
    assert FIELDS == ("EVENT", "PEOPLE", "OBJECTS", "PLACE", "DIALOGUE")
    held = memory(window(0, "I hand Ada the mug in the kitchen.", spoken=[("Ada", "Thanks.")]))
    shown = five_fields(held, 0)
    places = [shown.index(f"{field}: ") for field in FIELDS]
    assert places == sorted(places)


def test_the_worked_example_is_fourteen() -> None:
    """S_q = 3.0 (one EVENT term), S_c = 3.5 (one name), in one record: 3.0 + 2 x 3.5 + 4 = 14.0."""
    held = memory(
        window(0, "someone juggles"),
        window(1, spoken=[("Ada", "hm")]),
        window(2, "someone juggles", spoken=[("Ada", "hm")]),
    )
    query = ask("What about juggling?", "Ada", "Ben")
    asked, chosen = fields_question(held, query), fields_choices(held, query)
    assert asked.tolist() == [3.0, 0.0, 3.0]
    assert chosen.tolist() == [[0.0, 0.0], [3.5, 0.0], [3.5, 0.0]]
    assert totals(asked, chosen)[:, 0].tolist() == [3.0, 7.0, 14.0]
    assert score(held, query).best(0, 3) == [(2, 14.0), (1, 7.0), (0, 3.0)]


def test_the_bonus_is_once_per_record_and_choice_and_needs_both_scores() -> None:
    held = memory(
        window(0, "Ada juggles, juggles and juggles with Ada.", "Ada juggles."),
        window(1, "someone juggles"),
        window(2, spoken=[("Ada", "hm")]),
    )
    query = ask("What about juggling?", "Ada", "Ben")
    asked, chosen = fields_question(held, query), fields_choices(held, query)
    bonus = totals(asked, chosen) - totals(asked, chosen, bonus=0.0)
    assert bonus.tolist() == [[4.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_an_exact_phrase_adds_five_to_the_choice_and_ten_to_the_total_once() -> None:
    exact = window(0, "They paint the old wooden fence.", spoken=[("", "paint the old wooden fence")])
    loose = window(1, "They paint the wooden old fence.", spoken=[("", "paint the wooden old fence")])
    held = memory(exact, loose)
    query = ask("Anything?", "old wooden fence", "mug")
    chosen = fields_choices(held, query)
    assert chosen[0, 0] - chosen[1, 0] == 5.0
    scores = totals(fields_question(held, query), chosen)
    assert scores[0, 0] - scores[1, 0] == 10.0


def test_one_token_choices_score_no_phrase_unless_asked_for() -> None:
    held = memory(window(0, spoken=[("Ada", "hm")]))
    query = ask("?", "Ada", "Ben")
    assert fields_choices(held, query)[0, 0] == 3.5
    assert fields_choices(held, query, one_token_phrases=True)[0, 0] == 3.5 + 5.0


def test_the_form_of_the_question_emphasises_a_field() -> None:
    base = question_weights("Did Ada sing?")

    def more(question: str) -> set[str]:
        weights = question_weights(question)
        assert all(weights[field] >= base[field] for field in FIELDS)
        return {field for field in FIELDS if weights[field] > base[field]}

    assert more("Where was the mug?") == {"PLACE"}
    assert more("Who sang?") == more("With whom did I sing?") == {"PEOPLE"}
    assert more("What did they talk about?") == more("What came up in the conversation?") == {"DIALOGUE"}
    assert max(base, key=lambda field: base[field]) == "EVENT"


# ---------------------------------------------------------------- time and counts


def test_last_latest_previous_later_and_first_earliest_earlier() -> None:
    for word in ("last", "latest", "previous"):
        assert direction(f"Who came {word}?") == 1
    for word in ("first", "earliest"):
        assert direction(f"Who came {word}?") == -1
    for word in ("next", "recent", "lately", "once"):
        assert direction(f"Who came {word}?") == 0
    held = memory(*(window(at, "someone juggles" if at != 2 else "nothing") for at in range(5)))
    for word, first in (("last", 4), ("first", 0)):
        scored = score(held, query := ask(f"Who juggled {word}?", "Ada", "Ben"))
        best = scored.best(0, 5)
        assert best[0][0] == first and {at for at, _ in best} == {0, 1, 3, 4}
        scores = totals(fields_question(held, query), fields_choices(held, query))
        assert scores[:, 0].tolist() == [3.0, 3.0, 0.0, 3.0, 3.0]
        shifted = temporal(scores, query.question)[:, 0]
        assert shifted.argmax() == first and shifted[2] == 0
        assert temporal(scores, "who?") is scores


def test_each_record_counts_exactly_once_for_a_choice_and_for_several_choices() -> None:
    held = memory(
        window(0, "Ada paints and paints the fence with Ada.", "Ada paints again."),
        window(1, "Ben paints. I see Ada."),
        window(2, "I see Ada."),
        window(3, "someone paints"),
    )
    query = ask("Who paints?", "Ada", "Ben")
    counts = support_counts(fields_question(held, query), fields_choices(held, query))
    assert counts == [2, 1] == list(score(held, query).counts)
    assert choice_hit_counts(held, query) == [3, 1]


def test_counts_cover_records_that_are_not_packed() -> None:
    held = memory(*(window(at, f"Ada paints wall {at}.") for at in range(40)))
    packed = pack(
        held, query := ask("Who paints?", "Ada", "Ben"), score(held, query), lambda at: five_fields(held, at), "m"
    )
    assert "eligible_records: 40" in packed.text and "field_cooccurrence_count: A=40 B=0" in packed.text
    assert len(packed.positions) < 40


def test_a_window_that_ends_after_the_question_changes_nothing() -> None:
    seen = [window(at, f"Ada paints wall {at}.") for at in range(3)]
    query = ask("Who paints?", "Ada", "Ben", time=95.0)
    later = (window(3, "Ben paints."), window(4, "Ben paints wall 9."))
    for policy in (V01, V18, V47, V49):
        hosts = (Host("A"), Host("A"))
        found = [
            answer(policy(setup()), [w for w in stream if w.end <= query.time], query, host)
            for stream, host in zip((seen, [*seen, *later]), hosts, strict=True)
        ]
        assert found[0] == found[1] and hosts[0].reads == hosts[1].reads


# ---------------------------------------------------------------- packing


def slots(text: str) -> dict[str, int]:
    """Slots by section title."""
    found: dict[str, int] = {}
    title = ""
    for block in text.split("\n\n")[1:]:
        if block.startswith("["):
            title = block
        found[title] = found.get(title, 0) + block.startswith("#")
    return found


def test_six_anchors_and_three_records_for_each_choice() -> None:
    names = ("Ada", "Ben", "Cleo", "Dan")
    held = memory(*(window(at, f"I see {names[at % 4]}, who paints wall {at}.") for at in range(60)))
    query = ask("Who paints a wall?", *names)
    packed = pack(held, query, score(held, query), lambda at: five_fields(held, at), "events", 10**6)
    expected = {"[for the question]": 6} | {f"[for choice {letter}]": 3 for letter in "ABCD"}
    assert slots(packed.text) == expected and sum(expected.values()) == 18
    assert len(set(packed.positions)) == len(packed.positions) <= 18


def test_the_context_is_capped_at_12500_characters() -> None:
    assert packing.LIMIT == 12_500 == Budget().context_chars
    names = ("Ada", "Ben", "Cleo", "Dan")
    windows = [window(at, f"I see {names[at % 4]}, who paints {'very ' * 220}slowly.") for at in range(60)]
    query = ask("Who paints?", *names)
    for policy in (V01, V18, V47, V49):
        host = Host("A")
        answer(policy(setup(context_chars=50_000)), windows, query, host)
        assert 12_500 - 1_300 < len(host.reads[0].context) <= 12_500


def test_the_context_says_what_it_must() -> None:
    held = memory(window(0, "Ada paints the fence"), window(1, "Ben paints the mug"), window(2, "I nap."))
    query = ask("Who painted last?", "Ada", "Ben", type="EntityLog")
    packed = pack(held, query, score(held, query), lambda at: five_fields(held, at), "structured event memory")
    for needed in (
        "question_type: EntityLog",
        "memory_mode: structured event memory",
        "temporal_hint: prefer later records",
        "eligible_records: 3",
        "field_cooccurrence_count: A=1 B=1",
        "score ",
        "[DAY1 00:00] | EVENT: Ada paints the fence",
    ):
        assert needed in packed.text
    assert packed.text.count("EVENT: Ada paints the fence") == 1 and "(shown above)" in packed.text


def test_the_responder_has_five_obligations() -> None:
    lines = {line[:2]: line for line in STRUCTURED.split("\n") if line[:1].isdigit()}
    assert len(lines) == 5
    assert "action" in lines["1."] and "EVENT" in lines["1."]
    assert "people" in lines["2."] and "place" in lines["2."] and "same record" in lines["2."]
    assert "said" in lines["3."] and "DIALOGUE" in lines["3."]
    assert "habit" in lines["4."] and "repeats" in lines["4."]
    assert "Never" in lines["5."] and "how often" in lines["5."]
    assert "one letter" in STRUCTURED
    host = Host("B")
    found = answer(V01(setup()), [window(0, "Ada paints.")], ask("Who paints?", "Ada", "Ben"), host)
    assert [read.instructions for read in host.reads] == [STRUCTURED] and found.choice == "B"


# ---------------------------------------------------------------- specialists


def test_specialists_come_in_their_order() -> None:
    """Temporal delta, frequency, relational: a question that suits several goes to the first that can answer."""
    both = [window(at, "I see Ben and Cleo.") for at in range(2)]
    both += [window(at, "I cook soup with Ben.") for at in range(2, 6)]
    query = ask("Who do I usually cook soup with?", "Cleo", "Ben", "Dan", time=5_000.0)
    for policy in (V18, V47, V49):
        assert answer(policy(setup()), both, query, Host("A")).route == "frequency"
    times = ("this morning", "last night", "yesterday at noon", "yesterday afternoon")
    asked = ask("When was the last time that I cooked soup, as I often do?", *times, time=86_400 + 43_200.0)
    talk = [window(at, "I cook soup as on this morning.") for at in range(4)]
    held = [*talk, Window(4, 70_000.0, 70_030.0, ("I cook soup.",), (), False)]
    for policy in (V18, V47, V49):
        found = answer(policy(setup()), held, asked, Host("A"))
        assert (found.route, found.choice) == ("temporal_delta", "B")
        found = answer(policy(setup()), held[:4], asked, Host("A"))
        assert (found.route, found.choice) == ("frequency", "A")


HOURS = ("about 1 hour ago", "about 2 hours ago", "about 3 hours ago", "5 hours ago")


def test_a_direct_answer_asks_no_model_and_the_fallback_exactly_once() -> None:
    windows = [window(0, "Ada waters the fern."), *(window(at, "nothing") for at in range(1, 8))]
    direct = ask("When was the last time Ada watered the fern?", *HOURS, time=7_200.0)
    for policy in (V18, V47, V49):
        host = Host("A")
        found = answer(policy(setup()), windows, direct, host)
        assert (found.choice, found.route, host.reads) == ("B", "temporal_delta", [])
        host = Host("C")
        found = answer(policy(setup()), windows, ask("What is watered?", "fern", "mug", "tree"), host)
        assert (found.choice, found.route, len(host.reads)) == ("C", "structured_event", 1)


# ---------------------------------------------------------------- the visual gate


@pytest.mark.parametrize("question", ["Who is wearing the red shirt?", "WHO IS WEARING THE RED SHIRT?"])
def test_who_is_wearing_the_red_shirt_needs_frames(question: str) -> None:
    assert strong_visual_need(ask(question))


@pytest.mark.parametrize(
    ("question", "exclusion"),
    [
        ("How many times did I wear the red shirt?", 1),
        ("What does the sign look like?", 3),
        ("Whose cup was on the left?", 5),
        ("Who didn't sit on the right?", 2),
        ("In the past 3 days, what colour bag did I carry?", 1),
        ("What didn't I put on the left shelf?", 5),
        ("What didn\u2019t I put on the left shelf?", 5),
    ],
)
def test_examples_that_are_suppressed(question: str, exclusion: int) -> None:
    assert excluded(question) == exclusion and not strong_visual_need(ask(question))


def test_examples_that_pass_or_do_not_trigger() -> None:
    assert strong_visual_need(ask("What was left of the cake?"))  # accepted: "left" is no position here
    assert not strong_visual_need(ask("Who wears the blue hat?"))
    assert strong_visual_need(ask("Who wears the blue hat?"), False) < strong_visual_need(
        ask("Who wears the blue hat?"), True
    )
    assert not strong_visual_need(ask("What did I eat?"))
    assert not strong_visual_need(ask("What reddish coloured thing did I buy?"))  # unlisted inflections
    assert strong_visual_need(ask("What is it?", type="Counting")) and not strong_visual_need(ask("What is it?"))
    assert not strong_visual_need(ask("What is it?", "the red one", "the blue one"))  # choices are not looked at
    assert strong_visual_need(ask("In the past few days, what colour bag did I carry?"))


@pytest.mark.parametrize(
    "words",
    ["how many times", "number of times", "most often", "past 14 days", "usually", "often", "frequency", "frequently"],
)
def test_exclusion_1_temporal_frequency(words: str) -> None:
    assert excluded(f"What colour is it {words}?") == 1 and not excluded("What colour is it?")


FOLLOWERS = ("is", "was", "were", "appear", "appears", "look", "looks", "wearing", "wears", "holding", "holds")
CUES = ("wearing", "wears", "holding", "holds", "visible", "shown", "color", "colour")


def test_exclusion_2_unconstrained_identity() -> None:
    for follower in (*FOLLOWERS, "visible", "shown"):
        assert excluded(f"Who {follower} in the red colour?") == 0, follower
        assert excluded(f"Who in the room {follower} red in colour?") == 2, follower
        assert excluded(f"Who {follower} red?") == 2, follower
    for cue in CUES:
        assert excluded(f"Who is {cue} a red thing?") == 0, cue
        assert excluded(f"Now {cue}, who is it?") == 2, cue
    assert excluded("Who would be wearing red?") == 2 == excluded("The one who came, is it red colour?")


@pytest.mark.parametrize("word", ["like", "likes", "prefer", "prefers", "drink", "drinks"])
def test_exclusion_3_preference(word: str) -> None:
    assert excluded(f"Which colour does Ada {word}?") == 3
    assert not excluded("Which colour does Ada dislike?")


def test_exclusion_4_idiom() -> None:
    assert excluded("Which red plant did Ada look after?") == 4
    assert not excluded("Which red plant did Ada look at after lunch?")


def test_exclusion_5_position_with_relation_or_negation() -> None:
    relations = ("whom", "whose", "with", "together", "not", "did not", "without", "participate", "isn't")
    for place in ("left", "right", "above", "below"):
        assert not excluded(f"What was {place} of the mug?")
        for relation in relations:
            assert excluded(f"What {relation} was {place} of the mug?") == 5, (place, relation)
    assert excluded("Who is left, wearing the red shirt?") == 5
    assert not excluded("What red thing was with the mug?")


def test_weak_text_needs_every_check() -> None:
    assert not weak_text(True, True, "temporal_delta", [3, 1])
    for route in ("frequency", "relational"):
        assert not weak_text(True, True, route, [1, 2, 0])
    assert weak_text(False, True, "temporal_delta", [3, 1])
    assert weak_text(True, False, "temporal_delta", [3, 1])
    assert weak_text(True, True, "structured_event", [3, 1])
    assert weak_text(True, True, "temporal_delta", [1, 0])
    assert weak_text(True, True, "temporal_delta", [3, 3])
    assert weak_text(True, True, "temporal_delta", [])


def test_weak_text_by_the_second_reading() -> None:
    assert not weak_text(True, False, "structured_event", [3, 1], "either")
    assert not weak_text(True, True, "temporal_delta", [1, 0], "either")
    assert weak_text(True, False, "structured_event", [1, 0], "either")
    assert weak_text(True, True, "temporal_delta", [3, 3], "either")
    assert weak_text(False, True, "temporal_delta", [3, 1], "either")


# ---------------------------------------------------------------- verification

SEEN = [window(at, f"Ada carries bag {at}.", frames=True) for at in range(12)]
VISUAL = ask("What colour is the bag that Ada carries?", "red", "blue", "green")


def test_the_verification_prompt_is_word_for_word() -> None:
    host = Host("B", "C")
    found = answer(V49(setup()), SEEN, VISUAL, host)
    assert host.reads[1].instructions == (
        "Current text answer is B. Inspect frames. "
        "Maintain B unless visual evidence unambiguously proves an alternative."
    )
    assert VERIFY.count("{answer}") == 2
    assert found.choice == "C" and found.route == "structured_event+visual"
    assert host.reads[1].part == "verification" and host.reads[1].frames


def test_at_most_four_frames_and_none_after_the_question() -> None:
    assert verification.FRAMES == 4 == Budget().frames
    host = Host("B", "B")
    answer(V49(setup(frames=10)), SEEN, VISUAL, host)
    (asked,) = host.asked_frames
    assert len(asked.times) == 4 == len(host.reads[1].frames)
    assert all(time <= SEEN[-1].end for time in asked.times)
    assert all(abs(one - two) >= 30 for one, two in pairwise(sorted(asked.times)))


@pytest.mark.parametrize(
    "host",
    [
        Host("B", None),
        Host("B", ModelFailed("no reply")),
        Host("B", "Z"),
        Host("B", "A", frames=False),
        Host("B", ""),
    ],
    ids=["no letter", "model failed", "another letter", "no frames", "empty"],
)
def test_every_failure_keeps_the_text_answer(host: Host) -> None:
    found = answer(V49(setup()), SEEN, VISUAL, host)
    assert found.choice == "B" and found.diagnostics["gate_open"] is True


def test_a_closed_gate_asks_for_no_frames() -> None:
    host = Host("B", "C")
    found = answer(V49(setup()), SEEN, ask("What does Ada carry?", "bag", "box"), host)
    assert found.choice == "B" and not host.asked_frames and len(host.reads) == 1


def test_without_frames_v49_answers_exactly_as_v47() -> None:
    blind = [window(at, f"Ada carries bag {at}.") for at in range(12)]
    for windows, frames in ((blind, True), (SEEN, False)):
        hosts = (Host("B", "C"), Host("B", "C", frames=frames))
        before, after = (
            answer(policy(setup()), windows, VISUAL, host) for policy, host in zip((V47, V49), hosts, strict=True)
        )
        assert (before.choice, before.route, before.evidence) == (after.choice, after.route, after.evidence)
        assert hosts[0].reads == hosts[1].reads


# ---------------------------------------------------------------- the mutation run


def test_every_change_of_the_mutation_run_can_be_made() -> None:
    """The run itself is ``python -m tests.mutation``; here its list is held against the code."""
    root = Path(__file__).parents[2]
    spec = importlib.util.spec_from_file_location("mutation", root / "tests" / "mutation.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["mutation"] = module
    spec.loader.exec_module(module)
    found = module.mutations()
    for mutation in found:
        text = (root / mutation.path).read_text(encoding="utf-8")
        assert mutation.apply(text) != text, mutation.name
    assert len(found) == len({mutation.name for mutation in found}) > 120
