"""The smoke run in a real sandbox: what it rejects, and that it tells behaviours apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from harness.data.lifelog import make_lifelog
from harness.data.native import Dataset, load
from harness.evaluation.executor import Evaluator
from harness.gate.interface import Decision
from harness.gate.smoke import broken, check, sample
from harness.models.hub import offline_models
from policies import library
from policies.contract import Budget
from sandbox.bundle import make_bundle
from sandbox.interface import Verdict

HEAD = "from policies.contract import *\n"
POLICY = HEAD + (
    "class Policy:\n    def __init__(self, setup):\n        self.seen = []\n"
    "    def observe(self, windows):\n        self.seen += windows\n    def settle(self):\n        pass\n"
    "    def answer(self, query):\n        {answer}\n"
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    folder = tmp_path_factory.mktemp("data") / "life"
    make_lifelog(folder, seed=5, scale=0.2)
    return load(folder)


@pytest.fixture(scope="module")
def evaluator(data: Dataset, sandboxes: Callable[[str], Any]) -> Iterator[Evaluator]:
    yield Evaluator(data, sandboxes("bubblewrap"), offline_models(), replace(Budget(), reads=1), seed=1, workers=1)


def smoke(evaluator: Evaluator, data: Dataset, files: dict[str, bytes] | str) -> tuple[Any, str]:
    if isinstance(files, str):
        files = {"policy.py": POLICY.format(answer=files).encode()}
    chosen = sample(data, "development", 8, seed=1)
    return check(evaluator, make_bundle(files), "development", chosen, "0001/smoke")


def test_the_sample_is_small_early_and_the_same_for_all(data: Dataset) -> None:
    chosen = sample(data, "development", 5, seed=1)
    assert chosen == sample(data, "development", 5, seed=1) and len(set(chosen)) == 5
    questions = {q.id: q for q in data.questions("development")}
    videos = {questions[i].video for i in chosen}
    assert len(videos) == 1
    mine = sorted((q for q in questions.values() if q.video in videos), key=lambda q: (q.time, q.id))
    early = mine[: 6 * 5]
    assert set(chosen) <= {q.id for q in early}
    assert len({questions[i].type for i in chosen}) == min(5, len({q.type for q in early}))
    assert {sample(data, "development", 5, seed=s) for s in range(5)} != {chosen}


@pytest.mark.parametrize("name", ["v00", "v01"])
def test_policies_that_work_pass_and_repeat(name: str, evaluator: Evaluator, data: Dataset) -> None:
    verdict, behaviour = smoke(evaluator, data, library.load(name))
    assert verdict.decision is Decision.APPROVE, verdict
    assert smoke(evaluator, data, library.load(name))[1] == behaviour


def test_behaviours_differ_where_answers_evidence_or_contexts_do(evaluator: Evaluator, data: Dataset) -> None:
    bodies = [
        "return Answer('A', 'x')",
        "return Answer('B', 'x')",
        "return Answer('A', 'x', (self.seen[0].index,))",
        "return Answer((yield Read(query.question, query.choices, 'one')).choice, 'x')",
        "return Answer((yield Read(query.question, query.choices, 'two')).choice, 'x')",
    ]
    assert len({smoke(evaluator, data, body)[1] for body in bodies}) == len(bodies)
    assert smoke(evaluator, data, bodies[0])[1] == smoke(evaluator, data, "c = 'A'; return Answer(c, 'x')")[1]


@pytest.mark.parametrize(
    ("answer", "rule"),
    [
        ("return Answer(self.seen[0].nothing, 'x')", "K01"),
        ("return 'A'", "K01"),
        ("raise SystemExit(0)", "K01"),
        ("return Answer(None, 'x')", "K05"),
        ("return Answer('Z', 'x')", "K01"),
        ("yield Read(query.question, query.choices, 'a'); yield Read(query.question, query.choices, 'b')", "K06"),
        ("reply = yield Generate((Message('user', 'x'),)); return Answer('A', reply.text)", "K06"),
        ("x = [bytearray(1 << 20) for _ in range(1 << 12)]; return Answer('A', 'x')", "K0"),
    ],
)
def test_what_is_rejected(answer: str, rule: str, evaluator: Evaluator, data: Dataset) -> None:
    verdict, _ = smoke(evaluator, data, answer)
    assert verdict.decision is Decision.REJECT
    assert verdict.findings[0].rule.startswith(rule), verdict
    assert all(f.message.isprintable() for f in verdict.findings)


@pytest.mark.parametrize(
    ("verdict", "detail", "rule"),
    [
        (Verdict.CRASH, "ValueError: x", "K01"),
        (Verdict.TIMEOUT, "", "K02"),
        (Verdict.OOM, "", "K03"),
        (Verdict.PROTOCOL, "", "K04"),
        (Verdict.OUTPUT_LIMIT, "", "K04"),
        (Verdict.CRASH, "OverBudget: more than 3", "K06"),
    ],
)
def test_each_verdict_has_its_rule(verdict: Verdict, detail: str, rule: str) -> None:
    assert [f.rule for f in broken([(Verdict.OK, ""), (verdict, detail)])] == [rule]


def test_a_hang_is_rejected(evaluator: Evaluator, data: Dataset) -> None:
    verdict, _ = smoke(evaluator, data, "\n        while True: pass")
    assert [f.rule for f in verdict.findings] == ["K02"]


def test_abstaining_now_and_then_is_no_fault(evaluator: Evaluator, data: Dataset) -> None:
    verdict, _ = smoke(evaluator, data, "return Answer('A' if len(query.question) % 2 else None, 'x')")
    assert verdict.decision is Decision.APPROVE
