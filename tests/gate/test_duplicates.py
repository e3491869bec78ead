"""Duplicates are recognised by tree, by normalised syntax and by behaviour, and name the earlier attempt."""

from __future__ import annotations

import time

import pytest

from harness.gate.duplicates import Fingerprint, check, syntax_digest
from harness.gate.interface import Decision
from meta_memory.memory import Repeat
from meta_memory.records import Attempt
from meta_memory.similarity import Likeness
from policies import library

BASE = '''"""Doc."""
from __future__ import annotations

import re
from math import log

LIMIT = 3
WORDS = ("a", "b")


def score(text: str, weight: float) -> float:
    """Doc."""
    total = 0.0
    for word in text.split():
        total += log(1 + weight) * (word in WORDS)
    return total / LIMIT


class Policy:
    """Doc."""

    def answer(self, query):
        found = [score(text, 2.0) for text in query.choices]
        return max(found)
'''


def digest(text: str) -> str:
    return syntax_digest({"policy.py": text.encode()})


SAME = {
    "comments": BASE.replace("total = 0.0", "total = 0.0  # start"),
    "docstrings": BASE.replace('"""Doc."""', '"""Something else."""'),
    "annotations": BASE.replace("text: str, weight: float", "text, weight").replace(" -> float", ""),
    "local names": BASE.replace("total", "sum_").replace("word", "w").replace("found", "all_scores"),
    "argument names": BASE.replace("text", "t").replace("weight", "w0"),
    "constants' names": BASE.replace("LIMIT", "CAP").replace("WORDS", "TERMS"),
    "constants' order": BASE.replace('LIMIT = 3\nWORDS = ("a", "b")', 'WORDS = ("a", "b")\nLIMIT = 3'),
    "unused constants": BASE.replace("LIMIT = 3", "LIMIT = 3\nOTHER = 99"),
    "constant in place": BASE.replace("/ LIMIT", "/ 3"),
    "import order": BASE.replace("import re\nfrom math import log", "from math import log\nimport re"),
    "layout": BASE.replace("\n\n\n", "\n\n"),
}


@pytest.mark.parametrize("name", SAME)
def test_what_does_not_change_the_code_does_not_change_the_digest(name: str) -> None:
    assert SAME[name] != BASE
    assert digest(SAME[name]) == digest(BASE)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("LIMIT = 3", "LIMIT = 4"),
        ("max(found)", "min(found)"),
        ("weight) * (word", "weight) + (word"),
        ('("a", "b")', '("b", "a")'),
        ("score(text, 2.0)", "score(text, 2.5)"),
        ("query.choices", "query.options"),
        ("from math import log", "from math import log2 as log"),
        ("def answer", "def settle"),
    ],
)
def test_what_changes_the_code_changes_the_digest(old: str, new: str) -> None:
    assert old in BASE
    assert digest(BASE.replace(old, new)) != digest(BASE)


def test_swapped_locals_are_not_the_same_code() -> None:
    one = "def f(a, b):\n    return a - b\n"
    assert digest(one) == digest("def f(x, y):\n    return x - y\n")
    assert digest(one) != digest("def f(a, b):\n    return b - a\n")


def test_the_policies_that_come_along_all_differ() -> None:
    digests = {name: syntax_digest(library.load(name)) for name in library.names()}
    assert len(set(digests.values())) == len(digests)


def fingerprint(iteration: int, **parts: str) -> Fingerprint:
    known = {"tree": f"t{iteration}", "syntax": f"s{iteration}", "behaviour": f"b{iteration}"} | parts
    return Fingerprint(iteration, **known)


def test_the_earlier_attempt_is_named() -> None:
    earlier = [fingerprint(i) for i in range(1, 9)]
    for rule, part, value in (("D01", "tree", "t3"), ("D02", "syntax", "s4"), ("D03", "behaviour", "b5")):
        verdict = check(fingerprint(9, **{part: value}), earlier)
        assert verdict.decision is Decision.REJECT
        assert [f.rule for f in verdict.findings] == [rule]
        assert verdict.reason.endswith(f"attempt {value[1]}")


def test_a_failed_idea_in_other_words_is_refused_by_number() -> None:
    failed = Attempt(run="earlier", iteration=3, parent=0, title="x", hypothesis="y", outcome="develop")
    repeat = Repeat(failed, Likeness(said=0.1, done=0.62, ingredients=4))
    verdict = check(fingerprint(9), [fingerprint(1)], repeat)
    assert verdict.decision is Decision.REJECT
    assert [f.rule for f in verdict.findings] == ["D04"]
    assert "idea of attempt earlier:3 in other words" in verdict.reason and "rejected at develop" in verdict.reason
    assert check(fingerprint(9, tree="t1"), [fingerprint(1)], repeat).findings[0].rule == "D01"  # the plainer one


def test_new_candidates_and_missing_behaviours_pass() -> None:
    earlier = [fingerprint(1, behaviour=""), fingerprint(2)]
    assert check(fingerprint(3), earlier).decision is Decision.APPROVE
    assert check(fingerprint(3, behaviour=""), earlier).decision is Decision.APPROVE
    assert check(fingerprint(2), earlier).decision is Decision.APPROVE  # itself, after a resumed run


def test_the_first_of_several_matches_is_named() -> None:
    earlier = [fingerprint(7, tree="x"), fingerprint(2, tree="x"), fingerprint(5, syntax="s9")]
    assert check(fingerprint(9, tree="x"), earlier).reason.endswith("attempt 2")


def test_a_large_constant_used_often_costs_nothing_and_its_name_does_not_count() -> None:
    large = "TABLE = (\n" + "\n or ".join(["not not 1"] * 800) + "\n)\nUSES = [" + "TABLE, " * 900 + "]\n"
    began = time.process_time()
    assert digest(BASE + large) == digest(BASE + large.replace("TABLE", "OTHER"))
    assert digest(BASE + large) != digest(BASE + large.replace("not 1", "not 2", 1))
    assert time.process_time() - began < 2
