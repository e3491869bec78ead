"""The dynamic tests in a real sandbox: each rule is broken by a policy, and no released policy breaks any."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.data.frames import open_frames
from harness.data.native import Dataset, load
from harness.gate import variants
from harness.gate.dynamic import DynamicTests
from harness.gate.interface import Decision, StageVerdict
from harness.gate.sampling import ground
from harness.gate.swapping import swap
from harness.models.hub import offline_models
from policies import library
from policies.contract import Budget, Query, Utterance, Window
from sandbox.bundle import make_bundle

LEAKS = Path(__file__).resolve().parents[1] / "leaks"
POLICY = """
import os, random
from policies.contract import *
class Policy:
    def __init__(self, setup):
        self.seen, self.calls = [], 0
    def observe(self, windows):
        self.seen += windows
        self.calls += 1
    def settle(self):
        pass
    def answer(self, query):
        letters = list(query.choices)
        fair = min(letters, key=lambda letter: query.choices[letter])
        {answer}
"""


@pytest.fixture(scope="module")
def data() -> Dataset:
    return load(LEAKS / "data")


@pytest.fixture(scope="module")
def tests(data: Dataset, sandboxes: Callable[[str], Any]) -> Iterator[DynamicTests]:
    yield DynamicTests(
        data, sandboxes("bubblewrap"), offline_models(), Budget(), seed=1, workers=2, frames=open_frames(data)
    )


def check(tests: DynamicTests, answer: str) -> StageVerdict:
    return tests.check(make_bundle({"policy.py": POLICY.format(answer=answer).encode()}), "0001/dynamic")


def rules(verdict: StageVerdict) -> list[str]:
    return [finding.rule for finding in verdict.findings]


FIRST_WORD = "return Answer(letters[len(query.question.split()) % len(letters)], 'x')"
BROKEN = {
    "draws": ("X01", "return Answer(letters[os.urandom(1)[0] % len(letters)], 'x')"),
    "id": ("X01", "return Answer(letters[int(query.id, 16) % len(letters)], 'x')"),
    "counts questions by batches": ("X01", "return Answer(fair, f'after {self.calls}')"),
    "frames of the future": (
        "X02",
        "try:\n            yield Frames((query.time + 1,))\n        except Refused:\n            pass\n"
        "        return Answer(fair, 'x')",
    ),
    "letter": ("X03", "return Answer(letters[2], 'x')"),
    "letter by the question": ("X03", FIRST_WORD),
    "words by heart": ("X04", "return Answer(max(letters, key=lambda k: sum(map(ord, query.choices[k]))), 'x')"),
    "second": (
        "X05",
        "ranked = sorted(letters, key=lambda k: (len(self.seen), query.choices[k][-1:], query.choices[k]))\n"
        "        return Answer(ranked[int(query.time) % 2], 'x')",
    ),
    "length": (
        "X06",
        "return Answer(max(letters, key=lambda k: (len(query.choices[k]), k)), 'x')",
    ),
    "over budget": (
        "X07",
        "for n in range(5):\n            try:\n                yield Read(query.question, query.choices, str(n))\n"
        "            except Refused:\n                pass\n        return Answer(fair, 'x')",
    ),
    "crash": ("K01", "return Answer(letters[1 // 0], 'x')"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_each_rule_is_broken_by_a_policy(name: str, tests: DynamicTests) -> None:
    rule, answer = BROKEN[name]
    verdict = check(tests, answer)
    assert verdict.decision is Decision.REJECT and rule in rules(verdict), verdict
    assert all(f.message.isprintable() and f.message.isascii() for f in verdict.findings)


@pytest.mark.parametrize("name", [name for name in library.names() if name != "longest_option"])
def test_released_policies_break_none(name: str, tests: DynamicTests) -> None:
    verdict = tests.check(make_bundle(library.load(name)), "0001/dynamic")
    assert verdict.decision is Decision.APPROVE, verdict.findings


def test_the_length_shortcut_is_one(tests: DynamicTests) -> None:
    assert "X06" in rules(tests.check(make_bundle(library.load("longest_option")), "0001/dynamic"))


# ---------------------------------------------------------------- what is asked


def test_questions_from_the_beginning_to_the_end(data: Dataset) -> None:
    made = ground(data, "development", 12, 3)
    assert made == ground(data, "development", 12, 3) != ground(data, "development", 12, 4)
    times = sorted(q.time for q in data.questions("development"))
    assert len(made.queries) == 12 and made.queries[0].time <= times[3] and made.queries[-1].time >= times[-4]
    known = {q.id for q in data.questions("development")}
    assert not known & {q.id for q in made.queries}
    assert made.windows[-1].end <= made.queries[-1].time


def test_an_altered_future_is_altered_and_the_past_is_not(tests: DynamicTests) -> None:
    base = tests.base
    at = base.queries[-2]
    made = variants.altered_future(base, at)
    assert all(a == b for a, b in zip(base.windows, made.windows, strict=True) if a.end <= at.time)
    later = [(a, b) for a, b in zip(base.windows, made.windows, strict=True) if a.end > at.time]
    assert later and all(a.captions != b.captions and a.end == b.end for a, b in later)
    assert at.id in made.original and max(q.time for q in made.queries) > at.time  # somebody is asked after it
    assert 1 < len(made.queries) < len(base.queries)


def test_choices_turn_and_come_back(tests: DynamicTests) -> None:
    made = variants.turned_choices(tests.base)
    for before, after in zip(tests.base.queries, made.queries, strict=True):
        assert list(before.choices) == list(after.choices)
        assert sorted(before.choices.values()) == sorted(after.choices.values())
        assert all(before.choices[letter] != after.choices[letter] for letter in before.choices)
        assert made.texts[after.id] == after.choices


def test_moved_times_pass_no_window(tests: DynamicTests) -> None:
    made = variants.moved_times(tests.base)
    ends = [window.end for window in tests.base.windows]
    for before, after in zip(tests.base.queries, made.queries, strict=True):
        assert before.time < after.time <= before.time + variants.MOST_MOVED
        assert not [end for end in ends if before.time < end <= after.time]


def test_words_change_places_and_come_back(tests: DynamicTests) -> None:
    texts = [q.question for q in tests.base.queries] + [t for q in tests.base.queries for t in q.choices.values()]
    for variant in (tests.same_length, tests.other_length):
        assert all(variant.swap.back(variant.swap.there(text)) == text for text in texts)
        changed = [q for q in tests.base.queries if variant.swap.there(q.question) != q.question]
        assert len(changed) > len(tests.base.queries) / 2
    same = tests.same_length.swap.words
    assert same and all(len(old) == len(new) and old != new for old, new in same.items())
    longer = [abs(len(old) - len(new)) for old, new in tests.other_length.swap.words.items()]
    assert sum(longer) > len(longer)
    names = {"tilo", "okan", "felix", "mara", "hugo", "kofi"}
    assert len(names & same.keys()) >= 4 and all(same[name] in names for name in names & same.keys())
    assert not {"where", "last", "time", "kitchen", "the"} & same.keys()


@given(st.lists(st.text(alphabet="abcdeXYZ '.-?\n", max_size=30), max_size=12), st.integers(0, 99), st.booleans())
def test_any_swap_is_one_to_one(texts: list[str], seed: int, same_length: bool) -> None:
    made = swap(texts, ["an old clock", *texts], seed, same_length)
    assert sorted(made.words) == sorted(made.words.values())
    assert all(made.words_back[new] == old for old, new in made.words.items())


@given(st.integers(1, 6), st.integers(1, 5))
def test_any_variant_keeps_who_is_who(windows: int, questions: int) -> None:
    stream = tuple(
        Window(n, n * 30.0, n * 30.0 + 30, (f"c{n}",), (Utterance("Ann", "hi"),), False) for n in range(windows)
    )
    queries = [Query(f"q{n}", "T", "Who?", {"A": "a", "B": "b"}, windows * 30.0) for n in range(questions)]
    base = variants.base(stream, queries)
    made = variants.renamed_questions(variants.moved_times(variants.turned_choices(base)), b"key")
    assert sorted(made.original.values()) == sorted(q.id for q in queries)
    assert not set(made.original) & set(made.original.values())


# ---------------------------------------------------------------- with models


def test_with_models_letters_come_from_the_reader_and_look_like_the_models(
    data: Dataset, sandboxes: Callable[[str], Any], endpoint: Any, models: Any
) -> None:
    """No Read is bought; a policy cannot tell by a reply's form that it is being tested."""
    made = DynamicTests(
        data, sandboxes("bubblewrap"), models, Budget(), seed=1, workers=2, frames=open_frames(data), questions=3
    )
    answer = (
        "reply = yield Read(query.question, query.choices, 'context')\n"
        "        word = yield Generate((Message('user', query.question),))\n"
        "        return Answer(reply.choice, reply.text + word.text[:20])"
    )
    endpoint.say = lambda body: "some words"
    bundle = make_bundle({"policy.py": POLICY.format(answer=answer).encode()})
    assert made.check(bundle, "0001/dynamic").decision is Decision.APPROVE
    seen = made.trials.run(bundle, made.base, "0001/dynamic/look")
    assert seen.written and seen.modelled and not seen.future and not seen.over_budget
    asked = [body["messages"][-1]["content"] for body in endpoint.requests]
    assert asked and not [text for text in asked if "context" in text]


def test_a_reply_that_differs_is_no_fault_of_the_policy(
    data: Dataset, sandboxes: Callable[[str], Any], endpoint: Any, models: Any
) -> None:
    made = DynamicTests(
        data, sandboxes("bubblewrap"), models, Budget(), seed=1, workers=1, frames=open_frames(data), questions=4
    )
    counted = iter(range(10_000))
    endpoint.say = lambda body: f"reply {next(counted)}"
    answer = (
        "word = yield Generate((Message('user', query.question),))\n"
        "        return Answer(fair, 'x', (), {'w': word.text})"
    )
    code = POLICY.format(answer=answer)
    assert made.check(make_bundle({"policy.py": code.encode()}), "0001/dynamic").decision is Decision.APPROVE
