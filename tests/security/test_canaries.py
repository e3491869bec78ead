"""Marks planted in gold, held-out files, ids, environment and host paths are found nowhere inside.

A policy goes through the real evaluation and prints every mark that it can reach: in its whole memory and its
parent's, in all files, in what /proc tells of processes, in its input. It finds those of the windows and questions
that it was given, which shows that it searches well, and no other.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from harness.data.native import Dataset, Gold, Question, Video, load
from harness.data.write import DatasetParts, write
from harness.evaluation.executor import Evaluator
from harness.evaluation.outcomes import Evaluation
from harness.models.hub import offline_models
from policies.contract import Budget, Utterance, Window
from sandbox.bundle import make_bundle
from sandbox.interface import Sandbox, Verdict
from sandbox.open import open_sandbox
from tests.conftest import BACK_ENDS, LIMITS, policy

ORACLE = 918_273.645
"""A moment in the gold files that stands nowhere else; like the marks, the policy knows it as an expression only."""
SEARCHER = policy(
    """
    places = {"memory": memory("self"), "parent": memory(os.getppid()), "input": ahead(), "processes": processes()}
    if query.time > 100:
        places["files"] = files()
    for where, pieces in places.items():
        size, found = 0, set()
        for piece in pieces:
            size += len(piece)
            if b"kanarie-" in piece or b"918273." in piece:  # much faster than the expression
                found.update(MARK.findall(piece))
        print(int(query.time), where, size, *(mark.decode() for mark in sorted(found)), flush=True)
    return Answer("A", "x")
    """,
    top=r"""
    import re, stat
    MARK = re.compile(rb"kanarie-[a-z]+-[0-9a-f]{16}|918273[.]645")
    def memory(process):
        try:
            maps, held = open(f"/proc/{process}/maps"), open(f"/proc/{process}/mem", "rb", 0)
        except OSError:
            return
        with maps, held:
            for line in maps:
                span, rights = line.split()[:2]
                if rights.startswith("rw"):
                    first, last = (int(end, 16) for end in span.split("-"))
                    held.seek(first)
                    yield held.read(last - first)
    def ahead():
        os.set_blocking(0, False)
        try:
            yield os.read(0, 1 << 20)
        except BlockingIOError:
            pass
        os.set_blocking(0, True)
    def files():
        with open("/tmp/planted", "w") as file:
            file.write("kanarie-" + "planted-" + "0" * 16)
        for folder, folders, names in os.walk("/"):
            if folder == "/":
                folders.remove("proc")
            for name in names:
                path = f"{folder}/{name}"
                yield os.fsencode(path)
                try:
                    if stat.S_ISREG(os.lstat(path).st_mode):
                        with open(path, "rb") as file:
                            yield file.read()
                except OSError:
                    pass
    def processes():
        for folder, folders, names in os.walk("/proc"):
            for name in {"environ", "cmdline", "mountinfo", "maps", "status", "cgroup", "hostname"}.intersection(names):
                try:
                    with open(f"{folder}/{name}", "rb") as file:
                        yield file.read(1 << 20)
                except OSError:
                    pass
    """,
)


@dataclass
class Marks:
    """A mark of its own for each place."""

    made: dict[str, str] = field(default_factory=dict)

    def __call__(self, place: str) -> str:
        return self.made.setdefault(place, f"kanarie-{place}-{secrets.token_hex(8)}")


def marked_data(marks: Marks, folder: Path) -> Dataset:
    """Two development questions at 60 s and 120 s of a stream that goes on; two held-out splits; one more video."""

    def window(index: int, place: str) -> Window:
        said = (Utterance(marks(f"{place}speaker"), marks(f"{place}speech")),)
        return Window(index, index * 60.0, index * 60.0 + 60, (marks(f"{place}caption"),), said, False)

    def ask(place: str, video: str, time: float) -> tuple[Question, Gold]:
        choices = {"A": marks(f"{place}choice"), "B": "other"}
        question = Question(marks(f"{place}id"), video, "EventRecall", marks(f"{place}question"), choices, time)
        return question, Gold("A", ((ORACLE, ORACLE),))

    seen, unseen = marks("video"), marks("unseenvideo")
    videos = [
        Video(seen, 180.0, tuple(window(n, place) for n, place in enumerate(("first", "second", "future")))),
        Video(unseen, 60.0, (window(0, "unseen"),)),
    ]
    splits = {
        "development": [ask("first", seen, 60.0), ask("second", seen, 120.0)],
        "validation": [ask("validation", unseen, 60.0), ask("later", seen, 180.0)],
        "test": [ask("test", unseen, 60.0)],
    }
    write(DatasetParts(marks("name"), {"made": marks("origin")}, videos, splits), folder)
    return load(folder)


@pytest.fixture(params=BACK_ENDS)
def kind(request: pytest.FixtureRequest, sandboxes: Callable[[str], Sandbox]) -> str:
    """A back end that works here."""
    return sandboxes(request.param).name


def test_a_policy_finds_the_marks_of_what_it_was_given_and_no_other(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marks = Marks()
    data = marked_data(marks, tmp_path / marks("path") / "data")
    for name in ("OPENAI_API_KEY", "HARNESS_MODEL", "PYTHONPATH", "HTTP_PROXY"):
        monkeypatch.setenv(name, marks("environment"))
    (tmp_path / marks("path") / "gold.json").write_text(marks("hostfile"))
    sandbox = open_sandbox(kind, replace(LIMITS, answer_seconds=60.0, shard_seconds=120.0), 1, marks("run"))
    try:
        evaluator = Evaluator(data, sandbox, offline_models(), Budget(), seed=1, workers=1)
        evaluation = evaluator.evaluate(make_bundle({"policy.py": SEARCHER}), "development", marks("scope"))
    finally:
        sandbox.close()
    found = reached(evaluation)
    first = {marks(f"first{part}") for part in ("speaker", "speech", "caption", "question", "choice")}
    second = {marks(f"second{part}") for part in ("speaker", "speech", "caption", "question", "choice")}
    planted = "kanarie-planted-" + "0" * 16
    assert found[60]["memory"] - {planted} == first
    assert second <= found[120]["memory"] - {planted} <= first | second
    assert found[60]["parent"] - {planted} <= first
    assert found[120]["parent"] - {planted} <= first | second
    assert found[120]["files"] == {planted}
    for time in (60, 120):
        assert found[time]["input"] == found[time]["processes"] == set()


def reached(evaluation: Evaluation) -> dict[int, dict[str, set[str]]]:
    """Marks by query time and by where they were found; every search has looked at something."""
    assert [item.verdict for item in evaluation.items] == [Verdict.OK] * 2, evaluation
    found: dict[int, dict[str, set[str]]] = defaultdict(dict)
    for line in "".join(evaluation.logs).splitlines():
        time, where, size, *seen = line.split()
        assert int(size) > {"files": 10_000_000, "memory": 10_000_000, "processes": 1_000}.get(where, -1)
        found[int(time)][where] = set(seen)
    assert found[60].keys() == {"memory", "parent", "input", "processes"}
    assert found[120].keys() == {*found[60].keys(), "files"}
    return found
