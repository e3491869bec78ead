"""What counts as an answer and what does not; never a guess."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.models.letters import parse_letter

CHOICES = {"A": "The kitchen", "B": "Tasha", "C": "a blue plate", "D": "2 times"}
PLAIN = dict.fromkeys("ABCD", "") | {"A": "one", "B": "two", "C": "three", "D": "four"}

READ = [
    "{L}",
    " ({L}) ",
    "({L}).",
    "**{L}**",
    "{L}.",
    "{L}\n",
    "[{L}]",
    "`{L}`",
    "Option {L}",
    "Answer: {L}",
    "Answer:{L}",
    "answer: ({l})",
    "Answer: {l}",
    "answer = {l}",
    "{l}",
    "Based on the evidence, {L}",
    "Based on the evidence, {L}.",
    "Based on the evidence, so {L}.",
    "The answer is ({L}).",
    "The answer is **{L}**.",
    "The answer is ({l}).",
    "The answer is {l}.",
    "The correct answer is: {L}",
    "The answer is {L} because she took the mug.",
    "The answer is {L}, the mug.",
    "The answer is most likely {L}.",
    "The answer is {L}, not {M}.",
    "The answer is option {L} here.",
    "It is not certain, but the answer is {L}.",
    r"\boxed{{{L}}}",
    r"\boxed{{\text{{{L}}}}}",
    r"So the result is $\boxed{{{L}}}$.",
    "I would go with option {L} here.",
    "I choose {L}.",
    "Option {L} is correct.",
    "{L} is the best match; {M} is a distractor.",
    "{L}. She used it first.",
    "{L}) She used it first.",
    "{L}\nShe used it first.",
    "{L}. because {M} is wrong",
    "{L} because {M} is wrong",
    "{L} - the mug",
    "Option {L}: the mug",
    "Letter {L}",
    "The letter is {L}",
    "It is {L}.",
    "So I think it's {L}.",
    "The answer is '{L}'.",
    "{L}<|im_end|>",
    "<|channel|>analysis<|message|>{M}<|end|><|channel|>final<|message|>{L}",
    "She used it first.\n\n{L}",
    "At first the answer is {M}. On reflection the answer is {L}.",
    "({M}) is wrong and ({N}) is wrong. Final answer: {L}",
    "The records support ({L}), the scene.",
    "It was a long day in a kitchen. The answer is {L}.",
    "The correct option is {L}",
    '{{"answer": "{L}"}}',
    '{{"choice":"{L}"}}',
    '["{L}"]',
    '"{L}"',
    '```json\n{{"letter": "{L}", "why": "{M} is wrong"}}\n```',
    '{{"answer": "{L}", "why": "the answer is {M} for some',
    '{{"why": "it is {M}?", "answer": "{L}',
    'Sure: {{"answer": "{L}"}}',
    "<think>It could be {M}. The answer is {M}.</think>\n{L}",
    "<think>\n\n</think>\n\nThe answer is {L}.",
    "hidden thought: {M}</think>{L}",
    "I look at it.\n<answer>{L}</answer>",
    "<answer> {L}. </answer>",
    "{L}) She did.\n\nThe records show her; ({M}) is not there.",
    "Let me think. A mug is there. I see Ben. Answer: {L}",
    "答案是{L}。",
    "答案：{L}",
    "我选择（{L}）",
    "Ｏption {L}",
]
NONE = [
    "{L} or {M}",
    "{L}/{M}",
    "The answer is {L} or {M}.",
    "The answer is ({L}) or ({M}).",
    "Answer: {L}, {M}",
    "Either {L} or {M}",
    "It could be {L}, {M} or {N}.",
    "The answer is {L} mug.",
    "The answer is {l} mug.",
    "the answer is {l}",
    "The answer is not {L}.",
    "It is not true that the answer is {L}.",
    "I would not choose {L}.",
    "I don't think the answer is {L}",
    "I am not sure that {L} is correct.",
    "I am not sure, {L}",
    "Is the answer {L}?",
    "it is {l}",
    "If it is {L}, she left.",
    "I don't think it is {L}.",
    "{L} man walks in.",
    "{L}. This is wrong.",
    "{L}: incorrect",
    "({L}) is wrong.",
    "Not ({L})",
    "The answer is {L}. Wait, {M}.",
    "The answer is {L}. Or maybe {M}.",
    "{L}\n{M}",
    "{L}. x\n{M}. y\n{N}. z",
    "({L}) fits and ({M}) fits.",
    "Vitamin {L} is good for people.",
    "The answer is {L}-line skirt",
    '{{"answer": "{L}", "choice": "{M}"}}',
    '{{"answer": ["{L}", "{M}"]}}',
    '{{"answer": null, "why": "not {L}"}}',
    '["{L}", "{M}"]',
    "<think>The answer is {L}.",
    "<think>The answer is {L}.</think>",
    "<thinking>{L}</thinking> I am not sure",
    "答案是{L}或{M}",
    "不选{L}",
]


def filled(template: str, *letters: str) -> str:
    return template.format(L=letters[0], M=letters[1], N=letters[2], l=letters[0].lower())


@pytest.mark.parametrize("template", READ)
def test_read(template: str) -> None:
    for letters in ("ABC", "BCD", "CDA", "DAB"):
        assert parse_letter(filled(template, *letters), PLAIN) == letters[0], letters


@pytest.mark.parametrize("template", NONE)
def test_abstains(template: str) -> None:
    for letters in ("ABC", "BCD", "CDA", "DAB"):
        assert parse_letter(filled(template, *letters), PLAIN) is None, letters


@pytest.mark.parametrize(
    "text",
    [
        "", "   \n", "I am not sure", "I do not know.", "The answer is unclear.", "The answer is I think unclear.", "E",
        "The answer is E.", "a long day", "答案", "None of the above", "The answer is", "{}", "[]", "null",
        "{\"answer\":", "**", "<answer></answer>", "\ud800", "Answer: 7",
    ],
)  # fmt: skip
def test_nothing_to_read(text: str) -> None:
    assert parse_letter(text, PLAIN) is None


@pytest.mark.parametrize("hedge", ["The answer is A or B.", "Answer: A, B", "I am left with: A, B", "It is A and B"])
def test_a_hedge_at_the_end_of_a_long_text(hedge: str) -> None:
    assert parse_letter("The records tell of a long day in the kitchen. " * 9 + hedge, PLAIN) is None


@pytest.mark.parametrize(
    ("text", "letter"),
    [
        ("Tasha", "B"),
        ("A Tasha", None),  # letter or article
        ("tasha.", "B"),
        ("kitchen", "A"),
        ("**A blue plate**", "C"),
        ("2 times", "D"),
        ("The answer is Tasha.", "B"),
        ("The answer is: the kitchen", "A"),
        ("She looked at it twice.\nTasha", "B"),
        ("B. Tasha", "B"),
        ("Answer: C a blue plate", "C"),
        ("(B) Tasha", "B"),
        ('{"answer": "Tasha"}', "B"),
        ('{"answer": "B. Tasha"}', "B"),
        ("B. Tasha is wrong", None),
        ("B. Tasha, because A is wrong", "B"),
        ("A. Tasha", None),
        ("The answer is A: Tasha", None),
        ("Tasha (C)", None),
        ("Tasha\nThe kitchen", None),
        ("Tasha was in the kitchen", None),
        ("The kitchen is where Tasha was.", None),
    ],
)
def test_the_text_of_a_choice_in_place_of_its_letter(text: str, letter: str | None) -> None:
    assert parse_letter(text, CHOICES) == letter


def test_equal_choices_are_told_apart_by_letter_only() -> None:
    twice = {"A": "Alice", "B": "alice", "C": "Shure"}
    assert parse_letter("Alice", twice) is None
    assert parse_letter("The answer is Alice.", twice) is None
    assert parse_letter("B. Alice", twice) == "B"
    assert parse_letter("Shure", twice) == "C"


def test_choices_that_look_like_letters_or_hedges() -> None:
    grades = {"A": "B", "B": "A", "C": "C major", "D": "A or B"}
    assert parse_letter("B", grades) == "B"
    assert parse_letter("The answer is C major.", grades) == "C"
    assert parse_letter("A or B", grades) is None
    empty = {"A": "", "B": "x"}
    assert parse_letter("", empty) is None
    assert parse_letter("...", empty) is None


@pytest.mark.parametrize("count", [2, 3, 5, 10])
def test_only_the_letters_of_the_question(count: int) -> None:
    letters = "ABCDEFGHIJ"[:count]
    choices = {letter: f"thing number {letter}{letter}" for letter in letters}
    for letter in "ABCDEFGHIJ":
        expected = letter if letter in letters else None
        for template in ("{L}", "The answer is {L}.", "So, {L}", "({L})", "{L}. because", '{{"answer": "{L}"}}'):
            assert parse_letter(template.format(L=letter), choices) == expected


FILLERS = [
    "x", "A", "(", "the answer is ", "A or ", ", ", "\n", "A. ", "<think>", "</think> <think>", "<answer>", "```\n",
    "{", "[", '{"answer": ', '"answer": "A", ', "not ", "A is ", "n't a ", "option ", " ", "\ufdfa", "答案是",
    "wait ", "answer   ",
]  # fmt: skip


@pytest.mark.parametrize("filler", FILLERS)
def test_ten_megabytes_are_bounded(filler: str) -> None:
    text = filler * (10_000_000 // len(filler))
    started = time.thread_time()
    parse_letter(text, CHOICES)
    parse_letter(f"{text}\nThe answer is B.", CHOICES)
    parse_letter(f"```json\n{{{text}", CHOICES)
    assert time.thread_time() - started < 5  # measured 0.1 to 0.8; what is not linear takes minutes


@pytest.mark.parametrize("filler", ["x", "(", "the answer is ", ", ", "\n", "</think>"])
def test_the_end_of_ten_megabytes_is_read(filler: str) -> None:
    text = filler * (10_000_000 // len(filler)) + "\nThe answer is B."
    assert parse_letter(text, PLAIN) == "B"


@settings(deadline=None)
@given(st.text(max_size=300))
def test_never_fails(text: str) -> None:
    assert parse_letter(text, CHOICES) in {None, *CHOICES}


BEFORE = ("", "(", "the answer is ", "Answer: ", "not ", ", ", "\n")
AFTER = ("", ")", ". ", " is correct", " or ", "\n", " because ", " man ", "? ")
PIECES = [
    *[before + letter + after for letter in "WXYZ" for before in BEFORE for after in AFTER],
    "word ", "the answer is ", "wait ", " so ", "zero", "one", "two", "three", "\n", "<think>", "</think>",
    '{"answer": "', '"}', "*", "wrong ", "it is ", "答案是",
]  # fmt: skip
TEXTS = ("zero", "one", "two", "three")


@settings(deadline=None, max_examples=400)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8), st.permutations("ABCD"))
@example(["the answer is W", " man "], list("BACD"))
def test_renaming_the_letters_renames_the_answer(pieces: list[str], renamed: list[str]) -> None:
    reply = "".join(pieces)
    before = parse_letter(reply, dict(zip("WXYZ", TEXTS, strict=True)))
    rename = dict(zip("WXYZ", renamed, strict=True))
    after = parse_letter(reply.translate(str.maketrans(rename)), dict(zip(renamed, TEXTS, strict=True)))
    assert after == rename.get(before or "")


@settings(deadline=None)
@given(st.sampled_from(list(PLAIN)), st.sampled_from(list(PLAIN)))
def test_the_last_declaration_wins(first: str, second: str) -> None:
    assert parse_letter(f"The answer is {first}. No: the answer is {second}.", PLAIN) == second
