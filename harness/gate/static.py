"""The first gate stage: deterministic rules over the reviewed bytes. Nothing of the candidate is executed.

A table of checks; every finding names rule, path and line. Whatever slips through meets the sandbox.
"""

from __future__ import annotations

import ast
import json
import time
import warnings
from collections.abc import Iterator, Mapping

from harness.gate.interface import Decision, Finding, StageVerdict
from harness.gate.keys import check_keys
from harness.gate.literals import DataWords, check_json, check_literals, check_text, check_words
from harness.gate.rules import StaticLimits
from harness.gate.size import check_lines, check_nesting, check_size
from harness.gate.source import check_characters, check_files, decode, escape
from harness.gate.syntax import check_syntax, imported_names, module
from harness.gate.tables import check_package
from principles.h0 import Constitution, StaticRules

MOST_FINDINGS = 50
"""Findings kept in a verdict; the rest are counted in its reason."""


def check(files: Mapping[str, bytes], constitution: Constitution, data: DataWords) -> StageVerdict:
    """The verdict of the static rules on a package.

    ``files``: the candidate's bytes by path. ``constitution``: its parameters. ``data``: words of the development
    split that may not occur in the candidate.
    Never raises for any content of ``files``.
    """
    started = time.perf_counter()
    limits = StaticLimits(**constitution.static.limits)
    findings = list(_findings(files, limits, constitution.static, data))
    findings.sort(key=lambda f: (f.path, f.line, f.rule, f.message))
    return StageVerdict(
        stage="static",
        decision=Decision.REJECT if findings else Decision.APPROVE,
        findings=tuple(findings[:MOST_FINDINGS]),
        reason=_reason(findings),
        seconds=time.perf_counter() - started,
    )


def _reason(findings: list[Finding]) -> str:
    if not findings:
        return ""
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return f"{first.rule} {first.path}:{first.line} {first.message}{more}"


def _findings(
    files: Mapping[str, bytes], limits: StaticLimits, allowed: StaticRules, data: DataWords
) -> Iterator[Finding]:
    file_findings = list(check_files(files, limits))
    yield from file_findings
    if file_findings:  # too big or oddly named: nothing of it is parsed
        return
    trees: dict[str, ast.Module] = {}
    for path in sorted(files):
        yield from _file(path, files[path], data, limits, allowed, trees)
    siblings = {path.removesuffix(".py"): frozenset[str]() for path in files if path.endswith(".py")}
    siblings |= {path.removesuffix(".py"): imported_names(tree) for path, tree in trees.items()}
    for path, tree in trees.items():
        yield from check_syntax(module(path, tree, allowed, siblings))
        yield from check_literals(path, tree, limits)
        yield from check_text(path, tree, data, allowed)
    yield from check_keys(trees)
    yield from check_package(trees, limits)


def _file(
    path: str,
    content: bytes,
    data: DataWords,
    limits: StaticLimits,
    allowed: StaticRules,
    trees: dict[str, ast.Module],
) -> Iterator[Finding]:
    """Rules over one file's text; a Python file that parses and is small enough to be walked goes into ``trees``."""
    text, broken = decode(path, content)
    yield from broken
    if broken:
        return
    yield from check_characters(path, text)
    yield from check_words(path, text, data, allowed)
    if path.endswith(".json"):
        yield from _json(path, text, data, limits)
        return
    yield from check_lines(path, text, limits)
    tree, error = parse(path, text)
    if tree is None:
        yield error or Finding(rule="S04", path=path, message="does not parse")
        return
    sizes = list(check_size(path, tree, limits))
    yield from sizes
    if not any(f.line == 0 for f in sizes):  # else the tree itself is too big or too deep to look at node by node
        trees[path] = tree


def parse(path: str, text: str) -> tuple[ast.Module | None, Finding | None]:
    """The syntax tree, or the finding that says where it does not parse."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text, filename=path), None
    except SyntaxError as error:
        message = f"does not parse: {escape(error.msg or 'invalid syntax', 120)}"
        return None, Finding(rule="S04", path=path, line=error.lineno or 0, message=message)
    except (ValueError, RecursionError, MemoryError) as error:
        return None, Finding(rule="S04", path=path, message=f"does not parse: {type(error).__name__}")


def _json(path: str, text: str, data: DataWords, limits: StaticLimits) -> Iterator[Finding]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        yield Finding(rule="S04", path=path, message=f"not JSON: {escape(str(error), 120)}")
        return
    yield from check_nesting(path, value, limits)
    yield from check_json(path, value, data, limits)
