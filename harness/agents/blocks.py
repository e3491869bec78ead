"""What a prompt says of the building blocks: one line for each public function and class, read from their source."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import policies.blocks


@cache
def block_lines() -> tuple[tuple[str, str], ...]:
    """(name, line) of every public definition: how to import it, its signature, its docstring's first line."""
    found = []
    for path in sorted(Path(policies.blocks.__path__[0]).glob("*.py")):
        module = f"policies.blocks.{path.stem}"
        for node in ast.parse(path.read_text("utf-8")).body:
            if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
                continue
            summary = (ast.get_docstring(node) or "").split("\n")[0]
            found.append((node.name, f"{module}: {_signature(node)}  # {summary}"))
    return tuple(found)


def _signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    if isinstance(node, ast.ClassDef):
        return f"class {node.name}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"{node.name}({ast.unparse(node.args)}){returns}"


def pieces(code: str | None = None) -> tuple[str, ...]:
    """Lines of all blocks, or of those definitions that ``code`` names."""
    named = None if code is None else set(re.findall(r"\w+", code))
    return tuple(line for name, line in block_lines() if named is None or name in named)
