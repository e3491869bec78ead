"""A check of the text of a changed function, before it is handed in: does what it names exist?

Nothing is executed. It spares an author the crash that it would meet in the sandbox and tells it what there is; what a
candidate may do is for the gate to say. It finds what small models get wrong: names, attributes, imports and numbers of
arguments that they made up. What it cannot know, such as a standard library object's attributes, it lets pass.
"""

from __future__ import annotations

import ast
import builtins
import symtable
import warnings
from collections.abc import Iterator, Mapping
from itertools import chain

from harness.agents import vocabulary
from harness.agents.splice import Function, SpliceError, argument_nodes, functions, parsed
from harness.gate import static
from harness.gate.interface import Decision
from harness.gate.literals import DataWords
from principles.h0 import Constitution

Place = tuple[int, int]
"""Line and column."""
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda, *COMPREHENSIONS)
"""Nodes with a scope of their own."""


def vet(files: Mapping[str, str], path: str, name: str) -> None:
    """Raises SpliceError, one line that says what is missing, for function ``name`` of ``files[path]``.

    The static rules have passed the file: it is neither long nor nested deeply.
    """
    source = files[path]
    tree = parsed(source)
    _compiles(source)
    node = dict(functions(tree))[name]
    found = chain(
        _imports(node), _undefined(source, node), _unbound(node), _attributes(tree, node, name), _calls(tree, node)
    )
    for line, problem in found:
        raise SpliceError(f"line {line - node.lineno + 1} of the function: {problem}")


