"""Researcher, implementer and reviewer over the whole path of a run, played by one scripted HTTP endpoint."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness import history, loop
from harness.config import resolve
from harness.gate.interface import Decision
from harness.models.interface import CapReached, ModelError
from harness.opening import searching
from harness.outcomes import Gated, Measured, Proposed
from harness.progress import Progress
from harness.rounds import intakes, reached, taken_in
from harness.state.store import RunStore
from harness.state.verify import verify_chain
from tests.agents.player import called
from tests.endpoint import Endpoint
from tests.endtoend.troupe import IDEA, PRIVATE, WANTED, Scene, Troupe, handing_in, policy

ASKS = {"verdict": "revise", "places": [WANTED]}
CRASHES = "\n\ndef _best(memory, query):\n    return top(bm25_question(memory, query), len(query.choices) // 0)\n"
READING = [("read", {"path": f"policies/blocks/{name}.py"}) for name in ("events", "extract", "fields", "packing")]
SLOW_DOWN = {"status": 429, "headers": {"Retry-After": "0.2"}, "body": {"error": {"message": "slow down"}}}
ENDLESS = Scene([[("list", {})]])
ROOM = 20_000
"""Tokens left under the cap: for some of an endless conversation, not for all of it."""

SCENES: dict[str, tuple[Scene, str]] = {
    "straight": (
        Scene(
            researcher=[
                [("list", {}), ("read", {"path": "policy.py"}), ("trace", {"number": 1}), ("compare", {})],
                [("recall", {"idea": "BM25"}), ("read", {"path": "/etc/passwd"}), ("shell", {"command": "id"})],
                [("propose", IDEA)],
            ],
            implementer=[
                [("edit", {"path": "policy.py", "search": "nowhere", "replace": ""}), ("list", {})],
                called([("write", {"path": "policy.py", "content": policy(12)}), ("run", {"whole": False})], PRIVATE),
                [("submit", {})],
            ],
        ),
        "",
    ),
    "revised": (
        Scene(handing_in(2), reviser=handing_in(5), reviews=[ASKS, {"verdict": "approve", "made": [True]}]),
        "",
    ),
    "never made": (
        Scene(
            handing_in(1),
            reviser=[*handing_in(3), *handing_in(4)],
            reviews=[ASKS, {"verdict": "revise", "made": [False]}],
        ),
        "R01 not made: choose three windows more",
    ),
    "no revision": (Scene(handing_in(6), reviews=[ASKS]), "no revision was handed in: 3 replies in a row"),
    "refusal": (
        Scene([{"finish_reason": "stop", "message": {"content": None, "refusal": "I cannot help with that."}}]),
        "no candidate was handed in: 3 replies in a row",
    ),
    "cut off": (
        Scene([{**called([("submit", {})]), "finish_reason": "length"}]),
        "no candidate was handed in: 3 replies in a row",
    ),
    "endless": (ENDLESS, "no candidate was handed in: the limit of 6 steps"),
    "overflow": (Scene([READING, *handing_in(12)], window=40_000), "as attempt 1"),
    "never fits": (Scene([READING], window=100), "no hypothesis was handed in: the conversation no longer fits"),
    "storm": (Scene(handing_in(12), storm=[SLOW_DOWN] * 3), "as attempt 1"),
    "mended": (Scene(handing_in(7, CRASHES), mender=handing_in(7)), ""),
    "never mended": (
        Scene(handing_in(8, CRASHES), mender=[*handing_in(9, CRASHES), *handing_in(10, CRASHES)]),
        "K01 CRASH on 2 of 2: ZeroDivisionError",
    ),
}
"""What is played in each iteration, and what the record says of the cause (empty: it went on to be measured)."""
HELD = len(SCENES) + 1
"""The iteration in which the endpoint first hangs, and then does not."""


def settings(folder: Path, url: str, caps: str = "tokens = 3000000") -> dict[str, str]:
    roles = "".join(
        f'[profiles.test.roles.{role}]\nmodel = "{role}"\nbase_url = "{url}"\ntimeout = 6.0\ndeadline = 8.0\n'
        for role in ("researcher", "implementer", "reviewer")
    )
    author = '[author]\nform = "tools"\nsteps = 6\ntokens = 150000\n'
    gate = "[gate]\nsmoke_questions = 2\nrevisions = 2\n"
    (folder / "harness.toml").write_text(f"{author}{gate}[caps]\n{caps}\n{roles}")
    return {"profile": "test", "sandbox": "bubblewrap", "workers": "1"}


@dataclass
class Stage:
    """Where the run stands, told to the troupe: a scene for each iteration."""

    troupe: Troupe
    inner: Progress

    def stage(self, iteration: int, name: str) -> None:
        if name == "recall":
            scenes = [scene for scene, _ in SCENES.values()] + [Scene(handing_in(12)), ENDLESS]
            self.troupe.scene = scenes[iteration - 1]
        self.inner.stage(iteration, name)

    def questions(self, done: int, total: int) -> None:
        self.inner.questions(done, total)

    def committed(self, iteration: int, name: str, outcome: Any) -> None:
        self.inner.committed(iteration, name, outcome)


def search(folder: Path, data: Path, troupe: Troupe, iterations: int, caps: str = "tokens = 3000000") -> None:
    flags = {**settings(folder, troupe.endpoint.url, caps), "data": str(data)}
    watcher = Stage(troupe, Progress(Console(quiet=True), iterations, lambda: ""))
    with searching(resolve(flags, {}, folder / "harness.toml"), folder / "one", watcher) as opened:
        loop.run(opened, iterations)


@dataclass
class Played:
    """One run over all scenes."""

    folder: Path
    troupe: Troupe
    held: str
    """What a hanging endpoint led to."""
    capped: str
    """What a cap led to."""
    sent_at_cap: int


def hanging(body: dict[str, Any]) -> str:
    time.sleep(9.0)
    return ""


def spent(run: Path) -> int:
    """Tokens booked in a run, all roles together."""
    with RunStore.open(run, write=False) as opened:
        return sum(row["prompt_tokens"] + row["completion_tokens"] for row in history.spent(opened).values())


@pytest.fixture(scope="module")
def played(few_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    folder = tmp_path_factory.mktemp("played")
    endpoint = Endpoint()
    troupe = Troupe(endpoint)
    try:
        search(folder, few_data, troupe, len(SCENES))
        endpoint.say = hanging
        with pytest.raises(ModelError) as stopped:
            search(folder, few_data, troupe, HELD)
        endpoint.say = troupe.say
        search(folder, few_data, troupe, HELD)
        cap, before = spent(folder / "one") + ROOM, len(endpoint.requests)
        with pytest.raises(CapReached) as capped:
            search(folder, few_data, troupe, HELD + 1, f"tokens = {cap}")
        sent = len(endpoint.requests) - before
        with pytest.raises(CapReached):
            search(folder, few_data, troupe, HELD + 1, f"tokens = {cap}")
        assert len(endpoint.requests) - before == sent  # nothing more is sent, however often it is tried
        assert spent(folder / "one") <= cap
        yield Played(folder / "one", troupe, str(stopped.value), str(capped.value), sent)
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()


@pytest.fixture
def store(played: Played) -> Iterator[RunStore]:
    with RunStore.open(played.folder, write=False) as opened:
        yield opened


def test_every_prompt_held_what_its_role_must_be_shown(played: Played, few_data: Path) -> None:
    assert played.troupe.lacking == []
    assert len(played.troupe.endpoint.requests) < 150
    said = json.dumps(played.troupe.endpoint.requests, ensure_ascii=False)
    for split in ("development", "validation", "test"):
        rows = [json.loads(row) for row in (few_data / "gold" / f"{split}.jsonl").read_text().splitlines()]
        assert rows and not any(row["id"] in said for row in rows)
    told = "\n".join(played.troupe.results)
    for text in (
        "search stands 0 times",
        "there is no file",
        "there is no tool shell",
        "verdicts: OK 2",
        "starting policy v00",
    ):
        assert text in told, text


@pytest.mark.parametrize("name", SCENES)
def test_each_scene_has_one_clear_outcome(name: str, store: RunStore) -> None:
    k = list(SCENES).index(name) + 1
    cause = SCENES[name][1]
    attempt = store.attempts()[k - 1]
    assert cause in attempt.cause and attempt.cause.isprintable(), attempt
    expected = {
        "overflow": "duplicates",
        "storm": "duplicates",
        "never made": "reviewer",
        "no revision": "reviewer",
        "never mended": "smoke",
    }
    if not cause:
        assert store.stage(k, "develop", Measured) is not None
    else:
        assert attempt.outcome == expected.get(name, "malformed")
    rules = {"reviewer": ("R01",), "smoke": ("K01",)}
    assert attempt.rules == rules.get(expected.get(name, ""), attempt.rules)


def test_a_revision_is_a_commit_after_the_first_and_what_is_approved_is_what_is_measured(store: RunStore) -> None:
    first, second = intakes(store, 2)
    assert first.tree != second.tree and (first.turn, second.turn) == (0, 1) and first.branch == second.branch
    stages = list(reached(store, 2))
    gate = ["static", "duplicates", "smoke", "dynamic", "reviewer"]
    again = [f"{stage}-1" for stage in gate]
    assert stages[2:16] == ["intake", *gate, "revise-1", "intake-1", *again, "develop"]
    looks = [store.stage(2, name, Gated) for name in ("reviewer", "reviewer-1")]
    assert [look.verdict.decision for look in looks if look] == [Decision.REVISE, Decision.APPROVE]
    measured = store.stage(2, "develop", Measured)
    assert measured is not None and measured.evaluation.policy == second.bundle
    assert "5)" in store.lineage.read(second.tree)["policy.py"].decode().splitlines()[-1]
    proposed, revised = store.stage(2, "propose", Proposed), store.stage(2, "revise-1", Proposed)
    assert proposed and revised and proposed.proposal and revised.proposal
    assert proposed.proposal.hypothesis == revised.proposal.hypothesis
    commit = store.lineage.commit_of(second.commit)
    assert commit.parents == (first.commit,) and commit.trailers["Revision"] == "1" and WANTED["what"] in commit.message
    assert list(reached(store, 3))[-2] == "reviewer-2" and len({taken.tree for taken in intakes(store, 3)}) == 3
    assert verify_chain(store.folder).ok
    for k in (2, 3, 4):
        taken = taken_in(store, k)
        assert taken is not None and store.attempts()[k - 1].tree == taken.tree


def test_what_does_not_run_goes_back_to_its_author_with_the_error(store: RunStore) -> None:
    mended, never = (list(SCENES).index(name) + 1 for name in ("mended", "never mended"))
    before = ["intake", "static", "duplicates", "smoke"]
    after = [f"{stage}-1" for stage in ("revise", *before, "dynamic", "reviewer")]
    assert list(reached(store, mended))[2:14] == [*before, *after, "develop"]
    first, second = (store.stage(mended, name, Gated) for name in ("smoke", "smoke-1"))
    assert first and second and first.asks and not first.rejected and second.verdict.decision is Decision.APPROVE
    assert list(reached(store, never))[-2] == "smoke-2"
    last = store.stage(never, "smoke-2", Gated)
    assert last is not None and last.rejected and not last.asks


def test_every_token_is_booked_and_none_beyond_a_cap(played: Played, store: RunStore) -> None:
    booked = history.spent(store)
    for role in ("implementer", "reviewer"):
        assert booked[role]["prompt_tokens"] + booked[role]["completion_tokens"] == played.troupe.paid[role]
    assert booked["researcher"]["prompt_tokens"] > 0
    assert "no reply" in played.held and "researcher" in played.held
    assert "caps.tokens reached" in played.capped and 0 < played.sent_at_cap < 6
    assert store.attempts()[HELD - 1].outcome == "duplicates"  # it went on after the hang, and stopped at the cap
    assert len(store.attempts()) == HELD


def test_killed_between_two_looks_it_pays_for_nothing_twice(few_data: Path, tmp_path: Path) -> None:
    endpoint = Endpoint()
    troupe = Troupe(endpoint)
    forked = multiprocessing.get_context("fork")
    running: list[Any] = []
    kills = ["first look", "reviser", "second look"]
    play = troupe.say
    troupe.scene, _ = SCENES["revised"]

    def say(body: dict[str, Any]) -> Any:
        part = troupe.part(body["model"], str(body["messages"][0]["content"]))
        if part in kills:
            kills.remove(part)
            os.kill(running[-1].pid, signal.SIGKILL)
        return play(body)

    endpoint.say = say
    try:
        for _ in range(4):
            running.append(forked.Process(target=search, args=(tmp_path, few_data, troupe, 1)))
            running[-1].start()
            running[-1].join(300)
        assert [process.exitcode for process in running] == [-9, -9, -9, 0] and not kills
        sent = Counter(json.dumps(body, sort_keys=True) for body in endpoint.requests)
        assert sum(sent.values()) - len(sent) == 3  # the calls in flight, each once more
        with RunStore.open(tmp_path / "one", write=False) as store:
            look = store.stage(1, "reviewer-1", Gated)
            assert look is not None and look.verdict.decision is Decision.APPROVE
            assert store.stage(1, "develop", Measured) is not None
        assert troupe.lacking == []
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()
