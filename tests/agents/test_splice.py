"""The splice: only the named function's body changes, everything else stays byte for byte."""

from __future__ import annotations

import ast
import textwrap

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents.splice import SpliceError, arguments, excerpt, splice, targets
from policies import library

SOURCE = '''"""Module."""

import re  # kept

LIMIT = 3


@staticmethod
def helper(a, b=2, *rest, key=None, **more):  # comment stays
    # a comment of the body
    return a


class Policy:
    """Doc."""

    def __init__(self, setup):
        self.x = 1

    def answer(
        self,
        query: "Query",
    ) -> "Answer":  # signature comment
        """What it does."""
        text = """
    keep me
"""
        return text

    def one(self): return 1

    def settle(self):
        pass
# tail
'''


def outside(source: str, name: str) -> tuple[str, str]:
    (found,) = [t for t in targets({"policy.py": source}) if t.name == name]
    before, _, after = source.partition(found.source)
    return before, after


@pytest.mark.parametrize("name", ["helper", "Policy.__init__", "Policy.answer", "Policy.one", "Policy.settle"])
@pytest.mark.parametrize("body", ["return 7", "x = 1\nif x:\n    return x\nreturn None"])
def test_everything_outside_the_function_stays(name: str, body: str) -> None:
    result = splice(SOURCE, name, body)
    assert outside(result, name) == outside(SOURCE, name)
    new = {t.name: t.source for t in targets({"policy.py": result})}
    old = {t.name: t.source for t in targets({"policy.py": SOURCE})}
    assert {k: v for k, v in new.items() if k != name} == {k: v for k, v in old.items() if k != name}
    ((_, node),) = [(n.name, n) for n in ast.walk(ast.parse(result)) if getattr(n, "name", "") == name.split(".")[-1]]
    wanted = ast.parse("def f():\n" + "\n".join("    " + line for line in body.split("\n"))).body[0]
    assert isinstance(node, ast.FunctionDef) and isinstance(wanted, ast.FunctionDef)
    statements = node.body[1:] if ast.get_docstring(node) else node.body
    assert [ast.dump(s) for s in statements] == [ast.dump(s) for s in wanted.body]


def test_docstring_comments_and_signature_stay() -> None:
    result = splice(SOURCE, "Policy.answer", "return 1")
    assert '    ) -> "Answer":  # signature comment\n        """What it does."""\n        return 1\n' in result
    assert "def helper(a, b=2, *rest, key=None, **more):  # comment stays\n    return 2\n" in splice(
        SOURCE, "helper", "return 2"
    )


REPLIES = {
    "body": "return 9",
    "indented body": "        return 9",
    "first line lost its indentation": "x = 9\n        return x",
    "def": "def answer(self, query):\n    return 9",
    "def with annotations": "def answer(self, query: Query) -> Answer:\n    return 9",
    "indented def": "    def answer(self, query):\n        return 9\n",
    "class": "class Policy:\n    def answer(self, query):\n        return 9\n",
    "class with docstring": 'class Policy:\n    """Doc."""\n    def answer(self, query):\n        return 9\n',
    "tabs": "def answer(self, query):\n\treturn 9\n",
    "several lines of arguments": "def answer(\n    self,\n    query,\n):\n    # why\n    return 9\n",
}


@pytest.mark.parametrize("name", REPLIES)
def test_forms_of_reply_that_are_taken(name: str) -> None:
    tree = ast.parse(splice(SOURCE, "Policy.answer", REPLIES[name]))
    (node,) = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "answer"]
    assert ast.unparse(node).count("9") == 1 and "keep me" not in ast.unparse(node)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        ("", "no code"),
        ("   \n\n", "no code"),
        ("pass", "does nothing"),
        ('"""Only words."""', "does nothing"),
        ("...", "does nothing"),
        ("return (", "line"),
        ("def answer(self):\n    return 1", "keep the arguments"),
        ("def answer(self, query, k):\n    return 1", "keep the arguments"),
        ("def answer(self, query):\n    return 1\n\ndef extra():\n    return 2", "alone"),
        ("import os\ndef answer(self, query):\n    return 1", "alone"),
        ("def answer(self, query):\n    return 1\ndef answer(self, query):\n    return 2", "alone"),
        ("def answer(self, query): return 1", "lines of its own"),
        ("def answer(self, query):\n  return 1\n return 2", "line"),
        ("return 1\n\nclass Policy:\n  pass\n)", "line"),
    ],
)
def test_replies_that_are_refused(reply: str, message: str) -> None:
    with pytest.raises(SpliceError, match=message):
        splice(SOURCE, "Policy.answer", reply)


def test_unknown_function() -> None:
    with pytest.raises(SpliceError, match="no function"):
        splice(SOURCE, "Policy.nothing", "return 1")


@pytest.mark.parametrize("name", library.names())
def test_every_function_of_the_library_survives_its_own_source(name: str) -> None:
    files = {path: data.decode() for path, data in library.load(name).items()}
    found = targets(files)
    assert any(t.name == "Policy.answer" for t in found)
    for target in found:
        if not target.trivial:
            again = splice(files[target.path], target.name, target.source)
            assert ast.dump(ast.parse(again)) == ast.dump(ast.parse(files[target.path]))
            assert arguments(target)[0] == "self" or "." not in target.name
        short = excerpt(files[target.path], target.name)
        ast.parse(short if "." in target.name else textwrap.dedent(short))
        assert target.source in short


PIECES = [
    "x = 1",
    "return x",
    "if x:",
    "    y = 2",
    "for i in range(3):",
    "    x += i",
    "# note",
    "",
    '"""text"""',
    "pass",
]
PIECES += ["def answer(self, query):", "class Policy:", "    return 1", ")", "x = '''", "'''", "yield x", "\treturn 2"]
LINES = st.lists(st.sampled_from(PIECES), max_size=8)


@settings(max_examples=300, deadline=None)
@given(LINES, st.sampled_from(["helper", "Policy.answer", "Policy.one"]))
def test_any_reply_either_fits_or_is_refused(lines: list[str], name: str) -> None:
    try:
        result = splice(SOURCE, name, "\n".join(lines))
    except SpliceError as error:
        assert "\n" not in str(error)
        return
    assert [t.name for t in targets({"p.py": result})] == [t.name for t in targets({"p.py": SOURCE})]
    assert outside(result, name) == outside(SOURCE, name)
