"""The whole loop, in a real sandbox, as a user runs it."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.outcomes import Closed, Measured, TakenIn
from harness.state.store import RunStore
from harness.state.verify import verify_chain
from tests.endtoend.conftest import Finished, command, environment, facts

Command = Callable[..., Finished]


@pytest.fixture(scope="module")
def finished(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of eight iterations; read by several tests, changed by none."""
    folder = tmp_path_factory.mktemp("finished")
    arguments = ("run", "--iterations", "8", "--data", str(small_data), "--name", "one", "--sandbox", "bubblewrap")
    done = subprocess.run(
        command(*arguments), cwd=folder, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "offline profile" in done.stdout
    return folder / "runs" / "one"


def test_every_evaluation_has_every_question_once(finished: Path, small_data: Path) -> None:
    counts = {
        split: len((small_data / "questions" / f"{split}.jsonl").read_text().splitlines())
        for split in ("development", "validation", "test")
    }
    with RunStore.open(finished, write=False) as store:
        for k, name in store.stages():
            if name in ("develop", "validate") or name.startswith("reference-"):
                measured = store.stage(k, name, Measured)
                assert measured is not None
                questions = [item.question for item in measured.evaluation.items]
                assert len(questions) == len(set(questions)) == counts[measured.evaluation.split]


def test_the_test_split_is_touched_once_at_the_end(finished: Path) -> None:
    with RunStore.open(finished, write=False) as store:
        stages = store.stages()
        assert [s for s in stages if s[1] == "closing"] == [stages[-1]] == [(8, "closing")]
        closed = store.stage(8, "closing", Closed)
        assert closed is not None and closed.use == 1
        assert {"first", "final", "bm25", "options_only"} <= closed.evaluations.keys()
        for k, name in stages[:-1]:
            if name in ("develop", "validate"):
                measured = store.stage(k, name, Measured)
                assert measured is not None and measured.evaluation.split != "test"


def test_git_tells_the_story(finished: Path) -> None:
    git = ["git", "--git-dir", str(finished / "lineage.git")]
    assert subprocess.run([*git, "fsck", "--strict"], capture_output=True, check=False).returncode == 0
    story = subprocess.run([*git, "log", "--graph", "--all"], capture_output=True, text=True, check=True).stdout
    with RunStore.open(finished, write=False) as store:
        for attempt in store.attempts():
            if attempt.tree:
                assert f"Candidate {attempt.iteration:04d}" in story
                assert f"Iteration: {attempt.iteration}" in story
        main = store.lineage.commit_of(store.refs()["refs/heads/main"])
        promoted = [a for a in store.attempts() if a.outcome == "promoted"]
        if promoted:
            assert main.tree == promoted[-1].tree


def test_the_chain_is_whole(finished: Path) -> None:
    assert verify_chain(finished).ok


def test_status_verifies_the_trail(finished: Path, harness: Command, tmp_path: Path) -> None:
    done = harness("status", "--verify", "--run", str(finished))
    assert done.returncode == 0 and "whole" in done.stdout
    shutil.copytree(finished, tmp_path / "copy")
    git = ["git", "--git-dir", str(tmp_path / "copy" / "lineage.git")]
    listed = subprocess.run([*git, "for-each-ref", "--format=%(refname)"], capture_output=True, text=True, check=True)
    removed = next(name for name in listed.stdout.split() if name.startswith("refs/heads/candidate/"))
    subprocess.run([*git, "update-ref", "-d", removed], check=True)
    changed = harness("status", "--verify", "--run", str(tmp_path / "copy"))
    assert changed.returncode == 1 and removed in changed.stdout


def test_a_repeat_is_identical(finished: Path, small_data: Path, harness: Command, tmp_path: Path) -> None:
    done = harness("run", "--iterations", "8", "--data", str(small_data), "--name", "one", "--sandbox", "bubblewrap")
    assert done.returncode == 0, done.stderr
    assert facts(tmp_path / "runs" / "one") == facts(finished)


def test_iterations_is_a_total(finished: Path, small_data: Path, harness: Command, tmp_path: Path) -> None:
    shutil.copytree(finished, tmp_path / "runs" / "one")
    same = ("--data", str(small_data), "--name", "one", "--sandbox", "bubblewrap")
    before = facts(tmp_path / "runs" / "one")
    done = harness("run", "--iterations", "8", *same)
    assert done.returncode == 0 and "run one has 8 iterations and is complete" in done.stdout
    assert harness("run", "--iterations", "3", *same).returncode == 0
    assert facts(tmp_path / "runs" / "one") == before
    with RunStore.open(tmp_path / "runs" / "one", write=False) as store:
        assert sum(stage == "closing" for _, stage in store.stages()) == 1
    done = harness("run", "--iterations", "9", *same)
    assert done.returncode == 0 and "run one has 8 iterations and goes on to 9" in done.stdout
    with RunStore.open(tmp_path / "runs" / "one", write=False) as store:
        closed = store.stage(9, "closing", Closed)
        assert closed is not None and closed.use == 2


def test_reading_commands_change_nothing(finished: Path, harness: Command) -> None:
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in finished.rglob("*") if path.is_file()}
    run = ("--run", str(finished))
    for arguments in (("status",), ("log",), ("show", "1"), ("frontier",), ("diff", "0", "0")):
        done = harness(*arguments, *run)
        assert done.returncode == 0, (arguments, done.stderr)
    for arguments in (("status",), ("log",), ("show", "1"), ("frontier",)):
        json.loads(harness(*arguments, *run, "--json").stdout)
    after = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in finished.rglob("*") if path.is_file()}
    assert after == before


def test_what_ran_is_what_was_reviewed(finished: Path) -> None:
    with RunStore.open(finished, write=False) as store:
        for k, name in store.stages():
            if name in ("develop", "validate"):
                measured, taken = store.stage(k, name, Measured), store.stage(k, "intake", TakenIn)
                assert measured is not None and taken is not None
                assert measured.evaluation.policy == taken.bundle


def test_interrupt_stops_after_the_stage_and_resumes(finished: Path, small_data: Path, tmp_path: Path) -> None:
    arguments = ("run", "--iterations", "8", "--data", str(small_data), "--name", "one", "--sandbox", "bubblewrap")
    running = subprocess.Popen(
        command(*arguments),
        cwd=tmp_path,
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    folder = tmp_path / "runs" / "one"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not (folder / "memory.jsonl").is_file():
        time.sleep(0.05)
    while time.monotonic() < deadline and not (folder / "memory.jsonl").read_text():
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    text, _ = running.communicate(timeout=120)
    assert running.returncode == 0, text
    assert "goes on from here" in text
    again = subprocess.run(
        command(*arguments), cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert again.returncode == 0, again.stderr
    assert facts(folder) == facts(finished)
