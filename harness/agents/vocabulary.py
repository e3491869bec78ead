"""What a policy can name: the modules of the contract and the blocks, their definitions, the attributes of what they
return. Read from their source; used to tell an author what there is."""

from __future__ import annotations

import ast
import collections
import datetime
import difflib
import importlib
import re
import symtable
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

import numpy as np

import policies.blocks
import policies.contract

TYPES = (
    str, bytes, int, float, list, dict, set, frozenset, tuple, Exception, np.ndarray, re.Match, re.Pattern,
    collections.Counter, collections.deque, collections.defaultdict, datetime.datetime, datetime.timedelta,
)  # fmt: skip
"""What an expression of a policy can be beside objects of the contract and the blocks."""
ROOT = "policies.blocks"


@cache
def sources() -> Mapping[str, str]:
    """Source text by dotted name of the contract and of every block."""
    found = {f"{ROOT}.{p.stem}": p.read_text("utf-8") for p in sorted(Path(policies.blocks.__path__[0]).glob("*.py"))}
    found.pop(f"{ROOT}.__init__", None)
    return {**found, "policies.contract": Path(policies.contract.__file__).read_text("utf-8")}


@cache
def names_of(module: str) -> frozenset[str] | None:
    """Names bound at the top of a module of this project; None where there is no such module."""
    if module in ("policies", ROOT):
        return frozenset(name.rsplit(".", 1)[1] for name in sources())
    source = sources().get(module)
    return None if source is None else frozenset(bound_at_top(source))


def bound_at_top(source: str) -> Iterator[str]:
    """Names that a module binds. ``source`` must compile."""
    for symbol in symtable.symtable(source, "module", "exec").get_symbols():
        if symbol.is_assigned() or symbol.is_imported() or symbol.is_namespace():
            yield symbol.get_name()


@cache
def function_of(module: str, name: str) -> ast.FunctionDef | None:
    """The definition of a block that is a plain function."""
    for node in ast.parse(sources().get(module, "")).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return node
    return None


@cache
def holder_of(name: str) -> str:
    """The module that defines or else imports ``name``; empty where none does."""
    holding = [module for module in sources() if name in (names_of(module) or ())]
    return next((m for m in holding if function_of(m, name)), next(iter(holding), ""))


@cache
def fields_of(name: str) -> tuple[str, ...]:
    """Fields of a dataclass of the contract, for example of ``Query``; empty where there is none of that name."""
    return tuple(getattr(getattr(policies.contract, name, None), "__dataclass_fields__", ()))


@cache
def attributes() -> frozenset[str]:
    """Every public attribute that an object of a policy can have."""
    found = {name for kind in TYPES for name in dir(kind)}
    for source in sources().values():
        found |= attributes_in(ast.parse(source))
    return frozenset(name for name in found if not name.startswith("_"))


def attributes_in(tree: ast.Module) -> set[str]:
    """Attributes that the classes of a module define, and all that its code reads."""
    found = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            found |= class_level(node)
    return found


def class_level(node: ast.ClassDef) -> set[str]:
    """Methods and fields that a class body names."""
    found: set[str] = set()
    for item in node.body:
        if isinstance(item, ast.FunctionDef | ast.ClassDef):
            found.add(item.name)
        elif isinstance(item, ast.Assign | ast.AnnAssign):
            named = item.targets if isinstance(item, ast.Assign) else [item.target]
            found |= {target.id for target in named if isinstance(target, ast.Name)}
    return found


@cache
def library_has(module: str, name: str) -> bool:
    """Whether a module of the standard library or numpy, all of them loaded here already, has the attribute."""
    return hasattr(importlib.import_module(module), name)


LIBRARY = frozenset(
    {"collections", "heapq", "itertools", "math", "numpy", "operator", "re", "statistics", "functools", "bisect"}
)
"""Modules whose attributes are looked up."""


def near(name: str, there: Iterable[str], most: int = 14) -> str:
    """What to write instead of ``name``: the names most like it first."""
    listed = sorted(item for item in there if not item.startswith("_"))
    first = difflib.get_close_matches(name, listed, n=3, cutoff=0.6)
    shown = list(dict.fromkeys([*first, *listed]))[:most]
    return f"there are {', '.join(shown)}" if shown else "there is nothing to choose from"
