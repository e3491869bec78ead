"""S15: code that looks at which question it is, instead of what it asks.

What identifies a question is its text, the texts of its choices, its time and its id. They are followed through
assignments, loops and calls of the package's own functions, however they are named on the way, to where they would
serve as a key: an equality, a table, a ``match``, a length, single letters, a check sum, a seed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from harness.gate.interface import Finding
from harness.gate.rules import names

KINDS: Mapping[str, str] = {"question": "question", "choices": "choices", "time": "time", "id": "id"}
"""What an attribute of a query is."""
SHOWN: Mapping[str, str] = {"question": "the question", "choice": "a choice's text", "time": "the query time"}
SAME = names("lower upper casefold strip lstrip rstrip title replace format join swapcase capitalize")
"""Methods after which a text is still that text."""
PLAIN = names("str int round float tuple repr ascii abs")
LETTERWISE = names("set frozenset sorted list enumerate map zip reversed iter filter sum Counter")
"""Calls that take a text apart into letters."""
RANDOM = frozenset({"Random", "default_rng", "seed"})
BINDING = ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.For | ast.comprehension
ROUNDS = 6
"""Times that calls between functions are followed."""


@dataclass(frozen=True, slots=True)
class _Unit:
    """A function with all that is inside it, or the rest of a module."""

    path: str
    nodes: tuple[ast.AST, ...]


@dataclass
class _Scope:
    """What the names of one unit stand for."""

    kinds: dict[str, str] = field(default_factory=dict)


def check_keys(trees: Mapping[str, ast.Module]) -> Iterator[Finding]:
    """S15 over a whole package."""
    units = [unit for path, tree in trees.items() for unit in _units(path, tree)]
    tables = {name for tree in trees.values() for name in _top(tree)} | {n for u in units for n in _literal(u)}
    known: dict[tuple[str, int], str] = {("answer", 1): "query"}
    attributes: dict[str, str] = {}
    scopes: list[_Scope] = []
    for _ in range(ROUNDS):
        before = (dict(known), dict(attributes))
        scopes = [_scope(unit, known, attributes) for unit in units]
        for unit, scope in zip(units, scopes, strict=True):
            for node in unit.nodes:
                if isinstance(node, ast.Call):
                    _hand_over(node, scope, known)
        if before == (known, attributes):
            break
    for unit, scope in zip(units, scopes, strict=True):
        for node in unit.nodes:
            for message in _looks(node, scope, tables):
                yield Finding(rule="S15", path=unit.path, line=getattr(node, "lineno", 0), message=message)


def _units(path: str, tree: ast.Module) -> Iterator[_Unit]:
    rest: list[ast.AST] = []
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.FunctionDef):
            yield _Unit(path, tuple(ast.walk(node)))
        else:
            rest.append(node)
            pending.extend(ast.iter_child_nodes(node))
    yield _Unit(path, tuple(rest))


def _top(tree: ast.Module) -> Iterator[str]:
    """Names bound at the top of a module: what they hold is written down there."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            yield from (_last(target) for target in (node.targets if isinstance(node, ast.Assign) else [node.target]))
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield from (name.asname or name.name for name in node.names)


def _literal(unit: _Unit) -> Iterator[str]:
    """Names bound to a table of constants anywhere."""
    for node in unit.nodes:
        if isinstance(node, ast.Assign) and _table_of_constants(node.value):
            yield from (_last(target) for target in node.targets)


def _table_of_constants(node: ast.AST) -> bool:
    kinds = ast.Dict | ast.Set | ast.List | ast.Tuple
    return isinstance(node, kinds) and any(isinstance(inner, ast.Constant) for inner in ast.walk(node))


