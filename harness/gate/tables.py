"""Rules over a whole package at once: tables that are split up (S13), text and keys that are computed (S12, S15)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from harness.gate.interface import Finding
from harness.gate.literals import docstrings, identifier
from harness.gate.rules import StaticLimits
from harness.gate.source import escape

CODED_NAME = re.compile(r"(?=[A-Za-z0-9]{10,})[A-Za-z]*(?:\d+[A-Za-z]+){2,}\d*")
"""A part of a name in which letters and digits change places."""
LETTER = re.compile(r"[A-Ha-h]")
FIRST_LETTERS = (65, 97)
"""Where ``chr`` may count from: the choices' letters."""


def check_package(trees: Mapping[str, ast.Module], limits: StaticLimits) -> Iterator[Finding]:
    """Choice letters and large numbers of all files together; then each file's computed text and its names."""
    letters: list[tuple[str, int, int]] = []
    numbers: dict[float, tuple[str, int]] = {}
    for path, tree in trees.items():
        skipped = docstrings(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and id(node) not in skipped:
                if count := _answer_letters(node.value):
                    letters.append((path, node.lineno, count))
                if isinstance(node.value, int | float) and _odd(node.value, limits.round_below):
                    numbers.setdefault(node.value, (path, node.lineno))
            yield from _computed(path, node)
            yield from _names(path, node, limits)
    total = sum(count for _, _, count in letters)
    if total > limits.letters:
        message = f"{total} choice letters in the package; at most {limits.letters}"
        yield Finding(rule="S13", path=letters[0][0], line=letters[0][1], message=message)
    if len(numbers) > limits.numbers:
        path, line = next(iter(numbers.values()))
        message = f"{len(numbers)} different large numbers in the package; at most {limits.numbers}"
        yield Finding(rule="S13", path=path, line=line, message=message)


def _answer_letters(value: object) -> int:
    """How many choice letters a string is, where it is nothing else: one letter, or letters that repeat."""
    if not isinstance(value, str) or not re.fullmatch(r"(?:[A-Ha-h][\s,;|]*)+", value):
        return 0
    found = LETTER.findall(value)
    if len(found) == 1:
        return int(value.isupper())
    return len(found) if len(set(found)) < len(found) and not value.islower() else 0


def _odd(value: float, round_below: int) -> bool:
    """A number that says more than a size: large, and not a multiple of ten."""
    return not isinstance(value, bool) and abs(value) >= round_below and value % 10 != 0


# ---------------------------------------------------------------- text and keys that are computed


def _computed(path: str, node: ast.AST) -> Iterator[Finding]:
    if not isinstance(node, ast.Call):
        return
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    constants = [argument.value for argument in node.args if isinstance(argument, ast.Constant)]
    if name == "ord" and not constants:
        yield Finding(rule="S15", path=path, line=node.lineno, message="ord() of what was read makes a check sum")
    if name in ("bytes", "bytearray") or method in ("encode", "from_bytes", "frombuffer", "fromhex", "tobytes"):
        yield Finding(rule="S15", path=path, line=node.lineno, message=f"{name or method}() makes a check sum")
    if name == "chr" and not _counts_letters(node):
        yield Finding(rule="S12", path=path, line=node.lineno, message="chr() makes text from numbers")
    if method in ("decode", "translate") and not _plain_translation(node):
        yield Finding(rule="S12", path=path, line=node.lineno, message=f"{method}() makes other text of a text")
    if name == "int" and (len(node.args) > 1 or any(k.arg == "base" for k in node.keywords)):
        yield Finding(rule="S12", path=path, line=node.lineno, message="int() with a base reads packed numbers")


def _counts_letters(node: ast.Call) -> bool:
    """``chr(ord("A") + place)`` or ``chr(65 + place)``: a letter by its place."""
    if not node.args or not isinstance(node.args[0], ast.BinOp):
        return False
    first = node.args[0].left
    if isinstance(first, ast.Call) and isinstance(first.func, ast.Name) and first.func.id == "ord":
        return bool(first.args) and isinstance(first.args[0], ast.Constant) and first.args[0].value in ("A", "a")
    return isinstance(first, ast.Constant) and first.value in FIRST_LETTERS


def _plain_translation(node: ast.Call) -> bool:
    """``translate(str.maketrans("", "", dropped))`` and the like drop characters, or change them for blanks."""
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "translate" or len(node.args) != 1:
        return False
    made = node.args[0]
    while isinstance(made, ast.Call) and isinstance(made.func, ast.Attribute) and made.func.attr == "maketrans":
        if len(made.args) == 3:
            return all(isinstance(a, ast.Constant) and a.value == "" for a in made.args[:2])
        return False
    return isinstance(made, ast.Name)


def _names(path: str, node: ast.AST, limits: StaticLimits) -> Iterator[Finding]:
    """Identifiers that carry data."""
    name = identifier(node)
    if len(name) > limits.name_chars:
        message = f"a name of {len(name)} characters; at most {limits.name_chars}"
        yield Finding(rule="S12", path=path, line=getattr(node, "lineno", 0), message=message)
    elif CODED_NAME.search(name):
        yield Finding(
            rule="S12", path=path, line=getattr(node, "lineno", 0), message=f"a name that is data: {escape(name, 60)}"
        )
