"""SIGKILL at random moments: resumed each time, the run is the same as one that was left alone."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from pathlib import Path

from harness.state.verify import verify_chain
from tests.endtoend.conftest import command, environment, facts

KILLS = 20


def test_killed_and_resumed_is_the_same_run(small_data: Path, tmp_path: Path) -> None:
    arguments = ("--iterations", "12", "--data", str(small_data), "--name", "one", "--sandbox", "bubblewrap")
    calm, rough = tmp_path / "calm", tmp_path / "rough"
    for folder in (calm, rough):
        folder.mkdir()
    began = time.monotonic()
    _run(calm, arguments, None)
    whole = time.monotonic() - began
    draw = random.Random(12)
    kills = 0
    while kills < KILLS:
        # Moments over the whole length of a run, its start-up included; late ones get through more of it.
        if _run(rough, arguments, draw.uniform(0.2, 0.25 + whole / 6)):
            break
        kills += 1
    _run(rough, arguments, None)
    assert kills >= 5, "the run ended before it could be killed often enough"
    assert facts(rough / "runs" / "one") == facts(calm / "runs" / "one")
    report = verify_chain(rough / "runs" / "one")
    assert report.ok, report.problems
    left = {path.name for path in (rough / "runs" / "one").iterdir()}
    assert left == {path.name for path in (calm / "runs" / "one").iterdir()}
    assert not _bubblewraps(rough)


def _run(folder: Path, arguments: tuple[str, ...], seconds: float | None) -> bool:
    """Run until it ends (True) or is killed after ``seconds`` (False)."""
    running = subprocess.Popen(
        command("run", *arguments), cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    try:
        output, _ = running.communicate(timeout=seconds or 300)
    except subprocess.TimeoutExpired:
        running.send_signal(signal.SIGKILL)
        running.communicate()
        return False
    assert running.returncode == 0, output.decode()
    return True


def _bubblewraps(folder: Path) -> list[str]:
    """Sandboxes that outlived their harness by more than a moment."""
    time.sleep(0.5)
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        try:
            name, cwd = (path / "comm").read_text().strip(), (path / "cwd").resolve()
        except OSError:
            continue
        if name == "bwrap" and folder in (cwd, *cwd.parents):
            found.append(path.name)
    return found
