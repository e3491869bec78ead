"""Replace one function of a file by syntax tree: exact line ranges, everything else byte for byte as it was."""

from __future__ import annotations

import ast
import textwrap
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

Function = ast.FunctionDef | ast.AsyncFunctionDef


class SpliceError(ValueError):
    """The replacement cannot be used; one line that tells the author what to do."""


@dataclass(frozen=True, slots=True)
class Target:
    """One function that may be replaced."""

    path: str
    name: str
    """Qualified, for example ``Policy.answer``."""
    source: str
    """Its lines as they stand in the file, decorators included."""
    trivial: bool
    """Nothing but a docstring, ``pass`` or a bare return."""


def targets(files: Mapping[str, str]) -> tuple[Target, ...]:
    """Top-level functions and methods of the package's files, in order of path and line; none of a broken file."""
    found = []
    for path in sorted(files):
        if not path.endswith(".py"):
            continue
        try:
            tree = parsed(files[path])
        except SpliceError:
            continue
        lines = files[path].split("\n")
        for name, node in functions(tree):
            source = "\n".join(lines[_first(node) - 1 : node.end_lineno])
            found.append(Target(path, name, source, _trivial(node)))
    return tuple(found)


def splice(source: str, name: str, replacement: str, imports: Sequence[str] = ()) -> str:
    """``source`` with the body of function ``name`` replaced.

    ``replacement`` is either the new body or the whole function with the same arguments; a class around it is taken
    off. Of ``imports``, lines that the author was told the function has, those stay of which it uses a name. The
    signature, decorators and everything outside the function stay as they are. Raises SpliceError.
    """
    node = dict(functions(parsed(source))).get(name)
    if node is None:
        raise SpliceError(f"the file has no function {name}")
    try:
        body = _body_of(replacement, node, {ast.dump(other) for _, other in functions(parsed(source))})
    except RecursionError:
        raise SpliceError("the reply is nested too deeply") from None
    lines = source.split("\n")
    header, indent = _header(lines, node)
    if not _docstring_lines(body):
        header = header + _docstring(lines, node)
    new_lines = body.split("\n")
    at = _docstring_lines(body)
    new_lines[at:at] = _used(imports, body)
    new = header + [indent + line if line.strip() else "" for line in new_lines]
    result = "\n".join(lines[: _first(node) - 1] + new + lines[node.end_lineno or node.lineno :])
    _check(source, result, name)
    return result


def _check(before: str, after: str, name: str) -> None:
    """The result parses and holds the same functions with the same arguments."""
    old, new = functions(parsed(before)), functions(parsed(after))
    kept = {key: ast.dump(node.args) for key, node in old}
    if kept != {key: ast.dump(node.args) for key, node in new}:
        raise SpliceError(f"the reply changes more than the body of {name}")


def parsed(source: str) -> ast.Module:
    """The syntax tree. Raises SpliceError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source)
    except SyntaxError as error:
        raise SpliceError(f"line {error.lineno}: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise SpliceError(f"does not parse ({type(error).__name__})") from None


def functions(tree: ast.Module) -> list[tuple[str, Function]]:
    """Top-level functions and methods by qualified name, in order."""
    found: list[tuple[str, Function]] = []
    for node in tree.body:
        if isinstance(node, Function):
            found.append((node.name, node))
        elif isinstance(node, ast.ClassDef):
            found += [(f"{node.name}.{item.name}", item) for item in node.body if isinstance(item, Function)]
    return found


def _first(node: Function) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])


def _signature_end(node: Function) -> int:
    """Last line that holds an argument or the return annotation."""
    ends = [node.lineno, *(n.end_lineno or 0 for n in ast.walk(node.args) if hasattr(n, "end_lineno"))]
    if node.returns is not None:
        ends.append(node.returns.end_lineno or 0)
    return max(ends)


def _header(lines: list[str], node: Function) -> tuple[list[str], str]:
    """Lines of decorators and signature, and the indentation of the body."""
    first = node.body[0]
    outer = " " * node.col_offset
    before = lines[first.lineno - 1].encode()[: first.col_offset].decode().rstrip()
    if before:  # the body begins on the signature's line
        return [*lines[_first(node) - 1 : first.lineno - 1], before], outer + "    "
    end = _signature_end(node)
    while not lines[end - 1].split("#")[0].rstrip().endswith(":") and end < first.lineno - 1:
        end += 1
    return lines[_first(node) - 1 : end], " " * first.col_offset


def _body_of(replacement: str, node: Function, others: Collection[str]) -> str:
    """The body's text, not indented, from a reply that is a body, a function, or a class around a function."""
    text = textwrap.dedent(replacement.replace("\t", "    ").strip("\n")).rstrip()
    if not text.strip():
        raise SpliceError("the reply holds no code")
    found = _whole_function(text, node.name, others)
    if found is None:
        return _checked(_as_body(text), node)
    if _arguments(found) != _arguments(node):
        raise SpliceError(f"keep the arguments of {node.name}: {', '.join(_arguments(node))}")
    lines = text.split("\n")
    first, last = found.body[0], found.body[-1]
    if first.lineno == found.lineno:
        raise SpliceError(f"write the body of {node.name} on lines of its own")
    start = _signature_end(found) + 1
    while start < first.lineno and not lines[start - 1].lstrip().startswith("#"):
        start += 1
    return _checked(textwrap.dedent("\n".join(lines[start - 1 : last.end_lineno])), node)


