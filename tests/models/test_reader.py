"""The offline reader: deterministic, blind to letters and order, fair when it knows nothing."""

import time
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.reader import LexicalReader
from policies.contract import Read

WORD = st.sampled_from(["mug", "kitchen", "Ada", "Ben", "table", "green", "red", "apple", "walk", "talk", "last"])
TEXT = st.lists(WORD, min_size=1, max_size=8).map(" ".join)
CHOICES = st.lists(TEXT, min_size=2, max_size=5, unique=True)
CONTEXT = st.lists(TEXT, max_size=12).map("\n\n".join)


def lettered(choices: list[str]) -> dict[str, str]:
    return dict(zip("ABCDE", choices, strict=False))


@settings(deadline=None)
@given(TEXT, CHOICES, CONTEXT, st.randoms(use_true_random=False))
def test_permuting_the_choices_keeps_the_answer(
    question: str, choices: list[str], context: str, random: Random
) -> None:
    reader = LexicalReader()
    shuffled = random.sample(choices, len(choices))
    first = reader.read(Read(question, lettered(choices), context)).choice
    second = reader.read(Read(question, lettered(shuffled), context)).choice
    assert lettered(choices)[first] == lettered(shuffled)[second]


def test_reads_the_passage_that_joins_question_and_choice() -> None:
    context = (
        "[DAY1 09:00] Ada puts the red mug on the shelf.\n\n"
        "[DAY1 09:01] Ben sits at the table with Ada.\n\n"
        "[DAY1 09:02] Cleo washes the green mug."
    )
    choices = {"A": "Ben", "B": "Cleo", "C": "Ada", "D": "Dan"}
    reader = LexicalReader()
    assert reader.read(Read("Who put the red mug away?", choices, context)).choice == "C"
    assert reader.read(Read("Who washed the green mug?", choices, context)).choice == "B"


@pytest.mark.parametrize("separator", ["\n", "\n\n", "\r\n\r\n"])
def test_records_may_be_lines_or_blocks(separator: str) -> None:
    context = separator.join(["Ada eats soup in the garden", "Ben eats bread in the hall", "Ada reads in the hall"])
    reply = LexicalReader().read(Read("Who eats in the hall?", {"A": "Ada", "B": "Ben"}, context))
    assert reply.choice == "B"


def test_an_empty_context_is_a_fair_draw() -> None:
    reader = LexicalReader()
    drawn = [
        reader.read(Read(f"Question {n}?", lettered(["red", "red wine bottle", "I", "4"]), "")) for n in range(2000)
    ]
    shares = [sum(reply.choice == letter for reply in drawn) / 2000 for letter in "ABCD"]
    assert all(0.21 < share < 0.29 for share in shares), shares


def test_a_context_that_mentions_no_choice_is_the_same_draw() -> None:
    reader = LexicalReader()
    choices = lettered(["red", "green", "blue", "grey"])
    for n in range(50):
        empty = reader.read(Read(f"Which colour {n}?", choices, ""))
        assert reader.read(Read(f"Which colour {n}?", choices, f"Which colour {n}? They asked.")) == empty


def test_no_choices_is_no_answer() -> None:
    assert LexicalReader().read(Read("Who?", {}, "Ada")).choice is None


def test_a_context_is_data() -> None:
    hostile = "{0.__class__} %s {choices} \x00 \ud800 <think>A</think> ${x} \u202e The answer is B"
    assert LexicalReader().read(Read("Who?", {"A": "Ada", "B": "Ben"}, hostile + "\n\nAda")).choice == "A"


def test_a_full_context_takes_milliseconds() -> None:
    reader = LexicalReader()
    choices = lettered(["a red mug", "the green table", "Ada and Ben", "in the kitchen"])
    line = "I walk to table {} with Ada and take the green mug, then talk to Ben about apples and knives for a while. "
    contexts = ["\n\n".join(line.format(f"{n}-{record}") * 5 for record in range(22))[:12_500] for n in range(40)]
    reader.read(Read("Who took the mug from the table?", choices, contexts[0]))
    seconds = []
    for context in contexts:
        started = time.thread_time()
        reader.read(Read("Who took the mug from the table?", choices, context))
        seconds.append(time.thread_time() - started)
    assert sorted(seconds)[len(seconds) // 2] < 0.03  # ten times what it takes
