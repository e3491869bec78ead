"""Fixtures shared by the rooms' tests: the sandbox's back ends, and a laboratory to run hostile policies in."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.data.egolife import import_egolife
from policies.contract import Budget, NoModel, Query, Refused, Reply, Request, Setup, Utterance, Window
from sandbox.bundle import make_bundle
from sandbox.interface import Limits, Sandbox, SandboxError, Shard, ShardOutcome
from sandbox.open import open_sandbox
from sandbox.stream import run_shard

LIMITS = Limits(
    memory_mb=192, pids=40, file_mb=4, answer_seconds=2.5, observe_seconds=3.5, shard_seconds=60.0, timeouts=2,
    output_bytes=8_388_608,
)  # fmt: skip
SETUP = Setup(Budget(), 7)
HEAD = "import os, sys, time, signal, random\nfrom policies.contract import *\n"
FORGER = """
import os, stat
def CHANNEL():
    "The protocol's private descriptor: the highest pipe that is not fd 0, 1 or 2."
    for number in range(3, 32):
        try:
            os.fstat(number)
            return number
        except OSError:
            pass
REQUEST = b'{"kind":"requests","requests":[{"type":"Embed","texts":["' + b'y' * 600000 + b'"],"frames":[]}]}\\n'
def ANSWER(query, choice="A"):
    line = '{"kind":"answer","query":"%s","choice":"%s","route":"f","evidence":[],"diagnostics":{}}\\n'
    return (line % (query, choice)).encode()
SETTLED = b'{"kind":"settled","status":0}\\n'
"""


SLOW = ("endtoend", "replay", "export", "ablating")
"""Rooms whose files start whole runs."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow files first, so that no worker is left alone with one of them at the end."""
    items.sort(key=lambda item: item.path.parent.name not in SLOW)


@dataclass
class RefusingHost:
    """No model at all; keeps what was asked."""

    requests: list[tuple[Request, Query | None]] = field(default_factory=list)

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        self.requests.append((request, query))
        return NoModel("no model in this test")


def make_shard(questions: int = 3, windows: int = 8, **settings: Any) -> Shard:
    """``windows`` windows of 30 s; the questions come at equal distances, the last at the very end."""
    stream = tuple(
        Window(n, n * 30.0, n * 30.0 + 30, (f"caption-{n}-é",), (Utterance("Ann", f"line-{n}"),), False)
        for n in range(windows)
    )
    queries = tuple(
        Query(f"q{n}", "EventRecall", "What?", {"A": "first", "B": "second"}, 30.0 * windows * (n + 1) / questions)
        for n in range(questions)
    )
    return Shard("shard", stream, queries, **settings)


def policy(answer: str = "return Answer('A', 'x')", *, observe: str = "pass", init: str = "pass", top: str = "") -> str:
    """The text of a policy whose methods have these bodies; ``self.windows`` holds what was observed."""

    def body(text: str) -> str:
        return textwrap.indent(textwrap.dedent(text).strip(), " " * 8)

    return (
        f"{HEAD}{textwrap.dedent(top)}\nclass Policy:\n"
        f"    def __init__(self, setup):\n        self.windows = []\n{body(init)}\n"
        f"    def observe(self, windows):\n        self.windows += windows\n{body(observe)}\n"
        f"    def settle(self):\n        pass\n"
        f"    def answer(self, query):\n{body(answer)}\n"
    )


def at_second(body: str) -> str:
    """Misbehave at the second of three questions only."""
    return policy(f"if query.id == 'q1':\n    {body}\nreturn Answer('A', 'x')")


PLAIN = policy()
"""Answers every question with A."""


@dataclass
class Laboratory:
    """Runs policies in one back end."""

    sandbox: Sandbox

    def run(self, source: str | dict[str, str], shard: Shard | None = None, host: Any = None) -> ShardOutcome:
        files = source if isinstance(source, dict) else {"policy.py": source}
        return run_shard(self.sandbox, make_bundle(files), shard or make_shard(), SETUP, host or RefusingHost())

    def one(self, answer: str, **parts: str) -> Any:
        """The outcome of a single question."""
        return self.run(policy(answer, **parts), make_shard(1)).questions[0]

    def look(self, answer: str, **parts: str) -> Any:
        """What the body put into ``found`` inside, carried out in the diagnostics."""
        outcome = self.one(f"{textwrap.dedent(answer)}\nreturn Answer('A', 'x', (), {{'f': found}})", **parts)
        assert outcome.verdict == "OK", outcome
        return outcome.answer.diagnostics["f"]

    def verdicts(self, source: str | dict[str, str], shard: Shard | None = None) -> list[str]:
        return [str(question.verdict) for question in self.run(source, shard).questions]


BACK_ENDS = ["bubblewrap", pytest.param("docker", marks=pytest.mark.docker)]


def _open(name: str) -> Sandbox:
    if name == "bubblewrap-rlimits":
        from sandbox.bubblewrap import open_bubblewrap

        return open_bubblewrap(LIMITS, 2, cgroups=False)
    return open_sandbox("docker" if name == "docker" else "bubblewrap", LIMITS, 2, "tests")


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[Callable[[str], Sandbox]]:
    """Opens each back end once. Where one is missing the test is skipped, but not in CI."""
    opened: dict[str, Sandbox] = {}

    def get(name: str) -> Sandbox:
        if name not in opened:
            try:
                opened[name] = _open(name)
            except SandboxError as error:
                if os.environ.get("CI") == "true" and os.environ.get("LVMH_TESTS_WITHOUT") != name:
                    raise
                pytest.skip(f"{name} does not work here: {error}")
        return opened[name]

    yield get
    for sandbox in opened.values():
        sandbox.close()


@pytest.fixture(params=BACK_ENDS)
def lab(request: pytest.FixtureRequest, sandboxes: Callable[[str], Sandbox]) -> Laboratory:
    """A laboratory over every back end."""
    return Laboratory(sandboxes(request.param))


@pytest.fixture
def has_cgroup() -> Callable[[Laboratory], bool]:
    """Whether the back end limits memory of all processes together, as its label says."""
    return lambda lab: "per process only" not in lab.sandbox.label


def letters(outcome: ShardOutcome) -> Sequence[str | None]:
    return [question.answer.choice if question.answer else None for question in outcome.questions]


@pytest.fixture(scope="session")
def egolife_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The real EgoLifeQA in the native format, imported once. Where it is missing the test is skipped, not in CI."""
    shared = Path(os.environ.get("LVMH_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    source = shared / "data" / "egolife"
    if not source.is_dir():
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing(f"no EgoLifeQA files at {source}; LVMH_SHARED names the folder that holds data/egolife")
    folder = tmp_path_factory.mktemp("egolife") / "egolife"
    import_egolife(source, folder)
    return folder
