"""Answers, names and keys hidden from the static rules: each way must be found by the rule that is meant for it."""

from __future__ import annotations

import pytest

from harness.gate.interface import Decision, StageVerdict
from harness.gate.literals import data_words
from harness.gate.static import check
from principles.h0 import load_h0
from tests.security.test_static_review import GOOD

CONSTITUTION = load_h0().constitution
QUESTIONS = [
    "Who walked with me to the harbour before breakfast?",
    "Where did Mirela put the copper kettle?",
    "On the washstand",
    "Under the ladder",
    "Beside the goldfish",
    "Which of us mended the accordion?",
    "Where is the magnifier?",
]
CAPTIONS = ["Somebody tidies the drawer beside the old accordion.", "I wait for a moment."] * 2
DATA = data_words(["Mirela Brandt", "Tadeusz"], ["lifelog-0001"], QUESTIONS, CAPTIONS)


def review(code: str, **others: str) -> StageVerdict:
    files = {"policy.py": GOOD + "\n\n" + code} | {name.replace("__", "."): text for name, text in others.items()}
    return check({path: text.encode() for path, text in files.items()}, CONSTITUTION, DATA)


def rules(verdict: StageVerdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def answering(body: str) -> str:
    return "class Other:\n    def answer(self, asked):\n        " + body.replace("\n", "\n        ") + "\n"


WORDS = {
    "letters in a list": "NAME = ['m', 'i', 'r', 'e', 'l', 'a']\n",
    "letters in pieces": "NAME = ('mi', 're', 'la', 'x', 'y')\n",
    "letters with dashes": "NAME = 'm-i-r-e-l-a'.split('-')\n",
    "letters with blanks": "NAME = 't a d e u s z'\n",
    "numbers of letters": "NAME = [109, 105, 114, 101, 108, 97]\n",
    "sum": "NAME = 'Mir' + 'ela'\n",
    "sum of three": "NAME = 'Mi' + ('re' + 'la')\n",
    "join": "NAME = ''.join(['Tade', 'usz'])\n",
    "f-string": "NAME = f\"Mir{'ela'}\"\n",
    "backwards": "NAME = 'alerim'\n",
    "data set in pieces": "NAME = 'ego' + 'life'\n",
    "keys that spell": "NAMES = {'m': 1, 'i': 2, 'r': 3, 'e': 4, 'l': 5, 'a': 6}\n",
    "a whole choice": "X = 'on the Washstand'\n",
    "words of a caption": "X = 'tidies the drawer beside the old'\n",
    "its own words": "X = ('kettle', 'harbour', 'washstand', 'goldfish', 'accordion', 'magnifier')\n",
    "words as names": "def f(kettle, harbour, washstand, goldfish, accordion, magnifier): pass\n",
}


@pytest.mark.parametrize("name", WORDS)
def test_words_of_the_data_however_they_are_written(name: str) -> None:
    assert "S11" in rules(review(WORDS[name])), WORDS[name]


def test_words_of_the_data_in_a_settings_file() -> None:
    values = '["kettle", "harbour", "washstand", "goldfish", "accordion", "magnifier"]'
    assert rules(review("", words__json=values)) == {"S11"}
    assert rules(review("", words__json='{"a": "Under the ladder"}')) == {"S11"}


CODES = {
    "chr of numbers": ("S12", "X = ''.join(chr(n ^ 3) for n in (110, 106))\n"),
    "decode": ("S12", "def f(x):\n    return x.decode()\n"),
    "translate": ("S12", "def f(x):\n    return x.translate(str.maketrans('a', 'b'))\n"),
    "packed digits": ("S12", "X = int('2s3f9a', 36)\n"),
    "long float": ("S12", "X = 0.132013201320132\n"),
    "digits in a name": ("S12", "x3fa94c77b2e1 = 1\n"),
    "base64 in a name": ("S12", "QWxpY2Ugd2Fsa2VkIHRv = 1\n"),
    "a very long name": ("S12", f"{'on_the_left_side_' * 4} = 1\n"),
    "places": ("S13", "X = [0, 1, 3, 2, 0, 1, 2, 0]\n"),
    "places in a string": ("S13", "X = '01320132'\n"),
    "letters over many names": ("S13", "".join(f"X{n} = '{'ABCD'[n % 4]}'\n" for n in range(20))),
    "letters over many strings": ("S13", "".join(f"X{n} = 'ABBA'\n" for n in range(6))),
    "check sums": ("S13", f"X = {[1001 + 37 * n for n in range(20)]}\n"),
    "check sums over many names": ("S13", "".join(f"X{n} = {1001 + 37 * n}\n" for n in range(20))),
}


@pytest.mark.parametrize("name", CODES)
def test_encoded_and_divided_tables(name: str) -> None:
    rule, code = CODES[name]
    assert rule in rules(review(code)), code


def test_a_table_divided_among_files() -> None:
    parts = {f"p{n}__py": f"LETTERS = {{'x': 'A', 'y': 'B', 'z': 'B', 'w': '{n}'}}\n" for n in range(6)}
    assert rules(review("", **parts)) == {"S13"}


KEYS = {
    "match": "match asked.question:\n    case 'Where is it?':\n        return 1",
    "alias": "item = asked\nif item.question == 'Where is it?':\n    return 1",
    "alias of an alias": "a = asked\nb = a\nreturn {1: 2}.get(b.question)",
    "text under another name": "text = asked.question.lower().strip()\nreturn TABLE[text]",
    "kept in the policy": "self.kept = asked\nreturn TABLE.get(self.kept.question)",
    "given to a function": "return look(asked.question)\n\n\ndef look(words):\n    return TABLE.get(words)",
    "given to a method": "return self.look(asked)\n\ndef look(self, item):\n    return TABLE[item.question]",
    "id": "item = asked\nreturn item.id",
    "time": "now = int(asked.time)\nreturn TABLE.get(now)",
    "time equals": "return round(asked.time) == 4711",
    "time in a set": "return int(asked.time) in {4711, 4712}",
    "choice in a table": "return [k for k, text in asked.choices.items() if text in TABLE]",
    "choice equals": "return [k for k, text in asked.choices.items() if text.lower() == 'nowhere']",
    "choice's length": "return max(asked.choices, key=lambda k: len(asked.choices[k]))",
    "choice's length in a loop": "return [len(text) for text in asked.choices.values()]",
    "longest by key": "return max(asked.choices.values(), key=len)",
    "ord": "return sum(ord(c) for c in asked.question)",
    "encode": "return sum(asked.question.encode())",
    "letters": "return sum(c == 'e' for c in asked.question)",
    "single letter": "return asked.question[7]",
    "count": "return asked.question.count('e')",
    "set of letters": "return set(asked.question)",
    "drawn by the question": "import random\nreturn random.Random(asked.question).random()",
}


@pytest.mark.parametrize("name", KEYS)
def test_the_question_as_a_key_however_it_is_named(name: str) -> None:
    found = review("TABLE = {}\n\n\n" + answering(KEYS[name]))
    assert "S15" in rules(found), KEYS[name]


def test_the_question_as_a_key_in_another_file() -> None:
    used = "from .look import look\n\n\n" + answering("return look(asked.question)")
    assert "S15" in rules(review(used, look__py="TABLE = {'x': 1}\n\n\ndef look(text):\n    return TABLE.get(text)\n"))


def test_a_module_by_way_of_a_sibling() -> None:
    assert rules(review("from .a import z\n", a__py="import random as z\n")) == {"S05"}
    assert rules(review("from .a import Random\n", a__py="from random import Random\n")) == {"S05"}
    assert "S05" in rules(review("from . import a\nX = a.random.random()\n", a__py="import random\n"))


HONEST = {
    "a form of question": "if 'how many' in asked.question.lower() or asked.question.startswith('When'):\n    return 1",
    "its type": "return {'EventRecall': 1}.get(asked.type, 0)",
    "how many choices": "return [0.0] * len(asked.choices)",
    "letters": "return sorted(asked.choices)[0], list(asked.choices), next(iter(asked.choices))",
    "letter by place": "return chr(ord('A') + 2), chr(65 + 1)",
    "scores by letter": "scores = {k: 0.0 for k in asked.choices}\nreturn max(scores, key=lambda k: scores[k])",
    "choice found again": "found = self.best(asked)\nreturn [k for k, text in asked.choices.items() if text == found]",
    "overlap": "return [len(set(text.split()) & set(asked.question.split())) for text in asked.choices.values()]",
    "the hour": "return asked.time % 86_400 // 3_600 < 12 and asked.time - 600 > 0",
    "cut": "return asked.question[:200]",
    "drops punctuation": "import string\nreturn asked.question.translate(str.maketrans('', '', string.punctuation))",
}


@pytest.mark.parametrize("name", HONEST)
def test_honest_use_of_a_question_passes(name: str) -> None:
    verdict = review(answering(HONEST[name]))
    assert verdict.decision is Decision.APPROVE, verdict.findings


def test_a_list_of_ordinary_words_is_no_table_of_the_data() -> None:
    rooms = "ROOMS = {'pantry', 'scullery', 'larder', 'den', 'nook', 'harbour', 'annex', 'vestibule', 'conservatory'}\n"
    assert review(rooms).decision is Decision.APPROVE
    weights = "WEIGHTS = {'event': 3.0, 'people': 2.5, 'object': 2.0}\nLIMIT = 12_500\nDAY = 86_400\n"
    assert review(weights).decision is Decision.APPROVE
