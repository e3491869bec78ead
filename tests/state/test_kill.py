"""SIGKILL at random moments: whatever the moment, the run goes on and ends as if nothing had happened."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UserError
from harness.state.store import RunStore
from harness.state.verify import verify_chain

ROOT = Path(__file__).resolve().parents[2]
ITERATIONS = 10
WORKER = f"""
import sys
from pathlib import Path
sys.path.insert(0, "tests/state")
from conftest import iterate, manifest, seed
from harness.state.store import RunStore

class Resumable:
    '''The store, passing over what is committed; its clock depends on the line alone.'''
    def __init__(self, store): self.store, self.lineage = store, store.lineage
    @property
    def head(self):
        # The head as it was when the stage that asks is next: all earlier lines are committed.
        return self.store.audit()[self.at - 1].hash
    def commit_stage(self, iteration, stage, *rest, **more):
        self.at += 1
        if (iteration, stage) not in self.store.stages():
            self.store.commit_stage(iteration, stage, *rest, **more)

folder = Path(sys.argv[1])
lines = lambda: len((folder / "audit.jsonl").read_text().splitlines()) if folder.exists() else 0
print("ready", flush=True)
if (folder / "run.json").exists():
    store = RunStore.open(folder, write=True, clock=lambda: float(len(store.audit())))
else:
    store = RunStore.create(folder, manifest(), clock=lambda: float(0))
    store._clock = lambda: float(len(store.audit()))
run = Resumable(store)
run.at = 1
parent = seed(run)
for k in range(1, {ITERATIONS + 1}):
    iterate(run, k, parent)
store.close()
"""


def work(folder: Path, lines: int | None = None, delay: float = 0.0) -> bool:
    """Let the worker run, kill it ``delay`` seconds after ``lines`` audit lines stand; whether it came to its end."""
    command = [sys.executable, "-c", WORKER, str(folder)]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "ready\n", process.communicate()[1]
    if lines is not None:
        while process.poll() is None and written(folder) < lines:
            time.sleep(0.0005)
        time.sleep(delay)
        process.kill()
    errors = process.communicate()[1]
    assert process.returncode in (0, -9), errors
    return process.returncode == 0


def written(folder: Path) -> int:
    """Audit lines in the file so far."""
    path = folder / "audit.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def contents(folder: Path) -> dict[str, Any]:
    with RunStore.open(folder, write=False) as store:
        return {
            "head": store.head,
            "refs": store.lineage.refs(),
            "audit": (folder / "audit.jsonl").read_bytes(),
            "memory": (folder / "memory.jsonl").read_bytes(),
            "files": sorted(path.name for path in folder.iterdir()),
            "stages": store.stages(),
        }


def test_killed_at_random_moments_and_resumed(tmp_path: Path) -> None:
    assert work(tmp_path / "undisturbed")
    expected = contents(tmp_path / "undisturbed")
    assert len(expected["stages"]) == 2 + 8 * ITERATIONS

    draws = random.Random(20)
    folder, kills, reached = tmp_path / "killed", 0, set()
    for _ in range(10):
        # Counted in lines, so that the moments lie all over the run however fast or busy the machine is.
        if not work(folder, written(folder) + draws.randint(0, 8), draws.uniform(0.0, 0.003)):
            kills += 1
        try:
            with RunStore.open(folder, write=False) as store:  # readable as it lies, at any moment
                reached.add(len(store.audit()))
        except UserError as error:
            assert "holds no run" in str(error)  # killed while it was being created
            reached.add(0)
    assert kills >= 4 and len(reached) >= 3, reached
    assert work(folder)

    assert contents(folder) == expected
    report = verify_chain(folder)
    assert report.problems == () and report.lines == len(expected["stages"])
    assert not [path for path in folder.rglob("*") if path.name.startswith("tmp_obj") or (path.suffix == ".lock"
                and path.name != "run.lock")]  # fmt: skip
    fsck = subprocess.run(
        ["git", f"--git-dir={folder / 'lineage.git'}", "fsck", "--strict", "--full"], capture_output=True, text=True
    )
    assert fsck.returncode == 0 and not [line for line in fsck.stderr.splitlines() if "error" in line]


def test_a_kill_between_commit_and_completion(run: Path, kit: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The narrowest place, made certain: the row is committed, files and references are not written."""
    code = f"""
import os, sys
from pathlib import Path
sys.path.insert(0, "tests/state")
from conftest import iterate
from harness.state.store import RunStore
store = RunStore.open(Path({str(run)!r}), write=True)
complete, left = store._complete, [8]
def dying(refs):
    left[0] -= 1
    os.kill(os.getpid(), 9) if left[0] == 0 else complete(refs)
store._complete = dying
iterate(store, 4, store.refs()["refs/heads/main"])
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == -9, done.stderr
    assert len((run / "audit.jsonl").read_text().splitlines()) == 33
    before = kit.content_hash(run)
    with RunStore.open(run, write=False) as store:
        assert store.stages()[-1] == (4, "remember") and len(store.attempts()) == 4
        wanted = store.refs()
        assert store.lineage.refs() != wanted
    assert kit.content_hash(run) == before
    with RunStore.open(run, write=True) as store:
        assert store.lineage.refs() == wanted
    lines = (run / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 34 and json.loads(lines[-1])["stage"] == "remember"
    assert len((run / "memory.jsonl").read_text().splitlines()) == 4
    assert verify_chain(run).problems == ()
    assert sorted(path.name for path in run.iterdir() if path.name.startswith("run.db")) == ["run.db"]