def broken_rule(files: Mapping[str, str], constitution: Constitution) -> str:
    """What the gate's static rules say against a package, in one line; empty where they let it pass.

    Without the words of the data, which are the gate's to know.
    """
    packed = {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
    verdict = static.check(packed, constitution, DataWords())
    return f"the rules refuse it: {verdict.reason}" if verdict.decision is Decision.REJECT else ""


def scope(source: str, name: str) -> tuple[list[str], list[str]]:
    """What exists inside function ``name``, for a prompt: attributes of ``self``, names of the module."""
    own = _of_self(parsed(source), name)
    return sorted(own), sorted(n for n in vocabulary.bound_at_top(source) if n not in ("annotations", "Policy"))


def _compiles(source: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, "policy.py", "exec", dont_inherit=True)
    except SyntaxError as error:
        raise SpliceError(f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SpliceError(f"does not compile ({type(error).__name__})") from None


# ---------------------------------------------------------------- imports and names


def _imports(node: Function) -> Iterator[tuple[int, str]]:
    """Imports of building blocks that are not there."""
    for item in ast.walk(node):
        if not isinstance(item, ast.ImportFrom) or not (item.module or "").startswith("policies"):
            continue
        there = vocabulary.names_of(item.module or "")
        if there is None:
            yield item.lineno, f"there is no module {item.module}"
            continue
        for alias in item.names:
            if alias.name in there:
                continue
            holder = vocabulary.holder_of(alias.name)
            hint = f"import it from {holder}" if holder else vocabulary.near(alias.name, there)
            yield item.lineno, f"{item.module} has no {alias.name}; {hint}"


def _undefined(source: str, node: Function) -> Iterator[tuple[int, str]]:
    """Names that are neither in the function, nor in the module, nor built in."""
    module = set(vocabulary.bound_at_top(source))
    local = {*(a.arg for a in argument_nodes(node)), *_bindings(node)}
    read = {symbol.get_name() for symbol in _symbols(source) if symbol.is_referenced() and symbol.is_global()}
    for name in sorted(read - module - set(dir(builtins))):
        lines = [n.lineno for n in ast.walk(node) if isinstance(n, ast.Name) and n.id == name]
        if lines:
            yield min(lines), f"{name} is not defined; {vocabulary.near(name, (module | local) - {name})}"


def _symbols(source: str) -> Iterator[symtable.Symbol]:
    waiting = [symtable.symtable(source, "policy.py", "exec")]
    while waiting:
        table = waiting.pop()
        yield from table.get_symbols()
        waiting += table.get_children()


def _unbound(node: Function) -> Iterator[tuple[int, str]]:
    """Local names whose first use stands before anything is put into them, loops aside."""
    bindings = _bindings(node)
    given = {a.arg for a in argument_nodes(node)}
    loops = [n for n in ast.walk(node) if isinstance(n, ast.For | ast.While)]
    for item in _own(node):
        if not isinstance(item, ast.Name) or not isinstance(item.ctx, ast.Load) or item.id in given:
            continue
        places = bindings.get(item.id, [])
        here = (item.lineno, item.col_offset)
        again = [loop for loop in loops if loop.lineno < item.lineno <= (loop.end_lineno or 0)]
        later = [p for p in places if any(loop.lineno < p[0] <= (loop.end_lineno or 0) for loop in again)]
        if places and min(places) > here and not later:
            yield item.lineno, f"{item.id} is used before it has a value"


def _bindings(node: Function) -> dict[str, list[Place]]:
    """Where each name of the function's own scope gets a value; an assignment's name after its right side."""
    found: dict[str, list[Place]] = {}
    ends = {
        id(target): (item.end_lineno or 0, item.end_col_offset or 0)
        for item in _own(node)
        if isinstance(item, ast.Assign | ast.AnnAssign | ast.AugAssign)
        for target in ast.walk(item)
    }
    for item in _own(node):
        place = (getattr(item, "lineno", 0), getattr(item, "col_offset", 0))
        names: list[str] = []
        if isinstance(item, ast.Name) and not isinstance(item.ctx, ast.Load):
            names, place = [item.id], ends.get(id(item), place)
        elif isinstance(item, ast.Import | ast.ImportFrom):
            names = [(a.asname or a.name).split(".")[0] for a in item.names]
        elif isinstance(item, ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.FunctionDef | ast.ClassDef):
            names = [item.name] if item.name else []
        for name in names:
            found.setdefault(name, []).append(place)
    for inner in ast.walk(node):
        if isinstance(inner, ast.NamedExpr):  # binds outside a comprehension
            found.setdefault(inner.target.id, []).append((inner.lineno, inner.col_offset))
    return found


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """What lies in the scope of ``node`` itself."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, INNER):
            yield from _own(child)


# ---------------------------------------------------------------- attributes and calls


def _attributes(tree: ast.Module, node: Function, name: str) -> Iterator[tuple[int, str]]:
    """Attributes that nothing here has."""
    own = _of_self(tree, name)
    kinds = {a.arg: a.annotation.id for a in argument_nodes(node) if isinstance(a.annotation, ast.Name)}
    everything = vocabulary.attributes() | vocabulary.attributes_in(_without(tree, node))
    modules = _imported_modules(tree, node)
    for item in ast.walk(node):
        if not isinstance(item, ast.Attribute):
            continue
        base = item.value.id if isinstance(item.value, ast.Name) else ""
        if own and isinstance(item.value, ast.Call) and ast.unparse(item.value.func) == "super":
            yield item.lineno, "the class has no base class, so that super() has nothing; write the whole function"
        fields = vocabulary.fields_of(kinds.get(base, ""))
        if base == "self" and own:
            if item.attr not in own:
                yield item.lineno, f"self has no {item.attr}; {vocabulary.near(item.attr, own)}"
        elif fields:
            if item.attr not in fields:
                yield item.lineno, f"{base} has no {item.attr}; it has {', '.join(fields)}"
        elif base in modules:
            module = modules[base]
            if module in vocabulary.LIBRARY and not vocabulary.library_has(module, item.attr):
                yield item.lineno, f"{module} has no {item.attr}"
        elif item.attr not in everything and not base[:1].isupper():
            seen = ", ".join(vocabulary.fields_of("Window"))
            yield item.lineno, f"nothing here has an attribute {item.attr}; a window has {seen}"


def _of_self(tree: ast.Module, name: str) -> set[str]:
    """Attributes of the class that the method belongs to; empty where it is no method or the class has bases."""
    owner = next((n for n in tree.body if isinstance(n, ast.ClassDef) and name.startswith(f"{n.name}.")), None)
    if owner is None or owner.bases:
        return set()
    stored = {
        n.attr
        for n in ast.walk(owner)
        if isinstance(n, ast.Attribute) and not isinstance(n.ctx, ast.Load)
        if isinstance(n.value, ast.Name) and n.value.id == "self"
    }
    return vocabulary.class_level(owner) | stored


def _without(tree: ast.Module, node: Function) -> ast.Module:
    """The module with the checked function left out, so that it does not vouch for itself."""
    body = [n for n in tree.body if n is not node]
    for owner in body:
        if isinstance(owner, ast.ClassDef) and node in owner.body:
            kept = [n for n in owner.body if n is not node]
            body[body.index(owner)] = ast.ClassDef(owner.name, owner.bases, owner.keywords, kept, [])
            break
    return ast.Module(body, [])


def _imported_modules(tree: ast.Module, node: Function) -> dict[str, str]:
    return {
        alias.asname or alias.name.split(".")[0]: alias.name
        for item in (*tree.body, *ast.walk(node))
        if isinstance(item, ast.Import)
        for alias in item.names
    }


def _calls(tree: ast.Module, node: Function) -> Iterator[tuple[int, str]]:
    """Calls of building blocks with a number of arguments that they do not take."""
    blocks: dict[str, ast.FunctionDef] = {}
    for item in (*tree.body, *ast.walk(node)):
        if isinstance(item, ast.ImportFrom):
            for alias in item.names:
                if (found := vocabulary.function_of(item.module or "", alias.name)) is not None:
                    blocks[alias.asname or alias.name] = found
    for call in ast.walk(node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in blocks:
            found = blocks[call.func.id]
            if not _takes(found.args, call):
                shown = f"{found.name}({ast.unparse(found.args)})"
                yield call.lineno, f"{call.func.id} takes other arguments: {shown}"


def _takes(a: ast.arguments, call: ast.Call) -> bool:
    """Whether the call's arguments fit, as far as can be told."""
    if any(isinstance(arg, ast.Starred) for arg in call.args) or any(k.arg is None for k in call.keywords):
        return True
    names = [arg.arg for arg in (*a.posonlyargs, *a.args)]
    required = names[: len(names) - len(a.defaults)]
    required += [arg.arg for arg, default in zip(a.kwonlyargs, a.kw_defaults, strict=True) if default is None]
    given = [k.arg or "" for k in call.keywords]
    if len(call.args) > len(names) and a.vararg is None:
        return False
    known = {*names[len(call.args) :], *(arg.arg for arg in a.kwonlyargs)}
    if a.kwarg is None and not set(given) <= known:
        return False
    return set(required) <= {*names[: len(call.args)], *given}
