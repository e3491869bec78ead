"""Attacks on the limits of the sandbox (memory, processes, time), on every back end: what is too much ends, and costs
its own question alone.
"""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from sandbox.bundle import make_bundle
from sandbox.interface import Sandbox, Verdict
from sandbox.session import Session
from tests.conftest import BACK_ENDS, LIMITS, PLAIN, SETUP, Laboratory, RefusingHost, policy

Group = Callable[[Laboratory], bool]


@pytest.fixture(params=[*BACK_ENDS, "bubblewrap-rlimits"])
def lab(request: pytest.FixtureRequest, sandboxes: Callable[[str], Sandbox]) -> Laboratory:
    """Every back end, the one without control groups too."""
    return Laboratory(sandboxes(request.param))


def test_one_memory_hog_is_ended_and_costs_its_question(lab: Laboratory, has_cgroup: Group) -> None:
    source = policy("if query.id == 'q1':\n    block = b'x' * (1 << 30)\nreturn Answer('A', 'x')")
    outcome = lab.run(source)
    assert [str(q.verdict) for q in outcome.questions] == ["OK", "OOM" if has_cgroup(lab) else "CRASH", "OK"]
    assert "MB" in outcome.questions[1].detail if has_cgroup(lab) else "MemoryError" in outcome.questions[1].detail
    assert outcome.restarts == 0


def test_a_memory_hog_in_observe_costs_all(lab: Laboratory, has_cgroup: Group) -> None:
    outcome = lab.run(policy(observe="self.block = b'x' * (1 << 30)"))
    assert {str(q.verdict) for q in outcome.questions} == {"OOM" if has_cgroup(lab) else "CRASH"}


def test_memory_of_many_children_is_summed_or_the_label_says_not(lab: Laboratory, has_cgroup: Group) -> None:
    lab.sandbox.probe()
    outcome = lab.one(
        """
        reading, writing = os.pipe()
        for _ in range(8):
            if os.fork() == 0:
                try:
                    block = bytearray(b"x") * (48 << 20)
                    os.write(writing, b"x")
                    time.sleep(3)
                finally:
                    os._exit(0)
        os.close(writing)
        held = 0
        while held < 8 and (got := os.read(reading, 8)):
            held += len(got)
        return Answer("A", "x", (), {"held": held})
        """
    )
    if has_cgroup(lab):
        assert outcome.verdict in (Verdict.OOM, Verdict.TIMEOUT) or outcome.answer.diagnostics["held"] < 4
        assert "memory" not in lab.sandbox.label
    else:
        assert "memory: per process only" in lab.sandbox.label


def test_tmp_counts_as_memory_or_has_its_own_cap(lab: Laboratory) -> None:
    assert lab.sandbox.limits.file_mb < lab.sandbox.limits.memory_mb


@pytest.mark.parametrize("leader", ["answer", "observe"])
def test_a_fork_bomb_meets_the_limit(lab: Laboratory, leader: str) -> None:
    began, before = time.monotonic(), len(_descendants())
    bomb = "while True:\n    try:\n        os.fork()\n    except OSError:\n        pass"
    outcome = lab.run(policy(**{leader: bomb}))
    assert {str(q.verdict) for q in outcome.questions} <= {"TIMEOUT", "PROTOCOL", "OOM"}
    assert time.monotonic() - began < 40
    until = time.monotonic() + 20
    while len(_descendants()) > before + 6 and time.monotonic() < until:
        time.sleep(0.05)
    assert len(_descendants()) <= before + 6  # two channels of the pool, at most being refilled


def test_threads_count_as_processes(lab: Laboratory) -> None:
    found = lab.look(
        """
        import threading
        found = 0
        try:
            for _ in range(500):
                threading.Thread(target=time.sleep, args=(1,), daemon=True).start()
                found += 1
        except RuntimeError:
            pass
        """
    )
    assert 3 < found < LIMITS.pids


def test_burning_with_many_processes_stays_within_the_cpu_share(lab: Laboratory, has_cgroup: Group) -> None:
    used = lab.look(
        """
        began, before = time.monotonic(), os.times()
        children = [os.fork() for _ in range(2)]
        if 0 in children:
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                pass
            os._exit(0)
        for child in children:
            os.waitpid(child, 0)
        after = os.times()
        found = (after.children_user + after.children_system - before.children_user - before.children_system)
        found /= time.monotonic() - began
        """
    )
    if has_cgroup(lab):
        assert used < LIMITS.cpus * 1.35


def _descendants() -> set[int]:
    """All processes below this one."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(process.name)] = int((process / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    found: set[int] = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


@pytest.mark.parametrize("verdict", ["OK", "CRASH", "TIMEOUT"])
def test_a_daemon_is_gone_when_the_question_is_settled(lab: Laboratory, verdict: str) -> None:
    mark = f"daemon-{secrets.token_hex(8)}"
    ending = {"OK": "return Answer('A', 'x')", "CRASH": "raise ValueError", "TIMEOUT": "time.sleep(60)"}[verdict]
    body = f"""
    if query.id == "q0":
        if os.fork() == 0:
            os.setsid()
            for number in range(1, 64):
                try:
                    signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError):
                    pass
            if os.fork():
                os._exit(0)
            os.execv(sys.executable, [sys.executable, "-c", "import time; time.sleep(60) # {mark}"])
        time.sleep(0.3)
        {ending}
    alive = []
    for number in os.listdir("/proc"):
        if number.isdigit():
            try:
                alive.append(open(f"/proc/{{number}}/cmdline").read())
            except OSError:
                pass
    return Answer("A", "x", (), {{"daemons": sum("{mark}" in line and "import time" in line[:200] for line in alive)}})
    """
    outcome = lab.run(policy(body))
    assert [str(q.verdict) for q in outcome.questions] == [verdict, "OK", "OK"], outcome
    assert [q.answer.diagnostics["daemons"] for q in outcome.questions[1:] if q.answer] == [0, 0]
    time.sleep(0.2)
    assert not any(mark in line and "import time" in line for line in _commands())


def _commands() -> list[str]:
    lines = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            lines.append((process / "cmdline").read_bytes().decode(errors="replace").replace("\0", " "))
        except OSError:
            continue
    return lines


def test_nothing_is_carried_over_to_the_next_candidate(lab: Laboratory) -> None:
    leave = """
    open("/tmp/left", "w").write("secret")
    random.random = None
    found = True
    """
    assert lab.look(leave)
    found = lab.look(
        """
        low = [n for n in os.listdir("/proc") if n.isdigit()]
        found = [os.listdir("/tmp"), random.random is None, len(low) <= 4]
        """
    )
    assert found == [[], False, True]


def test_a_full_channel_can_be_closed_at_once(lab: Laboratory) -> None:
    """The candidate writes without end while the host does not read."""
    source = policy(observe="while True: os.write(3, b'x' * 65536 + b'\\n'); os.write(2, b'y' * 65536)")
    channel = lab.sandbox.open()
    session = Session(channel, lab.sandbox.limits, RefusingHost(), time.monotonic() + 30)
    session.start(make_bundle({"policy.py": source}), SETUP)
    channel.send(b'{"kind":"observe","windows":[]}\n', time.monotonic() + 20)
    time.sleep(0.5)
    began = time.monotonic()
    session.close()
    assert time.monotonic() - began < 20


def test_after_all_these_attacks_a_plain_candidate_scores_as_before(lab: Laboratory) -> None:
    """Each test above runs in the same back end as the one before it; here is the last."""
    assert lab.verdicts(PLAIN) == ["OK"] * 3
