"""What counts as a declared letter and what does not."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.models.letters import parse_letter

LETTERS = ("A", "B", "C", "D")


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("C", "C"),
        ("c", "C"),
        ("a", "A"),
        (" (B) ", "B"),
        ("**D**", "D"),
        ("B.", "B"),
        ("Option B", "B"),
        ("Answer: D", "D"),
        ("answer: (b)", "B"),
        ("answer: b", "B"),
        ("Based on the evidence, C", "C"),
        ("Based on the evidence, C.", "C"),
        ("The answer is (B).", "B"),
        ("The answer is **B**.", "B"),
        ("The correct answer is: A", "A"),
        ("The answer is A because she took the mug.", "A"),
        ("The answer is A, the mug.", "A"),
        (r"\boxed{C}", "C"),
        (r"So the result is $\boxed{D}$.", "D"),
        ("I would go with option C here.", "C"),
        ("I choose B.", "B"),
        ("Option D is correct.", "D"),
        ("B is the best match; A is a distractor.", "B"),
        ("B. Tasha used it first.", "B"),
        ("B\nTasha used it first.", "B"),
        ("Tasha used it first.\n\nC", "C"),
        ("At first the answer is A. On reflection the answer is B.", "B"),
        ("(A) is wrong and (C) is wrong. Final answer: D", "D"),
        ("The records support (C), the kitchen.", "C"),
        ("It was a long day in a kitchen. The answer is D.", "D"),
        ("The correct option is B", "B"),
        ("A", "A"),
        ('{"answer": "B"}', "B"),
        ('{"choice":"C"}', "C"),
        ('```json\n{"letter": "D", "why": "A is wrong"}\n```', "D"),
        ("C) Tasha\n\nThe records show her; (B) is not there.", "C"),
        ("Let me think. A mug is there. I see Ben. Answer: C", "C"),
    ],
)
def test_read(text: str, letter: str) -> None:
    assert parse_letter(text, LETTERS) == letter


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n",
        "A or B",
        "The answer is A or B.",
        "The answer is (A) or (B).",
        "Answer: A, B",
        "Either B or C",
        "It could be A, B or C.",
        "The answer is a mug.",
        "the answer is a",
        "The answer is A mug.",
        "The answer is I think unclear.",
        "The answer is unclear.",
        "The answer is not B.",
        "a long day",
        "I do not know.",
        "A man walks in.",
        "E",
        "The answer is E.",
        "A. Alice\nB. Tasha\nC. Shure\nD. Lucia",
        "(A) fits and (B) fits.",
        "Vitamin B is good for people.",
        "答案",
        "None of the above",
        "The answer is Alice",
        "The answer is A-line skirt",
    ],
)
def test_abstains(text: str) -> None:
    assert parse_letter(text, LETTERS) is None


def test_only_the_letters_of_the_question() -> None:
    assert parse_letter("The answer is E.", ("A", "E")) == "E"
    assert parse_letter("The answer is C.", ("A", "B")) is None


@pytest.mark.parametrize("filler", ["x", "A", "(", "the answer is ", "A or ", ", ", "\n", "A. "])
def test_ten_megabytes_are_bounded(filler: str) -> None:
    text = filler * (10_000_000 // len(filler)) + "\nThe answer is B."
    started = time.thread_time()
    assert parse_letter(text, LETTERS) == "B"
    assert time.thread_time() - started < 1.0


@settings(deadline=None)
@given(st.text(max_size=300))
def test_never_fails(text: str) -> None:
    assert parse_letter(text, LETTERS) in {None, *LETTERS}


@settings(deadline=None)
@given(st.sampled_from(LETTERS), st.sampled_from(LETTERS))
def test_the_last_declaration_wins(first: str, second: str) -> None:
    assert parse_letter(f"The answer is {first}. No: the answer is {second}.", LETTERS) == second