def _last(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


# ---------------------------------------------------------------- what names stand for


def _scope(unit: _Unit, known: Mapping[tuple[str, int], str], attributes: dict[str, str]) -> _Scope:
    scope = _Scope(dict(attributes))
    for node in unit.nodes:
        if isinstance(node, ast.FunctionDef):
            for place, argument in enumerate([*node.args.posonlyargs, *node.args.args]):
                kind = known.get((node.name, place)) or ("query" if argument.arg in ("query", "q") else "")
                _bind(ast.Name(argument.arg), kind, scope, attributes)
    binding = [n for n in unit.nodes if isinstance(n, BINDING)]
    before = None
    while before != scope.kinds:  # a name may be bound below its use in a loop
        before = dict(scope.kinds)
        for node in binding:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    _bind(target, kind_of(node.value, scope), scope, attributes)
            elif isinstance(node, ast.For | ast.comprehension):
                target = node.target.elts[-1] if isinstance(node.target, ast.Tuple) else node.target
                _bind(target, _items(node.iter, scope), scope, attributes)
            elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                _bind(node.target, kind_of(node.value, scope), scope, attributes)
    return scope


def _bind(target: ast.AST, kind: str, scope: _Scope, attributes: dict[str, str]) -> None:
    """The first meaning that a name is given stays: so that this comes to an end."""
    if not kind:
        return
    if isinstance(target, ast.Name):
        scope.kinds.setdefault(target.id, kind)
    elif isinstance(target, ast.Attribute):
        scope.kinds[f".{target.attr}"] = attributes.setdefault(f".{target.attr}", kind)


def _items(iterated: ast.AST, scope: _Scope) -> str:
    """What a loop's last name stands for: the choices' texts are found inside ``enumerate`` and ``zip`` too."""
    for node in ast.walk(iterated):
        if kind_of(node, scope) == "texts":
            return "choice"
    return ""


def kind_of(node: ast.AST, scope: _Scope) -> str:
    """``query``, ``question``, ``choices`` (by letter), ``texts`` (of the choices), ``choice``, ``time``, ``id``, or
    empty for anything else."""
    match node:
        case ast.Name(id=name):
            return scope.kinds.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            if attr in ("question", "choices"):
                return attr
            if kind_of(value, scope) == "query":
                return KINDS.get(attr, "")
            return scope.kinds.get(f".{attr}", "")
        case ast.Subscript(value=value):
            kind = kind_of(value, scope)
            return {"choices": "choice", "texts": "choice"}.get(kind, kind if isinstance(node.slice, ast.Slice) else "")
        case ast.Call(func=ast.Attribute(value=value, attr=attr)):
            kind = kind_of(value, scope)
            if kind == "choices":
                return {"values": "texts", "items": "texts", "get": "choice"}.get(attr, "")
            return kind if attr in SAME else ""
        case ast.Call(func=ast.Name(id=name), args=[first, *_]) if name in PLAIN or name in ("list", "sorted"):
            kind = kind_of(first, scope)
            return kind if name in PLAIN or kind == "texts" else ""
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            kinds = (kind_of(left, scope), kind_of(right, scope))
            return next((kind for kind in kinds if kind in ("question", "choice")), "")
        case ast.Tuple(elts=elts) | ast.JoinedStr(values=elts):
            return next((kind for item in elts if (kind := kind_of(item, scope)) in SHOWN), "")
        case ast.FormattedValue(value=value) | ast.NamedExpr(value=value) | ast.Starred(value=value):
            return kind_of(value, scope)
        case ast.IfExp(body=body, orelse=orelse):
            return kind_of(body, scope) or kind_of(orelse, scope)
    return ""


def _hand_over(call: ast.Call, scope: _Scope, known: dict[tuple[str, int], str]) -> None:
    """A function of the package that is given what identifies a question works with it under its own name."""
    method = isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name)
    name = _last(call.func)
    for place, argument in enumerate(call.args):
        if kind := kind_of(argument, scope):
            bound = method and isinstance(call.func, ast.Attribute) and _last(call.func.value) == "self"
            known.setdefault((name, place + bound), kind)


# ---------------------------------------------------------------- where they serve as a key


def _looks(node: ast.AST, scope: _Scope, tables: set[str]) -> Iterator[str]:
    match node:
        case ast.Attribute(value=value, attr="id") if kind_of(value, scope) == "query":
            yield "reads the query's id"
        case ast.Compare(left=left, ops=ops, comparators=rest):
            yield from _compared([left, *rest], ops, scope, tables)
        case ast.Match(subject=subject) if (kind := kind_of(subject, scope)) in SHOWN:
            yield f"matches {SHOWN[kind]} with constants"
        case ast.Subscript(value=value, slice=key):
            yield from _looked_up(value, key, scope, tables)
            if kind_of(value, scope) in ("question", "choice") and not isinstance(key, ast.Slice):
                yield "looks at single letters of a question or choice"
        case ast.Call():
            yield from _called(node, scope, tables)
        case ast.For(iter=iterated) | ast.comprehension(iter=iterated) if kind_of(iterated, scope) in SHOWN:
            yield "looks at single letters of a question or choice"


def _compared(sides: list[ast.expr], ops: list[ast.cmpop], scope: _Scope, tables: set[str]) -> Iterator[str]:
    for left, op, right in zip(sides, ops, sides[1:], strict=False):
        pairs = [(left, right)] if isinstance(op, ast.In | ast.NotIn) else [(left, right), (right, left)]
        if isinstance(op, ast.In | ast.NotIn | ast.Eq | ast.NotEq):
            for raw, other in pairs:
                kind = kind_of(raw, scope)
                if kind in SHOWN and _written(other, tables):
                    yield f"compares {SHOWN[kind]} with something written down"
                    break


def _written(node: ast.AST, tables: set[str]) -> bool:
    """Whether an expression is a constant, a collection of them, or a name that holds one."""
    return _table_of_constants(node) or isinstance(node, ast.Constant) or _last(node) in tables


def _looked_up(table: ast.AST, key: ast.AST, scope: _Scope, tables: set[str]) -> Iterator[str]:
    kind = kind_of(key, scope)
    if kind in ("question", "time", "id") or (kind == "choice" and _written(table, tables)):
        yield f"a table keyed by {SHOWN.get(kind, 'the query id')}"


def _called(call: ast.Call, scope: _Scope, tables: set[str]) -> Iterator[str]:
    name = _last(call.func)
    kinds = [kind_of(argument, scope) for argument in call.args]
    first = kinds[0] if kinds else ""
    if isinstance(call.func, ast.Attribute):
        if name in ("get", "setdefault", "index", "pop") and call.args:
            yield from _looked_up(call.func.value, call.args[0], scope, tables)
        if name == "count" and kind_of(call.func.value, scope) in ("question", "choice"):
            yield "counts letters of a question or choice"
    if name == "len" and first == "choice":
        yield "measures the length of a choice"
    if "texts" in kinds and any(k.arg == "key" and _last(k.value) == "len" for k in call.keywords):
        yield "measures the length of a choice"
    if isinstance(call.func, ast.Name) and name in LETTERWISE and {*kinds} & {"question", "choice"}:
        yield "takes a question or choice apart into letters"
    if name in RANDOM and any(kind for kind in kinds):
        yield "draws by the question"
