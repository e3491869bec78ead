"""A whole iteration with a candidate that changes nothing: what the harness costs beside the model and the evaluation.

Recall, proposal, intake and its commits, static rules, duplicates, smoke run in the sandbox, outcome commit, memory,
audit line, fsync. The candidate differs from its parent by an unused function, so the gate sends it away after the
smoke run, as a repeat. The sandbox's pool is full when an iteration begins, as it is after any evaluation.
"""

from __future__ import annotations

import dataclasses
import statistics
import tempfile
import time
from pathlib import Path

from harness import loop
from harness.agents.interface import Brief, Hypothesis, Malformed, Proposal
from harness.config import resolve
from harness.data.lifelog import make_lifelog
from harness.opening import searching
from harness.outcomes import Outcome


class Unchanging:
    """An author that answers at once with its parent's code and one more function."""

    name = "no-op"

    def propose(self, brief: Brief, seed: int) -> Proposal | Malformed:
        files = dict(brief.parent_files)
        files["policy.py"] += f"\n\ndef unused() -> int:\n    return {brief.iteration}\n"
        hypothesis = Hypothesis(title=f"no change {brief.iteration}", what="adds an unused function", why="to be timed")
        return Proposal(hypothesis=hypothesis, files=files, author=self.name)


class Stopwatch:
    """Adds up the seconds of each stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self._began = 0.0

    def stage(self, iteration: int, name: str) -> None:
        self._began = time.perf_counter()

    def committed(self, iteration: int, name: str, outcome: Outcome) -> None:
        self.seconds.setdefault(name, []).append(time.perf_counter() - self._began)

    def questions(self, done: int, total: int) -> None:
        return


def milliseconds(sandbox: str, iterations: int = 30) -> dict[str, float]:
    """Median milliseconds of one iteration, and of each of its stages."""
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch, "data")
        make_lifelog(data, seed=0, scale=0.2)
        config = resolve({"data": str(data), "sandbox": sandbox}, {}, None)
        watch = Stopwatch()
        with searching(config, Path(scratch, "run"), watch) as opened:
            search = dataclasses.replace(opened, author=Unchanging())
            loop.start(search)
            watch.seconds.clear()
            times = []
            for k in range(1, iterations + 1):
                time.sleep(0.8 if sandbox == "docker" else 0.2)  # the pool fills
                began = time.perf_counter()
                loop.iterate(search, k)
                times.append(time.perf_counter() - began)
            ended = {a.outcome for a in search.store.attempts()}
            assert ended == {"smoke"}, f"the candidate was to end at the smoke run, not at {ended}"
        stages = {name: 1000 * statistics.median(values) for name, values in watch.seconds.items()}
        return {"iteration": 1000 * statistics.median(times), **stages}
