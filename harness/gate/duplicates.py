"""The second gate stage: has this been tried before? By tree id, by normalised syntax tree, by behaviour, by idea.

A repeat is not wrong, it is a waste: the finding names the earlier attempt, so that its result can be read instead.
"""

from __future__ import annotations

import ast
import hashlib
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from harness.gate.interface import Decision, Finding, StageVerdict
from harness.gate.static import parse
from meta_memory.memory import Repeat

INLINED_NODES = 400
"""Syntax nodes of a module constant that is put where it is used: the largest table that S13 allows has fewer."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """What an attempt is recognised by."""

    iteration: int
    tree: str
    """Git tree id."""
    syntax: str
    """``syntax_digest`` of its files."""
    behaviour: str = ""
    """Behaviour digest of its smoke run; empty where it has not run."""


def check(candidate: Fingerprint, earlier: Sequence[Fingerprint], repeat: Repeat | None = None) -> StageVerdict:
    """Compare a candidate with earlier attempts; the lowest-numbered match is named.

    ``repeat`` is the failed attempt that meta-memory finds to be the same idea, where it finds one. Called before the
    smoke run (without a behaviour) and after it (with one).
    """
    started = time.perf_counter()
    others = [e for e in sorted(earlier, key=lambda e: e.iteration) if e.iteration != candidate.iteration]
    finding = next((f for e in others if (f := _match(candidate, e))), None) or (_retold(repeat) if repeat else None)
    return StageVerdict(
        stage="duplicates",
        decision=Decision.REJECT if finding else Decision.APPROVE,
        findings=(finding,) if finding else (),
        reason=finding.message if finding else "",
        seconds=time.perf_counter() - started,
    )


def _match(candidate: Fingerprint, earlier: Fingerprint) -> Finding | None:
    if candidate.tree == earlier.tree:
        return Finding(rule="D01", message=f"the same files as attempt {earlier.iteration}")
    if candidate.syntax == earlier.syntax:
        message = f"the same code, but for names, comments and order, as attempt {earlier.iteration}"
        return Finding(rule="D02", message=message)
    if candidate.behaviour and candidate.behaviour == earlier.behaviour:
        message = f"the same answers and evidence on the smoke sample as attempt {earlier.iteration}"
        return Finding(rule="D03", message=message)
    return None


def _retold(repeat: Repeat) -> Finding:
    alike = repeat.likeness
    message = (
        f"the idea of attempt {repeat.attempt.label} in other words, from the same parent ({100 * alike.done:.0f} % of "
        f"the change and {100 * alike.said:.0f} % of the words alike); it was rejected at {repeat.attempt.outcome}"
    )
    return Finding(rule="D04", message=message)


# ---------------------------------------------------------------- the normalised syntax tree


def syntax_digest(files: Mapping[str, bytes]) -> str:
    """sha256 over the normalised syntax trees of a package (files that passed the static rules).

    Comments, docstrings, annotations and layout are dropped; local names are numbered in order of appearance;
    module constants stand where they are used, so neither their names nor their order count; import order and the
    order of top-level definitions do not count either.
    """
    digest = hashlib.sha256()
    for path in sorted(files):
        digest.update(path.encode() + b"\0")
        text = files[path].decode("utf-8")
        digest.update(normalised(text).encode() if path.endswith(".py") else _canonical_json(text).encode())
        digest.update(b"\0")
    return digest.hexdigest()


def _canonical_json(text: str) -> str:
    return json.dumps(json.loads(text), sort_keys=True)


def normalised(source: str) -> str:
    """The canonical text of one module's syntax tree."""
    tree, error = parse("a module", source)
    if tree is None:
        raise ValueError(error.message if error else "does not parse")
    statements = []
    for plain in plain_statements(tree):
        if isinstance(plain, ast.FunctionDef):
            _number_locals(plain)
        for inner in ast.walk(plain):
            if isinstance(inner, ast.ClassDef):
                for method in inner.body:
                    if isinstance(method, ast.FunctionDef):
                        _number_locals(method)
        statements.append(ast.dump(plain))
    return "\n".join(sorted(statements))


def plain_statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """The statements of a module that do something, without docstrings and annotations; module constants stand where
    they are used. The tree is used up."""
    constants = _module_constants(tree)
    for node in tree.body:
        if _is_docstring(node) or _constant_name(node) in constants:
            continue
        if isinstance(node, ast.ImportFrom) and node.module == "__future__":
            continue
        yield _Plain(constants).visit(node)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _constant_name(node: ast.AST) -> str:
    if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    if isinstance(node, ast.AnnAssign) and node.value is not None and isinstance(node.target, ast.Name):
        return node.target.id
    return ""


def _module_constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Module names bound once, to an expression of constants alone."""
    found: dict[str, ast.expr] = {}
    bound: list[str] = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
    for node in tree.body:
        name = _constant_name(node)
        if not name or bound.count(name) != 1 or not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        if not any(isinstance(n, ast.Name | ast.Call | ast.Lambda | ast.NamedExpr) for n in ast.walk(node.value)):
            found[name] = _short(node.value)
    return found


def _short(value: ast.expr) -> ast.expr:
    """A constant as it is put where it is used; a large one as a digest, or code that uses it often would explode."""
    if sum(1 for _ in ast.walk(value)) <= INLINED_NODES:
        return value
    return ast.Constant(value=hashlib.sha256(ast.dump(value).encode()).hexdigest())


class _Plain(ast.NodeTransformer):
    """Drop docstrings and annotations; put module constants where they are used."""

    def __init__(self, constants: Mapping[str, ast.expr]) -> None:
        self.constants = constants

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """A constant's value for its name."""
        return self.constants.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        """An argument without its annotation."""
        return ast.arg(arg=node.arg)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        """A plain assignment in function bodies; fields of a class keep their order and default."""
        self.generic_visit(node)
        if node.value is None:
            return ast.Expr(node.target)
        return ast.Assign(targets=[node.target], value=node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function without docstring and return annotation."""
        node.returns = None
        node.body = _without_docstring(node.body)
        self.generic_visit(node)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        """A class without docstring."""
        node.body = _without_docstring(node.body)
        self.generic_visit(node)
        return node


def _without_docstring(body: list[ast.stmt]) -> list[ast.stmt]:
    kept = body[1:] if body and _is_docstring(body[0]) else body
    return kept or [ast.Pass()]


def _number_locals(function: ast.FunctionDef) -> None:
    """Rename every name bound in the function, nested ones included, to its number of appearance."""
    bound: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            bound.add(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.FunctionDef) and node.name and node is not function:
            bound.add(node.name)
    numbers: dict[str, str] = {}

    def number(name: str) -> str:
        return numbers.setdefault(name, f"v{len(numbers)}") if name in bound else name

    for node in _in_order(function):
        if isinstance(node, ast.arg):
            node.arg = number(node.arg)
        elif isinstance(node, ast.Name):
            node.id = number(node.id)
        elif isinstance(node, ast.ExceptHandler | ast.FunctionDef) and node.name and node is not function:
            node.name = number(node.name)


def _in_order(root: ast.AST) -> list[ast.AST]:
    """Nodes depth first, in source order."""
    pending, ordered = [root], []
    while pending:
        node = pending.pop()
        ordered.append(node)
        pending.extend(reversed(list(ast.iter_child_nodes(node))))
    return ordered
