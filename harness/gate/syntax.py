"""Rules on the syntax tree: S05 imports, S06 names and calls, S07 attributes, S08 definitions, S10, S14.

One walk over the tree, one small function per kind of node. The walk never recurses: hostile nesting costs nothing.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness.gate import rules
from harness.gate.interface import Finding
from harness.gate.source import escape
from principles.h0 import StaticRules


@dataclass(frozen=True, slots=True)
class Module:
    """What the rules need to know of one parsed file."""

    path: str
    tree: ast.Module
    allowed: StaticRules
    siblings: Mapping[str, frozenset[str]]
    """Module names of the package's own files, each with the names that it imports itself."""
    aliases: Mapping[str, str]
    """Dotted name behind each imported local name."""
    modules: frozenset[str]
    """Those of the imported local names that stand for a module."""
    owned: frozenset[int]
    """Names (by ``id`` of the node) of which an attribute is taken."""
    functions: frozenset[str]
    """Functions and classes defined anywhere in the file."""

    def finding(self, rule: str, node: ast.AST, message: str) -> Finding:
        """A finding at the node's line."""
        return Finding(rule=rule, path=self.path, line=getattr(node, "lineno", 0), message=message)

    def dotted(self, node: ast.AST) -> str:
        """The dotted name of a Name or Attribute chain with import aliases resolved; empty where it is neither."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        parts.append(self.aliases.get(node.id, node.id))
        return ".".join(reversed(parts))

    def of_module(self, node: ast.AST) -> bool:
        """Whether the attribute chain begins at an imported module."""
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id in self.modules


def imported_names(tree: ast.Module) -> frozenset[str]:
    """Names that a module has from elsewhere."""
    return frozenset(
        (name.asname or name.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in node.names
    )


def module(path: str, tree: ast.Module, allowed: StaticRules, siblings: Mapping[str, frozenset[str]]) -> Module:
    """Collect imports and definitions of a parsed file."""
    aliases: dict[str, str] = {}
    functions: set[str] = set()
    modules: set[str] = set()
    owned: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                aliases[name.asname or name.name.split(".")[0]] = name.name if name.asname else name.name.split(".")[0]
                modules.add(name.asname or name.name.split(".")[0])
        elif isinstance(node, ast.ImportFrom):
            for name in node.names:
                dotted = f"{node.module or ''}.{name.name}".lstrip(".")
                aliases[name.asname or name.name] = dotted
                if dotted in allowed.imports or node.module in (None, "policies", *allowed.import_packages):
                    modules.add(name.asname or name.name)
        elif isinstance(node, ast.Attribute):
            owned.add(id(node.value))
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            functions.add(node.name)
    return Module(path, tree, allowed, siblings, aliases, frozenset(modules), frozenset(owned), frozenset(functions))


def check_syntax(m: Module) -> Iterator[Finding]:
    """Every rule of this file over one module."""
    for node in ast.walk(m.tree):
        for kind, check in CHECKS:
            if isinstance(node, kind):
                yield from check(m, node)
    if m.path == "policy.py":
        yield from _contract(m)


# ---------------------------------------------------------------- S05 imports


def _allowed(m: Module, name: str) -> bool:
    return name in m.allowed.imports or name.startswith(tuple(f"{p}." for p in m.allowed.import_packages))


def _import(m: Module, node: ast.Import) -> Iterator[Finding]:
    for name in node.names:
        if not _allowed(m, name.name):
            yield m.finding("S05", node, f"import {escape(name.name)} is not on the allow-list")


def _import_from(m: Module, node: ast.ImportFrom) -> Iterator[Finding]:
    base = node.module or ""
    own = (node.level == 1 and "." not in base) and all(
        part in m.siblings for part in ([base] if base else [n.name for n in node.names])
    )
    packaged = node.level == 0 and (
        _allowed(m, base) or (base == "policies" and all(n.name == "blocks" for n in node.names))
    )
    if not own and not packaged:
        yield m.finding("S05", node, f"from {'.' * node.level}{escape(base)} is not on the allow-list")
    for name in node.names:
        if name.name == "*":
            yield m.finding("S05", node, "import * hides what is used")
        elif name.name.startswith("_"):
            yield m.finding("S07", node, f"private name {escape(name.name)} imported")
        elif own and name.name in m.siblings.get(base, ()):
            yield m.finding(
                "S05", node, f"{escape(name.name)} is imported by {base}; import it from where it is defined"
            )
        elif name.name in rules.UNSAFE_MODULE_NAMES and not own:
            yield m.finding("S05", node, f"module {name.name} reached through {escape(base)}")
        else:
            yield from _dotted_use(m, node, f"{base}.{name.name}")


# ---------------------------------------------------------------- S06, S07, S14 names, calls and attributes


def _name(m: Module, node: ast.Name) -> Iterator[Finding]:
    if node.id in m.allowed.forbidden_names:
        yield m.finding("S06", node, f"forbidden name {node.id}")
    elif _dunder(node.id) and node.id not in rules.DUNDERS | rules.DUNDER_READS:
        yield m.finding("S07", node, f"dunder name {escape(node.id)}")
    elif node.id in m.modules and id(node) not in m.owned:
        yield m.finding("S07", node, f"module {node.id} used as a value: write {node.id}.NAME where it is needed")


def _attribute(m: Module, node: ast.Attribute) -> Iterator[Finding]:
    name = node.attr
    if _dunder(name):
        if name not in rules.DUNDER_READS:
            yield m.finding("S07", node, f"dunder attribute {escape(name)}")
    elif name in m.allowed.forbidden_attributes:
        yield m.finding("S06", node, f"forbidden attribute {name}")
    elif m.of_module(node) or (isinstance(node.value, ast.Name) and node.value.id in m.aliases):
        if name.startswith("_"):
            yield m.finding("S07", node, f"private attribute {escape(name)} of an imported name")
        elif name in rules.UNSAFE_MODULE_NAMES:
            yield m.finding("S06", node, f"module {name} reached through {escape(m.dotted(node.value))}")
        elif name in m.siblings.get(m.dotted(node.value), ()):
            yield m.finding("S05", node, f"{name} is imported by {escape(m.dotted(node.value))}; import it itself")
    yield from _dotted_use(m, node, m.dotted(node))


def _dotted_use(m: Module, node: ast.AST, dotted: str) -> Iterator[Finding]:
    if dotted in rules.CALLS or dotted.startswith(rules.CALL_PREFIXES):
        yield m.finding("S06", node, f"forbidden use of {escape(dotted)}")
    for base in ("random.", "numpy.random."):
        if dotted.startswith(base) and not any(
            dotted == state or dotted.startswith(f"{state}.") for state in rules.RANDOM_STATE
        ):
            yield m.finding("S14", node, f"{escape(dotted)} draws from a shared, unseeded generator")
    if dotted.startswith(("datetime.", "dateparser.")) and dotted.rsplit(".", 1)[-1] in rules.CLOCKS:
        yield m.finding("S14", node, f"{escape(dotted)} reads the clock")


def _call(m: Module, node: ast.Call) -> Iterator[Finding]:
    name = m.dotted(node.func)
    if name in rules.UNSTABLE_BUILTINS and name not in m.functions:
        yield m.finding("S14", node, f"{name}() differs between processes")
    if name in ("getattr", "setattr", "hasattr"):
        target = node.args[1] if len(node.args) > 1 else None
        if not (isinstance(target, ast.Constant) and isinstance(target.value, str)):
            yield m.finding("S07", node, f"{name}() with an attribute chosen at run time")
        elif target.value.startswith("_") or target.value in {
            *m.allowed.forbidden_attributes,
            *rules.UNSAFE_MODULE_NAMES,
        }:
            yield m.finding("S07", node, f"{name}() of {escape(target.value)}")
    if name == "type" and (len(node.args) != 1 or node.keywords):
        yield m.finding("S08", node, "type() makes a class at run time")
    if name in rules.RANDOM_STATE and not node.args and not node.keywords:
        yield m.finding("S14", node, f"{name}() without a seed")
    if isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        template = node.func.value
        if not (isinstance(template, ast.Constant) and isinstance(template.value, str)):
            yield m.finding("S07", node, "format() of a template that is not a constant")


def _constant(m: Module, node: ast.Constant) -> Iterator[Finding]:
    value = node.value
    if isinstance(value, str) and any(_dunder(word) for word in _identifiers(value)):
        yield m.finding("S07", node, f"dunder name inside a string: {escape(value, 60)}")


def _identifiers(text: str) -> Iterator[str]:
    if "__" not in text:
        return
    word = ""
    for char in text + " ":
        if char.isalnum() or char == "_":
            word += char
        else:
            yield word
            word = ""


def _dunder(name: str) -> bool:
    return len(name) > 4 and name.startswith("__") and name.endswith("__")


# ---------------------------------------------------------------- S08 definitions


def _function(m: Module, node: ast.FunctionDef) -> Iterator[Finding]:
    if _dunder(node.name) and node.name not in rules.DUNDERS:
        yield m.finding("S08", node, f"method {escape(node.name)} changes how Python itself works")
    yield from _decorators(m, node)


def _class(m: Module, node: ast.ClassDef) -> Iterator[Finding]:
    for keyword in node.keywords:
        target = m.dotted(keyword.value)
        if keyword.arg != "metaclass" or target not in rules.METACLASSES | m.functions:
            yield m.finding(
                "S08", node, f"class keyword {escape(str(keyword.arg))} of {escape(target) or 'an expression'}"
            )
    for base in node.bases:
        if not isinstance(base, ast.Name | ast.Attribute | ast.Subscript):
            yield m.finding("S08", node, "a base class that is an expression")
    yield from _decorators(m, node)


def _decorators(m: Module, node: ast.FunctionDef | ast.ClassDef) -> Iterator[Finding]:
    for decorator in node.decorator_list:
        target = m.dotted(decorator.func if isinstance(decorator, ast.Call) else decorator)
        plain = target in rules.DECORATORS or target in m.functions or target.endswith((".setter", ".getter"))
        if not plain and target not in m.aliases.values():
            yield m.finding("S08", decorator, f"decorator {escape(target) or 'that is an expression'}")


def _async(m: Module, node: ast.AST) -> Iterator[Finding]:
    yield m.finding("S08", node, "async code has no event loop here")


def _bare_except(m: Module, node: ast.ExceptHandler) -> Iterator[Finding]:
    name = m.dotted(node.type) if node.type is not None else ""
    if node.type is None or name in ("BaseException", "SystemExit", "KeyboardInterrupt", "GeneratorExit"):
        yield m.finding("S08", node, f"except {name or 'without a class'} would swallow the runner's own signals")


# ---------------------------------------------------------------- S10 contract


def _contract(m: Module) -> Iterator[Finding]:
    found = [n for n in m.tree.body if isinstance(n, ast.ClassDef) and n.name == "Policy"]
    if len(found) != 1:
        yield m.finding("S10", m.tree, f"{len(found)} classes named Policy at the top level; exactly one is needed")
        return
    methods = {n.name: n for n in found[0].body if isinstance(n, ast.FunctionDef)}
    for name, count in rules.METHODS.items():
        if name not in methods:
            yield m.finding("S10", found[0], f"Policy has no method {name}")
            continue
        arguments = methods[name].args
        positional = len(arguments.posonlyargs) + len(arguments.args)
        required = positional - len(arguments.defaults)
        if methods[name].decorator_list or not required <= count + 1 <= positional:
            yield m.finding("S10", methods[name], f"Policy.{name} must take {count} argument(s) beside self")


CHECKS: tuple[tuple[type[ast.AST] | tuple[type[ast.AST], ...], Callable[[Module, ast.AST], Iterator[Finding]]], ...] = (
    (ast.Import, _import),
    (ast.ImportFrom, _import_from),
    (ast.Name, _name),
    (ast.Attribute, _attribute),
    (ast.Call, _call),
    (ast.Constant, _constant),
    (ast.FunctionDef, _function),
    (ast.ClassDef, _class),
    ((ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await), _async),
    (ast.ExceptHandler, _bare_except),
)  # type: ignore[assignment]
"""Which function checks which kind of node."""
