"""S09: sizes that keep a candidate readable and within the reviewer's window."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from harness.gate.interface import Finding
from harness.gate.rules import StaticLimits

LOOPS = (ast.For, ast.AsyncFor, ast.While, ast.comprehension)
BRANCHES = (ast.If, ast.IfExp, ast.ExceptHandler, ast.Assert, ast.match_case, *LOOPS)


def check_lines(path: str, text: str, limits: StaticLimits) -> Iterator[Finding]:
    """One finding for each line that is too long, the first ten of them."""
    long = [(n, len(line)) for n, line in enumerate(text.split("\n"), 1) if len(line) > limits.line_length]
    for number, length in long[:10]:
        message = f"{length} characters in one line; at most {limits.line_length}"
        yield Finding(rule="S09", path=path, line=number, message=message)


def check_size(path: str, tree: ast.Module, limits: StaticLimits) -> Iterator[Finding]:
    """Nodes and depth of the module; length and complexity of each function."""
    nodes, depth = _measure(tree)
    if nodes > limits.nodes:
        yield Finding(rule="S09", path=path, message=f"{nodes} syntax nodes; at most {limits.nodes}")
    if depth > limits.depth:
        yield Finding(rule="S09", path=path, message=f"nesting of {depth}; at most {limits.depth}")
    if nodes > limits.nodes:
        return
    for node in ast.walk(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        length = (node.end_lineno or node.lineno) - node.lineno + 1
        if length > limits.function_lines:
            message = f"{node.name} has {length} lines; at most {limits.function_lines}"
            yield Finding(rule="S09", path=path, line=node.lineno, message=message)
        complexity = cyclomatic(node)
        if complexity > limits.complexity:
            message = f"{node.name} has a complexity of {complexity}; at most {limits.complexity}"
            yield Finding(rule="S09", path=path, line=node.lineno, message=message)


def cyclomatic(function: ast.AST) -> int:
    """McCabe's number: branches plus one, each further operand of a Boolean operator a branch."""
    total = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
    return total


def _measure(tree: ast.AST) -> tuple[int, int]:
    nodes, deepest = 0, 0
    pending: list[tuple[ast.AST, int]] = [(tree, 0)]
    while pending:
        node, depth = pending.pop()
        nodes += 1
        deepest = max(deepest, depth)
        pending.extend((child, depth + 1) for child in ast.iter_child_nodes(node))
    return nodes, deepest


def check_nesting(path: str, value: object, limits: StaticLimits) -> Iterator[Finding]:
    """A finding for a JSON value nested so deep that not everything which reads it later could."""
    pending, depth = [value], 0
    while pending and depth <= limits.depth:
        depth += 1
        inner = [item.values() if isinstance(item, dict) else item for item in pending if isinstance(item, dict | list)]
        pending = [item for items in inner for item in items]
    if pending:
        yield Finding(rule="S09", path=path, message=f"nesting of more than {limits.depth}")
