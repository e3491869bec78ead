"""A run whose every text is hostile, made by the real store over a real data set, and a real Chromium."""

from __future__ import annotations

import os
import random
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.agents.interface import Hypothesis, Malformed, Proposal
from harness.data.native import Dataset, Gold, Question, Video, load
from harness.data.write import DatasetParts, write
from harness.evaluation.outcomes import OFFLINE_READER, Cost, Evaluation, Item
from harness.gate.interface import Decision, Finding, StageVerdict
from harness.models.interface import Role, Usage
from harness.models.replies import ReplyStore
from harness.outcomes import Gated, Measured, Promoted, Proposed, Recalled, Remembered, TakenIn
from harness.state.manifest import DataRef, RunManifest
from harness.state.store import RunStore
from meta_memory.records import Attempt
from policies.contract import Utterance, Window
from principles.h0 import install
from sandbox.interface import Verdict
from tests.report.browser import HOW, Chromium, find

HOSTILE = (
    "</script><script>alert(1)</script><img src=//evil.example/x onerror=alert(2)>&lt;b&gt; ]]> --> "
    "\x1b[31mred\x1b]8;;http://evil.example\x07link\x07 \u202egnp.exe\u2066 \u2028 \u200bשלום مرحبا {{ 7*7 }} "
    "[bold]x[/] javascript:alert(3) \" ' ` <!--<script> \x00 \ud800"
)
"""Markup, script ends, terminal escapes, hidden and right-to-left characters, templates, a lone surrogate."""
STORABLE = HOSTILE.replace("\ud800", "").replace("\x00", "")
"""The same as far as a data set or a file of a candidate may hold it."""
WINDOWS = 60
QUESTIONS = 24


def make_data(folder: Path) -> Dataset:
    windows = tuple(
        Window(k, 30.0 * k, 30.0 * (k + 1), (f"{k} {STORABLE}",), (Utterance(STORABLE[:150], STORABLE),), False)
        for k in range(WINDOWS)
    )
    asked = [
        Question(f"q{n}", "v1", "EventRecall", f"{n} {STORABLE}", {"A": STORABLE, "B": "plain"}, 1_800.0)
        for n in range(QUESTIONS)
    ]
    gold = [(question, Gold("A", ())) for question in asked]
    write(DatasetParts("hostile", {"made": "by hand"}, [Video("v1", 1_800.0, windows)], {"development": gold}), folder)
    return load(folder)


def make_evaluation(
    right: int, seed: int, split: str = "development", text: str = HOSTILE, n: int = QUESTIONS
) -> Evaluation:
    draw = random.Random(seed)
    items = [
        Item(
            question=f"q{k}", video="v1", type="EventRecall", verdict=Verdict.CRASH if k == n - 1 else Verdict.OK,
            choice=None if k == n - 1 else "AB"[k >= right], correct=k < right, route=text, hit=None,
            evidence=tuple(draw.sample(range(WINDOWS), 12)), detail=text if k == n - 1 else "",
            answering=Cost(requests=1, prompt_tokens=1_000 + 100 * seed, estimated=True), seconds=0.01 * (seed + 1),
        )
        for k in range(n)
    ]  # fmt: skip
    return Evaluation(
        policy="p" * 64, split=split, data="d", runtime_digest="r" * 64, sandbox="none", reader=OFFLINE_READER,
        items=tuple(items),
    )  # fmt: skip


