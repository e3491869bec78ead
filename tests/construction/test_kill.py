"""SIGKILL at any moment: begun again, a build asks for nothing that it has received, and ends as if left alone."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from harness.data.native import load
from harness.models.replies import read_booked, read_calls
from tests.construction.conftest import Studio

KILLS = 6
ROOT = Path(__file__).resolve().parents[2]
NURSERY = """
import os, sys
import av, bpe_openai, openai, harness.cli.memory, harness.models.hub
from harness.cli import main
for line in sys.stdin:
    folder, code, *arguments = line.rstrip("\\n").split("\\t")
    child = os.fork()
    if not child:
        os.chdir(folder)
        sys.stdout = sys.stderr = open("said", "w")
        sys.argv = ["harness", *arguments]
        exec(code.replace("\\f", "\\n"))
        main()
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


class Nursery:
    """Starts the real command in a process of its own, without the seconds that its imports take."""

    def __init__(self, clip: Path) -> None:
        plain = {k: v for k, v in os.environ.items() if not k.startswith(("HARNESS_", "OPENAI_"))}
        self._arguments = ["memory", "build", str(clip), "--out", "out", "--transcribe", "--parallel", "2"]
        self._parent = subprocess.Popen(
            [sys.executable, "-c", NURSERY], env=plain | {"PYTHONPATH": str(ROOT), "COLUMNS": "140"}, text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip

    def build(self, folder: Path, code: str = "", alarm: Callable[[], None] | None = None) -> tuple[int, str]:
        """Build in ``folder`` until the end, or until ``alarm`` returns; exit code (-9: killed) and what was said."""
        assert self._parent.stdin is not None and self._parent.stdout is not None
        self._parent.stdin.write("\t".join([str(folder), code.replace("\n", "\f"), *self._arguments]) + "\n")
        self._parent.stdin.flush()
        child = int(self._parent.stdout.readline())
        if alarm is not None:
            alarm()
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        return int(self._parent.stdout.readline()), (folder / "said").read_text()

    def close(self) -> None:
        self._parent.communicate(timeout=60)


@pytest.fixture(scope="module")
def nursery(clips: Path) -> Iterator[Nursery]:
    started = Nursery(clips / "day.mp4")
    yield started
    started.close()


def workplace(folder: Path, studio: Studio) -> Path:
    folder.mkdir()
    roles = {"captioner": "eye", "transcriber": "ear"}
    tables = [f'[profiles.p.roles.{r}]\nmodel = "{m}"\nbase_url = "{studio.url}"\n' for r, m in roles.items()]
    (folder / "harness.toml").write_text('[run]\nprofile = "p"\n' + "".join(tables))
    return folder


def received(folder: Path) -> Counter[str]:
    """How often the reply to each picture or sound stands in the store."""
    calls = [c.request for c in read_calls(folder / "out.replies" / "replies.db") if c.state == "reply"]
    return Counter(str(r["audio"] if "audio" in r else r["messages"][-1]["images"][0]) for r in calls)


def test_killed_at_random_moments_and_begun_again(studio: Studio, nursery: Nursery, tmp_path: Path) -> None:
    calm, rough = workplace(tmp_path / "calm", studio), workplace(tmp_path / "rough", studio)
    code, said = nursery.build(calm)
    assert (code, "8 requests now" in said) == (0, True), said
    studio.digests.clear()
    studio.delay = 0.1
    draw = random.Random(6)
    kills, stored = 0, set()
    while not (rough / "out").exists():
        before, known = len(studio.digests), received(rough)
        # Counted in requests, so that moments lie all over the build on a machine of any speed; some before the
        # first request, some between a reply's arrival and the next request.
        wanted, ends = studio.asked + draw.randint(0, 3), time.monotonic() + 30

        def alarm(wanted: int = wanted, ends: float = ends) -> None:
            while studio.asked < wanted and not (rough / "out").exists() and time.monotonic() < ends:
                time.sleep(0.001)
            time.sleep(draw.uniform(0.0, 0.2))

        code, said = nursery.build(rough, alarm=alarm if kills < KILLS else None)
        assert code in (0, -9), said
        kills += code == -9
        stored.add(sum(received(rough).values()))
        assert not set(studio.digests[before:]) & set(known), "a received reply was asked for again"
    assert kills >= 3 and len(stored) >= 3, (kills, stored)
    assert received(rough) == Counter(set(studio.digests)), "each reply is stored once"
    assert len(received(rough)) == 8
    assert load(rough / "out").digest == load(calm / "out").digest
    assert {path.name for path in rough.iterdir()} == {path.name for path in calm.iterdir()}
    # What was under way at a kill may have been billed: it is booked, and nothing else is.
    file = rough / "out.replies" / "replies.db"
    states = Counter(call.state for call in read_calls(file))
    assert set(states) <= {"reply", "lost"} and states["lost"] <= 2 * kills
    assert sum(usage.requests for usage, _ in read_booked(file).values()) == sum(states.values())


def test_killed_while_the_data_set_is_written(studio: Studio, nursery: Nursery, tmp_path: Path) -> None:
    folder = workplace(tmp_path / "w", studio)
    dying = """
import harness.data.write as w
def copy(source, file):
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(source.read_bytes()[:1000])
    os.kill(os.getpid(), 9)
w.copy = copy"""
    code, said = nursery.build(folder, dying)
    assert code == -9, said
    assert not (folder / "out").exists() and len(list(folder.glob(".out.*"))) == 1 and studio.asked == 8
    code, said = nursery.build(folder)
    assert code == 0 and "0 requests now, 8 replies from before" in said, said
    assert studio.asked == 8 and not list(folder.glob(".out.*"))
    assert load(folder / "out").videos["day"].duration == 120.0