def _used(imports: Sequence[str], body: str) -> list[str]:
    """Those import lines of which ``body`` reads a name that it does not import itself."""
    tree = parsed("def _():\n" + textwrap.indent(body, "    "))
    read = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    own = {a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.Import | ast.ImportFrom) for a in n.names}
    return [line for line in imports if read & set(imported(line)) - own]


def imported(line: str) -> list[str]:
    """Names that one import line binds."""
    return [a.asname or a.name for n in ast.walk(parsed(line)) if isinstance(n, ast.ImportFrom) for a in n.names]


def _whole_function(text: str, name: str, others: Collection[str]) -> Function | None:
    """The function ``name`` inside ``text``; None where ``text`` is a body.

    Functions repeated as the file has them (``others``, as trees) change nothing. Raises SpliceError for anything more.
    """
    try:
        tree = parsed(text)
    except SpliceError:
        if text.lstrip().startswith(("def ", "async def ", "class ", "@")):
            raise
        return None
    statements = tree.body
    if len(statements) == 1 and isinstance(statements[0], ast.ClassDef):
        statements = statements[0].body
    named = [node for node in statements if isinstance(node, Function) and node.name == name]
    if not named:
        return None
    more = [node for node in statements if node not in named and not _harmless(node) and ast.dump(node) not in others]
    if len(named) > 1 or more:
        raise SpliceError(f"reply with {name} alone: no class or other function beside it, imports inside it")
    return named[0]


def _harmless(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def _as_body(text: str) -> str:
    """A body whose first line may have lost its indentation."""
    try:
        parsed("def _():\n" + textwrap.indent(text, "    "))
        return text
    except SpliceError as error:
        first, _, rest = text.partition("\n")
        again = first.lstrip() + "\n" + textwrap.dedent(rest)
        try:
            parsed("def _():\n" + textwrap.indent(again, "    "))
        except SpliceError:
            raise error from None
        return again


def _checked(body: str, node: Function) -> str:
    """The body up to the end of its last statement."""
    wrapped = parsed("def _():\n" + textwrap.indent(body, "    "))
    if len(wrapped.body) != 1 or not isinstance(wrapped.body[0], Function):
        raise SpliceError(f"the reply reaches outside the body of {node.name}")
    if all(_harmless(item) for item in wrapped.body[0].body):
        raise SpliceError(f"the new body of {node.name} does nothing")
    return "\n".join(body.split("\n")[: (wrapped.body[0].end_lineno or 2) - 1])


def argument_nodes(node: Function) -> list[ast.arg]:
    """All arguments of a function."""
    a = node.args
    return [*a.posonlyargs, *a.args, *a.kwonlyargs, *filter(None, [a.vararg, a.kwarg])]


def _arguments(node: Function) -> list[str]:
    return [arg.arg for arg in argument_nodes(node)]


def _trivial(node: Function) -> bool:
    return all(_harmless(item) or (isinstance(item, ast.Return) and item.value is None) for item in node.body)


def _docstring(lines: list[str], node: Function) -> list[str]:
    """The lines of the function's docstring where it has one on lines of its own."""
    first = node.body[0]
    if ast.get_docstring(node, clean=False) is None or lines[first.lineno - 1][: first.col_offset].strip():
        return []
    return lines[first.lineno - 1 : first.end_lineno]


def _docstring_lines(body: str) -> int:
    """Lines from the start of a body to the end of its docstring; 0 where it has none."""
    tree = parsed("def _():\n" + textwrap.indent(body, "    "))
    (node,) = tree.body
    found = isinstance(node, ast.FunctionDef) and ast.get_docstring(node, clean=False) is not None
    return (node.body[0].end_lineno or 0) - 1 if isinstance(node, ast.FunctionDef) and found else 0


def arguments(target: Target) -> list[str]:
    """Names of the target's arguments, ``self`` included."""
    ((_, node),) = functions(parsed(textwrap.dedent(target.source)))
    return _arguments(node)


def loaded(target: Target) -> frozenset[str]:
    """Names and attributes that the target's source holds, its arguments included."""
    tree = parsed(textwrap.dedent(target.source))
    names = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)}
    names |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    return frozenset(names | {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)})


def excerpt(source: str, name: str) -> str:
    """Function ``name`` as it stands in ``source``, and before it the constructor of its class, for a prompt."""
    lines = source.split("\n")
    owner, _, _ = name.rpartition(".")
    shown = [f"class {owner}:"] if owner else []
    for found, node in functions(parsed(source)):
        if found == name or (owner and found == f"{owner}.__init__"):
            shown += ["\n".join(lines[_first(node) - 1 : node.end_lineno]), ""]
    return "\n".join(shown).rstrip()
