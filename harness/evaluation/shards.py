"""Shards as plain data, and who runs them. A cluster engine implements ``Executor`` and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from harness.errors import UserError
from harness.evaluation.meter import ConstructionMeter, QuestionMeter
from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.services import FrameSource, Services
from harness.models.interface import CapReached, ModelError, Models
from policies.contract import Setup
from sandbox.interface import Bundle, Sandbox, SandboxError, Shard, ShardOutcome, Verdict
from sandbox.stream import run_shard


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Everything that one container needs to know, without gold. Can be pickled."""

    number: int
    """Position among the evaluation's tasks."""
    video: str
    bundle: Bundle
    shard: Shard
    setup: Setup
    scope: str


class Fault(StrEnum):
    """Whose fault it is that a result says nothing about the candidate."""

    SANDBOX = "sandbox"
    MODEL = "model"
    CAP = "cap"


@dataclass(frozen=True, slots=True)
class ShardResult:
    """What became of a task. Can be pickled."""

    number: int
    outcome: ShardOutcome | None
    meters: Mapping[str, QuestionMeter]
    """By query id; questions that made no request have none."""
    construction: ConstructionMeter
    fault: Fault | None = None
    """None where the result counts."""
    why: str = ""
    """One line for a fault."""


class Executor(Protocol):
    """Runs independent shards."""

    def map(self, tasks: Sequence[ShardTask], settled: Callable[[int], None]) -> Iterator[ShardResult]:
        """One result for each task, in any order. ``settled`` is told how many more questions are done."""
        ...


class ThreadExecutor:
    """Runs shards on this machine, ``workers`` containers at a time."""

    def __init__(self, sandbox: Sandbox, models: Models, workers: int, frames: FrameSource | None = None) -> None:
        if workers < 1:
            raise ValueError("workers must be at least 1")
        self.sandbox, self.models, self.workers, self.frames = sandbox, models, workers, frames
        self._offline = OfflineAnswers()

    def map(self, tasks: Sequence[ShardTask], settled: Callable[[int], None]) -> Iterator[ShardResult]:
        """Results as they come. When the caller stops taking them, no further task is started.

        An interrupt does not wait for running containers: closing the sandbox ends them.
        """
        pool = ThreadPoolExecutor(max_workers=max(1, min(self.workers, len(tasks))))
        wait = True
        try:
            for done in as_completed([pool.submit(self.run, task, settled) for task in tasks]):
                yield done.result()
        except KeyboardInterrupt:
            wait = False
            raise
        finally:
            pool.shutdown(wait=wait, cancel_futures=True)

    def run(self, task: ShardTask, settled: Callable[[int], None]) -> ShardResult:
        """Run one task; where the sandbox failed, once more in a fresh container."""
        progress = _Progress(len(task.shard.queries), settled)
        result = self._attempt(task, progress)
        if result.fault is Fault.SANDBOX:
            result = self._attempt(task, progress)
        progress.end()
        return result

    def _attempt(self, task: ShardTask, progress: _Progress) -> ShardResult:
        services = Services(
            models=self.models,
            offline=self._offline,
            budget=task.setup.budget,
            video=task.video,
            windows=len(task.shard.windows),
            scope=task.scope,
            frames=self.frames,
            opened=progress.opened,
        )
        outcome, fault, why = None, None, ""
        try:
            outcome = run_shard(self.sandbox, task.bundle, task.shard, task.setup, services)
        except SandboxError as error:
            fault, why = Fault.SANDBOX, str(error)
        broken = [q for q in outcome.questions if q.verdict is Verdict.SANDBOX_ERROR] if outcome else []
        if broken:
            fault, why = Fault.SANDBOX, broken[0].detail
        if services.failure is not None:
            fault, why = _blame(services.failure)
        return ShardResult(task.number, outcome, services.questions, services.construction, fault, why)


class _Progress:
    """Counts a task's questions: one that makes its first request closes the one before it."""

    def __init__(self, total: int, settled: Callable[[int], None]) -> None:
        self._total, self._settled, self._open, self._told = total, settled, 0, 0

    def opened(self) -> None:
        self._open += 1
        self._tell(min(self._open, self._total) - 1)

    def end(self) -> None:
        self._tell(self._total)

    def _tell(self, done: int) -> None:
        if done > self._told:
            self._settled(done - self._told)
            self._told = done


def _blame(failure: Exception) -> tuple[Fault, str]:
    if isinstance(failure, CapReached):
        return Fault.CAP, str(failure)
    if isinstance(failure, ModelError | UserError):
        return Fault.MODEL, str(failure)
    return Fault.MODEL, f"serving a request failed ({type(failure).__name__}: {failure})"
