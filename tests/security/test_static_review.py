"""Attacks on the static rules (red-team part B): each must be found by the rule that is meant to find it."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gate.interface import Decision, StageVerdict
from harness.gate.literals import DataWords, data_words
from harness.gate.static import check
from principles.h0 import load_h0

CONSTITUTION = load_h0().constitution

GOOD = '''"""A policy that answers with the first letter."""

from __future__ import annotations

from policies.contract import Answer


class Policy:
    """First letter."""

    def __init__(self, setup):
        self.windows = []

    def observe(self, windows):
        self.windows.extend(windows)

    def settle(self):
        pass

    def answer(self, query):
        return Answer(sorted(query.choices)[0], "first")
'''


def review(policy: str | bytes, **others: str | bytes) -> StageVerdict:
    files = {"policy.py": policy, **{name.replace("__", "."): text for name, text in others.items()}}
    return check({p: t if isinstance(t, bytes) else t.encode() for p, t in files.items()}, CONSTITUTION, DataWords())


def rules(verdict: StageVerdict) -> set[str]:
    return {finding.rule for finding in verdict.findings}


def test_a_plain_policy_passes() -> None:
    verdict = review(GOOD)
    assert verdict.decision is Decision.APPROVE, verdict.findings
    assert verdict.findings == ()


ADDED = {
    "import os": ("S05", "import os\n"),
    "import inside a function": ("S05", "def f():\n    import socket\n"),
    "from import": ("S05", "from subprocess import run\n"),
    "relative parent": ("S05", "from .. import harness\n"),
    "harness": ("S05", "import harness.evaluation\n"),
    "star": ("S05", "from math import *\n"),
    "module through an allowed one": ("S06", "import re\nx = re.sys\n"),
    "private of a module": ("S07", "import collections\nx = collections._sys\n"),
    "from-import of a hidden module": ("S05", "from typing import sys\n"),
    "private from-import": ("S07", "from collections import _sys\n"),
    "exec": ("S06", "exec('x = 1')\n"),
    "exec under another name": ("S06", "run = exec\n"),
    "eval": ("S06", "eval('1')\n"),
    "compile": ("S06", "compile('1', 'x', 'eval')\n"),
    "open": ("S06", "open('/etc/passwd')\n"),
    "import function": ("S06", "__import__('os')\n"),
    "builtins": ("S06", "__builtins__['eval']\n"),
    "globals": ("S06", "globals()\n"),
    "vars": ("S06", "vars()\n"),
    "breakpoint": ("S06", "breakpoint()\n"),
    "getattr chain": ("S07", "def f(o, n):\n    return getattr(o, n)\n"),
    "getattr of a joined name": ("S07", "getattr(str, '__cl' + 'ass__')\n"),
    "getattr of a private name": ("S07", "getattr(str, '_x')\n"),
    "setattr": ("S07", "def f(o, n):\n    setattr(o, n, 1)\n"),
    "mro": ("S07", "x = ().__class__.__mro__[1].__subclasses__()\n"),
    "dunder in a format string": ("S07", "x = '{0.__class__}'.format(1)\n"),
    "format of a variable": ("S07", "def f(t):\n    return t.format(1)\n"),
    "format_map": ("S06", "def f(t):\n    return t.format_map({})\n"),
    "frames": ("S06", "def f(g):\n    return g.gi_frame.f_globals\n"),
    "attrgetter": ("S06", "import operator\nx = operator.attrgetter('a')\n"),
    "attrgetter imported": ("S06", "from operator import attrgetter\n"),
    "type hints evaluate": ("S06", "from typing import get_type_hints\n"),
    "numpy load": ("S06", "import numpy as np\nx = np.load('x')\n"),
    "numpy lib": ("S06", "import numpy as np\nx = np.lib.npyio.os\n"),
    "numpy tofile": ("S06", "import numpy as np\nnp.zeros(1).tofile('x')\n"),
    "numpy ctypes": ("S06", "import numpy as np\nx = np.zeros(1).ctypes\n"),
    "make_dataclass": ("S06", "import dataclasses\ndataclasses.make_dataclass('X', [])\n"),
    "decorator exec": ("S06", "@exec\n@input\nclass X: pass\n"),
    "decorator expression": ("S08", "@(lambda f: f)\ndef f(): pass\n"),
    "metaclass": ("S08", "class X(metaclass=dict): pass\n"),
    "class keyword": ("S08", "class X(y=1): pass\n"),
    "three-argument type": ("S08", "X = type('X', (), {})\n"),
    "getattribute hook": ("S08", "class X:\n    def __getattr__(self, n): return 1\n"),
    "del hook": ("S08", "class X:\n    def __del__(self): pass\n"),
    "bare except": ("S08", "try:\n    x = 1\nexcept:\n    pass\n"),
    "base exception": ("S08", "try:\n    x = 1\nexcept BaseException:\n    pass\n"),
    "async": ("S08", "async def f(): pass\n"),
    "hash of the input": ("S14", "def f(q):\n    return hash(q)\n"),
    "identity": ("S14", "def f(q):\n    return id(q)\n"),
    "unseeded": ("S14", "import random\nx = random.random()\n"),
    "unseeded generator": ("S14", "import random\nx = random.Random()\n"),
    "unseeded numpy": ("S14", "import numpy as np\nx = np.random.rand(3)\n"),
    "clock": ("S14", "import datetime\nx = datetime.datetime.now()\n"),
    "clock imported": ("S14", "from datetime import datetime\nx = datetime.utcnow()\n"),
    "base64": ("S12", f"X = '{base64.b64encode(bytes(range(60))).decode()}'\n"),
    "digest": ("S12", "X = 'd41d8cd98f00b204e9800998ecf8427e'\n"),
    "long string": ("S12", f"X = '{'word ' * 400}'\n".replace("word ", "a b ", 1)),
    "big integer": ("S12", f"X = {10**40}\n"),
    "answer string": ("S13", "X = 'ABDACBDACBAD'\n"),
    "answer string in pieces": ("S13", "X = 'A,B,D,A,C,B,D,A'\n"),
    "answer table": ("S13", "X = {1: 'A', 2: 'B', 3: 'A', 4: 'C', 5: 'D', 6: 'A', 7: 'B', 8: 'C'}\n"),
    "big table": ("S13", f"X = {list(range(200))}\n"),
    "nested table": ("S13", f"X = {[[i, i + 1] for i in range(60)]}\n"),
    "module under another name": ("S07", "import random\nR = random\nX = R._os.getpid()\n"),
    "module in a tuple": ("S07", "import json, random\nA, B = random, json\n"),
    "module handed to a function": ("S07", "import random\ndef f(self):\n    return self._os\nf(random)\n"),
    "module as a default": ("S07", "import random\ndef f(x=random):\n    return x\n"),
    "module behind a module": ("S07", "import numpy\nX = numpy.linalg._umath_linalg\n"),
    "unsafe module behind a module": ("S06", "import json\nX = json.decoder.codecs\n"),
    "data set": ("S11", "# tuned for EgoLife-QA\n"),
    "gold field": ("S11", "def f(q):\n    return q.target_time\n"),
    "gold text": ("S11", "KEY = 'answer_key'\n"),
    "long line": ("S09", f"X = 1{' ' * 200}# far away\n"),
    "long function": ("S09", "def f(x):\n" + "    x = x + 1\n" * 130),
    "branches": ("S09", "def f(x):\n" + "    if x: x = 0\n" * 40),
    "deep": ("S09", "X = " + "[" * 60 + "]" * 60 + "\n"),
    "does not parse": ("S04", "def f(:\n"),
    "very deep": ("S04", "X = " + "(" * 5000 + ")" * 5000 + "\n"),
}


@pytest.mark.parametrize("name", ADDED)
def test_each_attack_is_found_by_its_rule(name: str) -> None:
    rule, code = ADDED[name]
    verdict = review(GOOD + "\n\n" + code)
    assert verdict.decision is Decision.REJECT
    assert rule in rules(verdict), [f.message for f in verdict.findings]
    found = [f for f in verdict.findings if f.rule == rule]
    first_added = GOOD.count("\n") + 1
    assert all(f.path == "policy.py" and (f.line == 0 or f.line >= first_added) for f in found)
    assert all("\n" not in f.message and f.message.isprintable() and f.message.isascii() for f in verdict.findings)


HIDDEN = {
    "right-to-left override": "# \u202e",
    "isolate": "x = 'a\u2066b'",
    "zero width space": "x = 'a\u200bb'",
    "zero width joiner": "# \u200d",
    "tag block": "# \U000e0041\U000e0042",
    "variation selector": "# \ufe01",
    "supplementary variation selector": "# \U000e0101",
    "soft hyphen": "# \u00ad",
    "byte order mark inside": "# \ufeff",
    "private use": "# \ue000",
    "line separator": "# \u2028x = 1",
    "hangul filler": "# \u3164",
    "escape": "# \x1b[2J",
    "carriage return": "# shown\rx = 1",
    "form feed": "\fx = 1",
    "C1": "# \x9b",
    "unassigned": "# \U0003fffe",
}


@pytest.mark.parametrize("name", HIDDEN)
def test_hidden_characters_are_rejected_and_shown_as_escapes(name: str) -> None:
    verdict = review(GOOD + HIDDEN[name] + "\n")
    found = [f for f in verdict.findings if f.rule == "S03"]
    assert found and found[0].line == GOOD.count("\n") + 1
    assert "\\" in found[0].message and found[0].message.isascii()


def test_identifiers_are_ascii() -> None:
    assert "S03" in rules(review(GOOD + "\u0430 = 1\n"))  # Cyrillic a
    assert "S03" in rules(review(GOOD + "\uff45\uff56\uff41\uff4c = 1\n"))  # full width, folds to eval
    assert review(GOOD + "x = 'caf\u00e9'\n").decision is Decision.APPROVE


@pytest.mark.parametrize(
    "head",
    [
        b"# -*- coding: utf-7 -*-\n",
        b"# vim: set fileencoding=unicode_escape :\n",
        b"#!/usr/bin/python\n# coding=latin-1\n",
        b"\n# coding: rot13\n",
        b"# coding: raw_unicode_escape\n",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b"# \xff\n",
        b"# \x00\n",
        b"# \xed\xa0\x80\n",  # a surrogate
    ],
)
def test_the_text_parsed_is_the_text_compiled(head: bytes) -> None:
    assert rules(review(head + GOOD.encode())) == {"S02"}


def test_plain_utf8_cookie_is_allowed() -> None:
    assert review("# -*- coding: utf-8 -*-\n" + GOOD).decision is Decision.APPROVE
    assert review("#\n#\n# coding: latin-1 is only a remark in the third line\n" + GOOD).decision is Decision.APPROVE


@pytest.mark.parametrize(
    "name",
    [
        "policy.so",
        "policy.pyc",
        "sitecustomize.pth",
        "../policy.py",
        "/etc/x.py",
        "a/b.py",
        "Json.py",
        "__init__.py",
        ".gitattributes",
    ],
)
def test_odd_files_are_rejected_before_anything_is_parsed(name: str) -> None:
    verdict = check({"policy.py": GOOD.encode(), name: b"x"}, CONSTITUTION, DATA)
    assert rules(verdict) == {"S01"}


def test_sizes_are_capped_before_anything_is_parsed() -> None:
    assert rules(review(GOOD + "#" * 60_000)) == {"S01"}
    many = {"policy.py": GOOD.encode()} | {f"f{i}.py": b"" for i in range(20)}
    assert rules(check(many, CONSTITUTION, DATA)) == {"S01"}
    assert rules(check({}, CONSTITUTION, DATA)) == {"S01"}


def test_own_modules_may_be_imported() -> None:
    code = "from .helper import score\nfrom . import helper\n" + GOOD.replace(
        "from __future__ import annotations\n", ""
    )
    assert review(code, helper__py="def score(x):\n    return x\n").decision is Decision.APPROVE
    assert "S05" in rules(review(code))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class Policy", "class Other"),
        ("    def settle(self):\n        pass\n", ""),
        ("def observe(self, windows)", "def observe(self)"),
        ("def answer(self, query)", "def answer(self, query, gold_index)"),
        ("    def answer", "    @staticmethod\n    def answer"),
    ],
)
def test_the_contract_is_checked(old: str, new: str) -> None:
    assert "S10" in rules(review(GOOD.replace(old, new)))


# ---------------------------------------------------------------- words of the data

QUESTIONS = [
    "When was the last time I used the copper kettle?",
    "When was the last time I used the green ladder?",
    "When was the last time I used the small drill?",
    "Who walked with me to the harbour before breakfast?",
]
DATA = data_words(["Mirela Brandt", "Tadeusz"], ["lifelog-0001", "17"], QUESTIONS)


@pytest.mark.parametrize(
    "code",
    [
        "x = 'Mirela'\n",
        "# ask mirela\n",
        "def ask_tadeusz(): pass\n",
        "askTadeusz = 1\n",
        "BRANDT = 1\n",
        "x = 'lifelog-0001'\n",
        "x = 'walked with me to the harbour'\n",
        "x = ('walked', 'with', 'me', 'to', 'the')\n",
        "# I used the copper kettle\n",
    ],
)
def test_names_ids_and_phrases_of_the_development_data(code: str) -> None:
    verdict = check({"policy.py": (GOOD + code).encode()}, CONSTITUTION, DATA)
    assert rules(verdict) == {"S11"}
    assert verdict.findings[0].line == GOOD.count("\n") + 1


def test_forms_of_question_are_no_phrases_of_the_data() -> None:
    code = GOOD + "TRIGGER = 'when was the last time'\nX = 17\nLAST = 'I used the'\n"
    assert check({"policy.py": code.encode()}, CONSTITUTION, DATA).decision is Decision.APPROVE


def test_json_files_are_held_to_the_same_rules() -> None:
    assert rules(review(GOOD, table__json='{"a": "ABDACBDACBAD"}')) == {"S13"}
    assert rules(review(GOOD, table__json=str(list(range(200))))) == {"S13"}
    assert rules(review(GOOD, table__json="{")) == {"S04"}
    assert rules(review(GOOD, table__json="[" * 20_000 + "]" * 20_000)) == {"S04"}
    assert rules(review(GOOD, table__json="[" * 900 + "]" * 900)) == {"S09"}  # it loads, if not everywhere
    assert rules(review(GOOD, table__json='{"a":' * 60 + "1" + "}" * 60)) == {"S09"}
    assert review(GOOD, weights__json='{"event": 3.0, "people": 2.5}').decision is Decision.APPROVE


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300))
def test_never_raises_for_any_bytes(content: bytes) -> None:
    check({"policy.py": content, "data.json": content}, CONSTITUTION, DATA)


@settings(max_examples=150, deadline=None)
@given(st.text(alphabet=st.sampled_from("()[]{}:;,.='\"\\\n\t #@defclassimportx0_"), max_size=200))
def test_never_raises_for_code_like_text(text: str) -> None:
    verdict = check({"policy.py": text.encode()}, CONSTITUTION, DATA)
    assert all(f.message.isprintable() for f in verdict.findings)
