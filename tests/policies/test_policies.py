"""Every policy of the library keeps the contract."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Callable
from pathlib import Path

import pytest

import policies
from policies import library
from policies.contract import (
    Answer,
    Budget,
    MemoryPolicy,
    NoModel,
    OverBudget,
    Query,
    Read,
    ReadReply,
    Refused,
    Request,
    Setup,
    Utterance,
    Window,
)

Run = Callable[..., dict[str, Answer]]
ROOT = Path(policies.__file__).parent
STANDARD = {"re", "math", "collections", "dataclasses", "itertools", "functools", "heapq", "bisect", "json", "typing"}
ALLOWED = STANDARD | {"policies", "numpy", "statistics", "__future__"}
BASELINES = {path.name for path in (ROOT / "baselines").iterdir()}
BLOCKS_MAY_ALSO = {"simplemma", "dateparser", "datetime", "array", "base64", "binascii", "hashlib", "pkgutil"}
WINDOWS = tuple(
    Window(
        at,
        30.0 * at,
        30.0 * at + 30,
        (f"Ada puts mug {at} on the table.", "I watch Ada."),
        (Utterance("Ben", "Ok."),),
        False,
    )
    for at in range(40)
)
QUERIES = (
    Query("early", "EntityLog", "Who put mug 0 away?", {"A": "Ada", "B": "Ben"}, 10.0),
    Query("late", "EntityLog", "Who put mug 7 on the table last?", {"A": "Ben", "B": "Ada", "C": "Ada"}, 900.0),
)


def make(name: str, setup: Setup) -> MemoryPolicy:
    folder = "baselines." if (ROOT / "baselines" / name).is_dir() else ""
    made = importlib.import_module(f"policies.{folder}{name}.policy").Policy(setup)
    assert isinstance(made, MemoryPolicy)
    return made


def first(request: Request) -> ReadReply | Refused:
    return ReadReply(next(iter(request.choices)), "") if isinstance(request, Read) else NoModel("no model")


@pytest.fixture(params=library.names())
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_library_holds_the_lineage() -> None:
    versions = ("v00", "v01", "v09", "v15", "v18", "v30", "v44", "v47", "v49")
    assert library.names() == ("bm25", "longest_option", "options_only", "merit", *versions)
    with pytest.raises(KeyError, match="no policy named 'v99'"):
        library.load("v99")


def test_a_package_is_candidate_files(name: str) -> None:
    files = library.load(name)
    assert "policy.py" in files and "__init__.py" not in files
    assert all(isinstance(data, bytes) and data.decode("utf-8") for data in files.values())


def imported(source: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(source)))
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {module.partition(".")[0] for module in found}


def test_only_permitted_imports(name: str) -> None:
    for path, data in library.load(name).items():
        assert imported(data.decode("utf-8")) <= ALLOWED, path


def test_blocks_import_nothing_of_the_other_rooms() -> None:
    for path in (ROOT / "blocks").glob("*.py"):
        assert imported(path.read_text(encoding="utf-8")) <= ALLOWED | BLOCKS_MAY_ALSO, path.name


def test_answers_every_question_even_before_anything_was_seen(name: str, run: Run) -> None:
    answers = run(make(name, Setup(Budget(), 0)), WINDOWS, QUERIES, first)
    assert set(answers) == {"early", "late"}
    for query in QUERIES:
        assert answers[query.id].choice in query.choices
    assert all(0 <= at < 30 for at in answers["late"].evidence)


@pytest.mark.parametrize("limit", [5, 700])
def test_the_budget_is_the_hosts(name: str, limit: int, run: Run) -> None:
    reads: list[Read] = []

    def serve(request: Request) -> ReadReply | Refused:
        reads.extend([request] if isinstance(request, Read) else [])
        return first(request)

    budget = Budget(context_chars=limit, evidence=2)
    answers = run(make(name, Setup(budget, 0)), WINDOWS, QUERIES, serve)
    assert all(len(request.context) <= limit for request in reads)
    assert all(len(answer.evidence) <= 2 for answer in answers.values())
    assert len(reads) in (0, 2)


@pytest.mark.parametrize("refusal", [NoModel("no model"), OverBudget("spent")])
def test_a_refusal_is_an_answer_that_says_so(name: str, refusal: Refused, run: Run) -> None:
    for answer in run(make(name, Setup(Budget(), 0)), WINDOWS, QUERIES, lambda request: refusal).values():
        if "refused" in answer.diagnostics:
            assert answer.choice is None and type(refusal).__name__ in answer.diagnostics["refused"]
        else:
            assert answer.choice is not None and name in BASELINES


def test_a_reply_without_a_letter_abstains(run: Run) -> None:
    for reply in (ReadReply(None, "?"), ReadReply("Z", "Z")):
        answers = run(make("v01", Setup(Budget(), 0)), WINDOWS, QUERIES, lambda request, reply=reply: reply)
        assert all(answer.choice is None and answer.diagnostics["parsed"] is False for answer in answers.values())


def test_windows_after_the_question_change_nothing(name: str, run: Run) -> None:
    seen: list[list[str]] = []
    for extra in (
        (),
        tuple(
            Window(at, 30.0 * at, 30.0 * at + 30, ("Ben puts mug 7 on the table.",), (), False) for at in range(40, 60)
        ),
    ):
        contexts: list[str] = []

        def serve(request: Request, contexts: list[str] = contexts) -> ReadReply | Refused:
            contexts.extend([request.context] if isinstance(request, Read) else [])
            return first(request)

        answers = run(make(name, Setup(Budget(), 0)), (*WINDOWS, *extra), QUERIES, serve)
        seen.append([*contexts, repr(answers)])
    assert seen[0] == seen[1]
