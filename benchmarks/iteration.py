"""A whole iteration with a candidate that does nothing: what the harness costs beside the model and the evaluation.

Recall, proposal, intake and its commits, static rules, duplicates, smoke run in the sandbox, outcome commit, memory,
audit line, fsync. The candidate answers with the first letter at once and differs from iteration to iteration by an
unused function, so the gate sends it away after the smoke run, as a repeat (the first, which is none, is not timed).
The sandbox's pool is full when an iteration begins, as it is after any evaluation.
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

POLICY = '''"""Answers with the first letter."""

from policies.contract import Answer


class Policy:
    """Looks at nothing."""

    def __init__(self, setup):
        """Nothing to prepare."""

    def observe(self, windows):
        """Nothing to keep."""

    def settle(self):
        """Nothing to batch."""

    def answer(self, query):
        """The first letter."""
        return Answer(min(query.choices), "constant")


def unused():
    """Says which iteration wrote it."""
    return '''


class Idle:
    """An author that answers at once."""

    name = "no-op"

    def propose(self, brief: Brief, seed: int) -> Proposal | Malformed:
        hypothesis = Hypothesis(title=f"nothing {brief.iteration}", what="the first letter", why="to be timed")
        files = {"policy.py": f"{POLICY}{brief.iteration}\n"}
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
            search = dataclasses.replace(opened, author=Idle())
            loop.start(search)
            loop.iterate(search, 1)
            watch.seconds.clear()
            times = []
            for k in range(2, iterations + 2):
                time.sleep(0.8)  # the pool fills
                began = time.perf_counter()
                loop.iterate(search, k)
                times.append(time.perf_counter() - began)
            ended = {a.outcome for a in search.store.attempts() if a.iteration > 1}
            assert ended == {"smoke"}, f"the candidate was to end at the smoke run, not at {ended}"
        stages = {name: 1000 * statistics.median(values) for name, values in watch.seconds.items()}
        return {"iteration": 1000 * statistics.median(times), **stages}
