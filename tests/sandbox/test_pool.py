"""The pool, and the channels in it: ready at once, used once, nothing left behind."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox import bubblewrap, cgroup, open_sandbox
from sandbox.bubblewrap import open_bubblewrap
from sandbox.interface import Channel, Ending, Sandbox, SandboxError
from sandbox.pool import REFILL_SECONDS, Pool
from sandbox.prelude import ENVIRONMENT, command, prelude
from tests.conftest import LIMITS, PLAIN, Laboratory, make_shard, policy


class Numbered:
    """A channel that only counts its closings."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.closed = 0

    def close(self) -> Ending:
        self.closed += 1
        return Ending(0, False, "")


def numbered(made: list[Numbered], fails: Callable[[int], bool] = lambda n: False) -> Callable[[], Channel]:
    def start() -> Channel:
        made.append(Numbered(len(made)))
        if fails(made[-1].number):
            raise SandboxError(f"start {made[-1].number}")
        return made[-1]  # type: ignore[return-value]

    return start


def test_every_channel_is_given_once_and_the_rest_are_closed() -> None:
    made: list[Numbered] = []
    pool = Pool(numbered(made), 2)
    taken: list[Channel] = []
    threads = [threading.Thread(target=lambda: taken.append(pool.take())) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    pool.close()
    assert len({id(channel) for channel in taken}) == 20
    assert [channel.closed for channel in made if channel in taken] == [0] * 20
    assert all(channel.closed == 1 for channel in made if channel not in taken)
    assert len(made) <= 20 + 2 + 1
    with pytest.raises(SandboxError, match="closed"):
        pool.take()


def test_a_retired_channel_is_ended_once_even_when_the_pool_is_closed() -> None:
    made: list[Numbered] = []
    pool = Pool(numbered(made), 1)
    early, late = pool.take(), pool.take()
    pool.retire(early)
    pool.close()
    pool.retire(late)
    assert [channel.closed for channel in made] == [1] * len(made)


def test_the_next_channel_is_started_a_little_later_unless_somebody_waits() -> None:
    made: list[Numbered] = []
    pool = Pool(numbered(made), 1)
    began = time.monotonic()
    pool.take()
    if time.monotonic() - began < REFILL_SECONDS / 2:
        assert len(made) == 1
    pool.take()
    assert len(made) == 2
    pool.wait()
    assert len(made) == 3
    pool.close()


def test_a_start_that_fails_is_tried_again_and_then_told_to_the_one_who_asks() -> None:
    made: list[Numbered] = []
    pool = Pool(numbered(made, lambda n: n < 2), 1)
    assert pool.take() is made[2]
    pool.close()
    pool = Pool(numbered([], lambda n: True), 1)
    for _ in range(2):
        with pytest.raises(SandboxError, match="start"):
            pool.take()
    pool.close()


def test_the_first_answer_from_a_pooled_channel_is_quick(lab: Laboratory) -> None:
    """5 ms on a quiet machine; here the best of a few, with room for a busy one."""
    best = 1.0
    for _ in range(5):
        time.sleep(0.5)
        began = time.monotonic()
        outcome = lab.run(PLAIN, make_shard(1, 1))
        best = min(best, time.monotonic() - began)
        assert outcome.questions[0].verdict == "OK"
    assert best < 0.1


def test_closing_leaves_no_process_and_no_group() -> None:
    try:
        sandbox = open_bubblewrap(LIMITS, 2)
    except SandboxError as error:
        pytest.skip(str(error))
    channel = sandbox.open()
    assert isinstance(channel, bubblewrap._BubblewrapChannel)
    pid = channel._process.pid
    first, second = channel.close(), channel.close()
    assert first is second
    sandbox.close()
    assert not Path(f"/proc/{pid}").exists()
    hierarchy = cgroup.find()
    if hierarchy is not None and channel._group is not None:
        assert not any(door.parent.exists() for door in channel._group.doors)


def test_a_channel_killed_from_outside_is_the_sandboxs_failure_and_the_question_is_asked_again() -> None:
    try:
        sandbox = open_bubblewrap(LIMITS, 1)
    except SandboxError as error:
        pytest.skip(str(error))
    lab = Laboratory(sandbox)
    kept: list[Channel] = []
    opening = sandbox.open

    def watched() -> Channel:
        kept.append(opening())
        if len(kept) == 1:
            threading.Timer(0.4, kept[0]._process.kill).start()  # type: ignore[attr-defined]
        return kept[-1]

    sandbox.open = watched  # type: ignore[method-assign]
    outcome = lab.run(policy("time.sleep(0.6)\nreturn Answer('A', 'x')"), make_shard(1))
    sandbox.close()
    assert [str(question.verdict) for question in outcome.questions] == ["OK"]
    assert len(kept) == 2


class Broken:
    """A back end that cannot open anything."""

    name = "broken"
    runtime_digest = ""
    label = "broken"
    limits = LIMITS

    def open(self) -> Channel:
        raise SandboxError("the engine is gone")


def test_a_sandbox_that_fails_says_nothing_about_the_candidate() -> None:
    sandbox: Sandbox = Broken()  # type: ignore[assignment]
    outcome = Laboratory(sandbox).run(PLAIN)
    assert [str(question.verdict) for question in outcome.questions] == ["SANDBOX_ERROR"] * 3
    assert outcome.questions[0].detail == "the engine is gone"


def test_without_bubblewrap_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(SandboxError, match="apt-get install -y bubblewrap"):
        open_sandbox("bubblewrap")


def test_the_prelude_is_the_runner_the_contract_and_the_blocks_and_nothing_of_the_machine() -> None:
    line = prelude().line
    assert line.count(b"\n") == 1
    assert b"sandbox/runner.py" in line
    assert b"policies/contract.py" in line
    assert b"policies/blocks/" in line
    assert b"gold" not in b" ".join(ENVIRONMENT[name].encode() for name in ENVIRONMENT)
    assert str(Path.cwd()).encode() not in line
    assert command("python3", "/wheels", {"RLIMIT_NPROC": 5})[-2:] == ["/wheels", "RLIMIT_NPROC=5"]