class Maker:
    """Writes iterations into a run, every text hostile."""

    def __init__(self, store: RunStore) -> None:
        self.store = store
        self.commits: dict[int, str] = {}

    def start(self) -> None:
        self.taken(0, {"policy.py": b"class Policy: ...\n"})
        self.measured(0, "develop", make_evaluation(6, 0))
        self.measured(0, "validate", make_evaluation(6, 0, "validation"))

    def taken(self, k: int, files: dict[str, bytes]) -> str:
        tree = self.store.lineage.intake(files)
        commit = self.store.lineage.commit(tree, (), HOSTILE, {"Iteration": str(k)}, k)
        refs = {"refs/heads/main": commit} if k == 0 else {f"refs/heads/candidate/{k:04d}-x": commit}
        taken = TakenIn(summary=HOSTILE, refs=refs, tree=tree, commit=commit, branch=HOSTILE, bundle="b")
        self.store.commit_stage(k, "intake", taken, summary=HOSTILE, refs=refs)
        self.commits[k] = commit
        return tree

    def measured(self, k: int, stage: str, evaluation: Evaluation, rejected: bool = False) -> None:
        found = Measured(summary=HOSTILE, rejected=rejected, evaluation=evaluation, reasons=(HOSTILE, "second reason"))
        self.store.commit_stage(k, stage, found, summary=HOSTILE)

    def proposed(self, k: int, parent: int, code: str) -> None:
        recalled = Recalled(summary=HOSTILE, parent=parent, attempts=(), started=float(k))
        self.store.commit_stage(k, "recall", recalled, summary=HOSTILE)
        hypothesis = Hypothesis(
            title=HOSTILE, what=HOSTILE + "\nsecond line", why=HOSTILE, expected_accuracy=HOSTILE, rule_at_risk=HOSTILE
        )
        proposal = Proposal(hypothesis=hypothesis, files={"policy.py": code}, author=HOSTILE)
        self.store.commit_stage(k, "propose", Proposed(summary=HOSTILE, proposal=proposal, malformed=None), summary="x")

    def gated(self, k: int, stage: str, decision: Decision) -> None:
        finding = Finding(rule="S03", path="policy.py", line=2, message=HOSTILE)
        verdict = StageVerdict(stage=stage, decision=decision, findings=(finding,), reason=HOSTILE, decided_by=HOSTILE)
        self.store.commit_stage(k, stage, Gated.of(verdict), summary=HOSTILE)

    def remembered(self, k: int, parent: int, outcome: str, **more: Any) -> None:
        attempt = Attempt(
            iteration=k, parent=parent, title=HOSTILE, hypothesis=HOSTILE, outcome=outcome, cause=HOSTILE,
            rules=("S03",) if outcome == "static" else (), lesson=HOSTILE, **more,
        )  # fmt: skip
        done = Remembered(summary=HOSTILE, spent_tokens=5, spent_dollars=0.5)
        self.store.commit_stage(k, "remember", done, summary=HOSTILE, attempt=attempt)

    def candidate(self, k: int, parent: int, right: int, outcome: str) -> None:
        code = f"# {STORABLE}\nclass Policy:\n    x = '''{k}'''\n--- a/b\n"
        self.proposed(k, parent, code)
        tidy = "".join(c for c in code if c.isprintable() or c == "\n")  # what intake lets in
        self.taken(k, {"policy.py": tidy.encode()})
        self.gated(k, "static", Decision.REJECT if outcome == "static" else Decision.APPROVE)
        if outcome != "static":
            self.measured(k, "develop", make_evaluation(right, k), outcome == "develop")
        if outcome == "promoted":
            self.measured(k, "validate", make_evaluation(right, k, "validation"))
            refs = {f"refs/tags/frontier/{k:04d}": self.commits[k]}
            promoted = Promoted(summary="promoted", frontier=(0, k), commit=self.commits[k], refs=refs)
            self.store.commit_stage(k, "promote", promoted, summary="promoted", refs=refs)
        self.remembered(k, parent, outcome, dev_delta=None if outcome == "static" else 0.01)


def make_run(folder: Path, correctness: bool = False, profile: str = "offline") -> Path:
    """Four closed iterations (promoted, develop, static, malformed) and a fifth that goes on."""
    dataset = make_data(folder / "data" / "hostile")
    run = folder / "runs" / "hostile"
    hashes = install(run, ())
    made = RunManifest(
        name=HOSTILE.replace("\ud800", ""), created="2026-01-01T00:00:00+00:00", seed=7, parent="v00", profile=profile,
        config={"author": {"correctness": correctness}}, runtime_digest="r" * 64, sandbox=STORABLE, h0=hashes,
        data=DataRef(name="hostile", digest=dataset.digest, path="data/hostile"),
    )  # fmt: skip
    now = iter(range(1_000_000_000, 2_000_000_000))
    with RunStore.create(run, made, lambda: float(next(now))) as store:
        maker = Maker(store)
        maker.start()
        maker.candidate(1, 0, 10, "promoted")
        maker.candidate(2, 1, 8, "develop")
        maker.candidate(3, 1, 0, "static")
        malformed = Malformed(reason=HOSTILE, author=HOSTILE, attempts=3, raw=HOSTILE)
        store.commit_stage(
            4, "propose", Proposed(summary=HOSTILE, rejected=True, proposal=None, malformed=malformed), summary="x"
        )
        maker.remembered(4, 1, "malformed")
        maker.proposed(5, 1, "class Policy: ...\n")
    return run


def book(run: Path) -> None:
    """Two calls of a model, one of them lost."""
    replies = ReplyStore(run / "replies.db", lambda: 1.0)
    for number, (role, scope) in enumerate([(Role.RESEARCHER, "0001/propose"), (Role.ANSWER, f"0001/{STORABLE[:40]}")]):
        worst = Usage(1, 1_000, 500, 0, 0, 0.5, True)
        row = replies.intend(role, scope, f"d{number}", ("m", "e"), {}, worst, 1.0)
        if number == 0:
            replies.store(row, Usage(1, 700, 30, 0, 0, 0.25, False), 1.0, {})
        else:
            replies.lost(row, worst, 1.0, "lost")
    replies.close()


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = make_run(tmp_path_factory.mktemp("hostile"))
    book(run)
    return run


@pytest.fixture
def new_run(tmp_path: Path) -> Callable[..., Path]:
    return lambda **settings: make_run(tmp_path, **settings)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    program = find()
    if program is None:
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing(f"no Chromium here, so the report is not looked at in a browser: {HOW}")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        browser = Chromium(program, Path(profile))
        yield browser
        browser.close()
