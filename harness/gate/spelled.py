"""Text that a module puts together from pieces: letters in a list, numbers of characters, sums, joins, reversals.

S11 reads it as if it had been written in one piece. What is computed in ways this does not follow is S12.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

LETTERS = 4
"""Pieces of one or two characters in a row from which they are read as one word."""
SPACED = re.compile(r"(?:[^\W\d_][\W\d_]+){3,}[^\W\d_](?![^\W\d_])")
"""Letters with something between them."""


@dataclass(frozen=True, slots=True)
class Assembled:
    """A text that is nowhere written in one piece."""

    text: str
    line: int
    run: bool = False
    """Made of single letters in a row: where a word begins and ends in it cannot be told."""


def assembled(nodes: Iterable[ast.AST]) -> Iterator[Assembled]:
    """Every sum, join and run of letters as one text, and every constant backwards."""
    inner: set[int] = set()
    for node in nodes:
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.BinOp | ast.JoinedStr | ast.Call) and id(node) not in inner:
            text = folded(node)
            if text:
                inner.update(id(part) for part in ast.walk(node))
                yield Assembled(text, line)
                yield Assembled(text[::-1], line)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set):
            for text in _runs(node.elts):
                yield Assembled(text, line, True)
                yield Assembled(text[::-1], line, True)
        elif isinstance(node, ast.Dict):
            for text in (*_runs(node.values), *_runs([key for key in node.keys if key is not None])):
                yield Assembled(text, line, True)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield Assembled(node.value[::-1], line)
            for match in SPACED.finditer(node.value):
                yield Assembled(re.sub(r"[\W\d_]", "", match[0]), line, True)


def folded(node: ast.AST) -> str:
    """The text of an expression of constants; empty where it is anything else."""
    match node:
        case ast.Constant(value=str() as value):
            return value
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            parts = [folded(left), folded(right)]
            return "".join(parts) if all(parts) else ""
        case ast.JoinedStr(values=values):
            parts = [folded(value) for value in values]
            return "".join(parts) if all(parts) else ""
        case ast.FormattedValue(value=value):
            return folded(value)
        case ast.Call(func=ast.Attribute(value=ast.Constant(value=str() as glue), attr="join"), args=[listed]):
            if isinstance(listed, ast.List | ast.Tuple | ast.Set):
                parts = [folded(item) for item in listed.elts]
                return glue.join(parts) if all(parts) else ""
    return ""


def _runs(elements: list[ast.expr]) -> Iterator[str]:
    """Neighbouring elements of a table that spell a word: short strings, or numbers of printable characters."""
    for make in (_letters, _character):
        run = ""
        count = 0
        for element in [*elements, ast.Constant(value=None)]:
            piece = make(element)
            if piece:
                run, count = run + piece, count + 1
                continue
            if count >= LETTERS:
                yield run
            run, count = "", 0


def _letters(node: ast.AST) -> str:
    value = folded(node)
    return value if len(value) <= 2 else ""


def _character(node: ast.AST) -> str:
    value = node.value if isinstance(node, ast.Constant) else None
    return chr(value) if isinstance(value, int) and not isinstance(value, bool) and 32 <= value < 127 else ""
