"""What a candidate changes of its parent, as counts of pieces of syntax: the same however it is named and laid out.

A piece is a node of the normalised syntax tree with one of its children. What the package itself names (functions,
arguments, variables, attributes of its objects) shows as ``_``, what it takes from the building blocks as ``@`` and
the name at home; other names, attributes and constants show as they are, module constants where they are used. Order
does not count. Two candidates that do the same thing to one parent therefore change nearly the same pieces, whatever
they call it.
"""

from __future__ import annotations

import ast
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from harness.gate.duplicates import plain_statements
from harness.gate.static import parse

LABEL_CHARS = 60
"""Longer constants are kept as a digest."""
SKIPPED = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Import, ast.ImportFrom)
"""Nodes that are part of their parent's label, or tell nothing that their use does not tell."""


def change(files: Mapping[str, bytes], parent: Mapping[str, bytes]) -> dict[str, int]:
    """Pieces that are more (positive) or fewer (negative) than in the parent; files that passed the static rules."""
    difference = pieces(files)
    difference.subtract(pieces(parent))
    return {piece: count for piece, count in sorted(difference.items()) if count}


def pieces(files: Mapping[str, bytes]) -> Counter[str]:
    """How often each piece of syntax occurs in a package."""
    found: Counter[str] = Counter()
    trees = {}
    for path, content in files.items():
        text = content.decode("utf-8")
        if path.endswith(".py"):
            trees[path] = _parsed(text)
        else:
            found.update(f"json>{leaf}" for leaf in _leaves(json.loads(text)))
    names = frozenset(name for tree in trees.values() for name in _names(tree))
    attributes = frozenset(name for tree in trees.values() for name in _attributes(tree))
    for tree in trees.values():
        imported = dict(_imported(tree))
        label = _Labels(names, attributes, imported)
        for statement in plain_statements(tree):
            found[f"module>{label.of(statement)}"] += 1
            found.update(_edges(statement, label))
    return found


def _parsed(text: str) -> ast.Module:
    tree, error = parse("a module", text)
    if tree is None:
        raise ValueError(error.message if error else "does not parse")
    return tree


def _edges(root: ast.AST, label: _Labels) -> Iterator[str]:
    for node in ast.walk(root):
        if isinstance(node, SKIPPED):
            continue
        above = label.of(node)
        yield from (f"{above}>{label.of(c)}" for c in ast.iter_child_nodes(node) if not isinstance(c, SKIPPED))


def _names(tree: ast.Module) -> Iterator[str]:
    """Every plain name that the module itself gives to something."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.ExceptHandler):
            yield node.name or "_"
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id


def _attributes(tree: ast.Module) -> Iterator[str]:
    """Every attribute and method that the module gives to its own objects."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield inner.name
                elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                    yield inner.target.id


def _imported(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(name in the module, label) of everything imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            blocks = isinstance(node, ast.ImportFrom) and (node.module or "").startswith("policies.blocks")
            yield from ((a.asname or a.name, f"@{a.name}" if blocks else a.name) for a in node.names)


class _Labels:
    """What a node is called in a piece."""

    def __init__(self, names: frozenset[str], attributes: frozenset[str], imported: Mapping[str, str]) -> None:
        self.names, self.attributes, self.imported = names, attributes, imported

    def of(self, node: ast.AST) -> str:
        """The label of one node."""
        match node:
            case ast.Name():
                if node.id in self.imported:
                    return self.imported[node.id]
                return "_" if node.id in self.names else node.id
            case ast.Attribute():
                return "._" if node.attr in self.attributes else f".{node.attr}"
            case ast.keyword():
                return "_=" if node.arg in self.names or node.arg in self.attributes else f"{node.arg}="
            case ast.Constant():
                return _constant(node.value)
            case ast.BinOp() | ast.UnaryOp() | ast.BoolOp() | ast.AugAssign():
                return f"{type(node).__name__} {type(node.op).__name__}"
            case ast.Compare():
                return " ".join(["Compare", *(type(op).__name__ for op in node.ops)])
            case _:
                return type(node).__name__


def _constant(value: Any) -> str:
    """A number as it counts (8 and 8.0 are one), anything else as written."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    text = f"{value:g}" if number and abs(value) < 10**6 else repr(value)
    return text if len(text) <= LABEL_CHARS else hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _leaves(value: Any) -> Iterator[str]:
    """Each plain value with the key nearest to it; without recursion, for a candidate's file may nest deeply."""
    pending = [("", value)]
    while pending:
        key, item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item.items())
        elif isinstance(item, list):
            pending.extend((key, inner) for inner in item)
        else:
            yield f"{key[:LABEL_CHARS]}={_constant(item)}"
