"""Odd data through the whole path: data set, check, sandbox, every policy, reader, figures, report.

Two to ten choices, equal and empty choices, windows without captions, Chinese text beside English.
"""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest
from rich.console import Console

from harness.data.check import check
from harness.data.native import Dataset, Gold, Question, Video, load
from harness.data.write import DatasetParts, write
from harness.evaluation import report
from harness.evaluation.executor import Evaluator
from harness.models.hub import offline_models
from policies import library
from policies.contract import Budget, Utterance, Window
from sandbox import make_bundle
from sandbox.interface import Sandbox

COUNTS = (2, 3, 4, 5, 10)
THINGS = ("mug", "plate", "knife", "towel", "phone", "book", "lamp", "chair", "bag", "hat")


def asked(name: str, choices: list[str], answer: str, text: str = "What did Tasha wash last?") -> tuple[Question, Gold]:
    letters = dict(zip("ABCDEFGHIJ", choices, strict=False))
    return Question(name, "v1", "EventRecall", text, letters, 420.0), Gold(answer, ((300.0, 330.0),))


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    windows = [
        Window(
            n, n * 30.0, n * 30.0 + 30, (f"Tasha washes the {thing}.",), (Utterance("Tasha", f"Done, {thing}."),), False
        )
        for n, thing in enumerate(THINGS)
    ] + [
        Window(10, 300.0, 330.0, ("我洗餐具，Tasha在看我。", ""), (Utterance("其他人", "好啊"),), False),
        Window(11, 330.0, 360.0, ("",), (), False),
        Window(12, 360.0, 390.0, ("我拿起手机",), (), False),
        Window(13, 390.0, 420.0, ("Tasha sits.",), (), False),
    ]
    questions = [asked(f"c{count}", list(THINGS[:count]), "ABCDEFGHIJ"[count - 1]) for count in COUNTS]
    questions += [
        asked("equal", ["mug", "Mug", "plate", "hat"], "D"),
        asked("empty", ["mug", "", "plate", "hat"], "D"),
        asked("chinese", ["餐具", "手机", "我", "好"], "A", "我洗了什么？"),
        asked("blank", ["", " "], "A", "Which?"),
        asked("signs", ["{0}", "%s", "[red]x[/red]", "\\n"], "C", "{question} %d [bold]?"),
    ]
    folder = tmp_path_factory.mktemp("odd") / "data"
    write(
        DatasetParts("odd", {"made": "by hand"}, [Video("v1", 420.0, tuple(windows))], {"development": questions}),
        folder,
    )
    return load(folder)


def test_the_check_says_what_is_odd_and_that_it_can_be_used(odd: Dataset) -> None:
    found = {(problem.file, problem.line, problem.what) for problem in check(odd.path)}
    questions = "questions/development.jsonl"
    assert found == {
        (questions, 6, "identical choices"), (questions, 7, "an empty choice"), (questions, 9, "identical choices"),
        (questions, 9, "an empty choice"), ("windows/v1.jsonl", 12, "its captions and transcript are all empty"),
    }  # fmt: skip


@pytest.mark.parametrize("name", library.names())
def test_every_policy_answers_with_a_letter_of_the_question(
    odd: Dataset, sandboxes: Callable[[str], Sandbox], name: str
) -> None:
    evaluator = Evaluator(odd, sandboxes("bubblewrap"), offline_models(), Budget(), 0, 1)
    evaluation = evaluator.evaluate(make_bundle(library.load(name)), "development", f"odd/{name}")
    letters = {question.id: set(question.choices) for question in odd.questions("development")}
    assert len(evaluation.items) == len(letters)
    for item in evaluation.items:
        assert item.verdict == "OK", item
        assert item.choice is None or item.choice in letters[item.question], item
    assert report.figures(evaluation)["questions"] == len(letters)
    for table in (report.overview, report.types, report.routes, report.parts):
        Console(file=io.StringIO(), width=100).print(table({name: evaluation}))
