"""The rooms import each other one way only, and nothing on the host unpickles or evaluates data."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
ROOMS = ("harness", "sandbox", "policies", "meta_memory", "principles")
ALLOWED = {
    "harness": {"harness", "sandbox", "policies", "meta_memory", "principles"},
    "sandbox": {"sandbox", "policies"},
    "policies": {"policies"},
    "meta_memory": {"meta_memory"},
    "principles": {"principles"},
}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
FORBIDDEN_CALLS = {"eval", "exec"}
RUNS_CANDIDATES = {"sandbox/loader.py"}  # the only code that executes a candidate, inside


def modules() -> list[Path]:
    return [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    room = path.relative_to(ROOT).parts[0]
    names = imported(ast.parse(path.read_text()))
    rooms = {name.split(".")[0] for name in names} & set(ROOMS)
    assert rooms <= ALLOWED[room]
    if room == "sandbox":
        inner = {n for n in names if n.split(".")[0] == "policies"}
        assert inner <= {"policies", "policies.contract"}
    assert not {name.split(".")[0] for name in names} & FORBIDDEN_MODULES


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(ROOT)))
def test_no_module_evaluates_text(path: Path) -> None:
    if str(path.relative_to(ROOT)) in RUNS_CANDIDATES:
        return
    calls = {
        node.func.id
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert not calls & FORBIDDEN_CALLS
