"""Replaying an attempt: inputs are copied, the loop's stages run on them, then both records are compared.

The three steps are apart: while an attempt executes, nothing that runs knows where its record is.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Set
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness import __version__, loop, stages
from harness.config import Config, recorded
from harness.data.native import Dataset, load
from harness.errors import UserError
from harness.models.hub import open_models
from harness.models.interface import CapReached, ModelError, Models
from harness.models.preflight import preflight
from harness.models.recorded import recorded_models
from harness.opening import opened_sandbox, search_over, workers_of
from harness.outcomes import Measured, Recalled
from harness.progress import Quiet
from harness.replay.comparing import Difference, differences, outcomes
from harness.replay.scratch import Inputs, Part, TimedEvaluator, copy_inputs, find_data
from harness.rounds import base, named, taken_in
from harness.search import Search
from harness.state.manifest import RunManifest
from harness.state.store import RunStore
from sandbox.interface import Sandbox

Announce = Callable[[str], None]
STAGE_OF: dict[Part, str] = {"gate": "static", "develop": "develop", "validate": "validate"}
"""The first stage of each part."""


@dataclass(frozen=True, slots=True)
class Order:
    """How an attempt is to be replayed."""

    part: Part | None = None
    data: Path | None = None
    """Where to look for the data set; None: where the run had it."""
    sandbox: str = ""
    """``docker`` or ``bubblewrap``; empty: the run's own."""
    live: Config | None = None
    """Ask the models again, under the run's caps, and take none of the recorded replies. Which models, where and with
    what key is told by this configuration, the user's own: a run's folder may be anybody's, and no key goes where that
    says."""


@dataclass(frozen=True, slots=True)
class Replayed:
    """What came of it."""

    stages: tuple[str, ...]
    """Stages that were compared."""
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    """What is different here, and need not change a result: place of the data, sandbox, version of the harness."""
    beyond: Beyond | None = None
    """What the run never measured: there is no record to compare it with, and it is no part of the run."""


@dataclass(frozen=True, slots=True)
class Beyond:
    """The development split, measured on a candidate that was rejected before it got there."""

    ended: str
    """The stage that rejected it."""
    measured: Measured


def replay(folder: Path, k: int, order: Order, announce: Announce = lambda stage: None) -> Replayed:
    """Execute attempt ``k`` of the run in ``folder`` again and compare.

    ``announce`` is told each stage that begins. Nothing in ``folder`` changes. Raises UserError where it cannot be
    done: what the attempt needs is not here, or a part of the record is damaged.
    """
    with _scratch() as into:
        inputs = gather(folder, k, order, into)
        with surroundings(inputs.run, order, folder) as around:
            stopped = execute(inputs, around, into, announce)
        return compare(folder, inputs, around, into, stopped)


def replay_all(
    folder: Path, order: Order, announce: Announce = lambda stage: None
) -> Iterator[tuple[int, Replayed | UserError]]:
    """Every finished attempt that came so far, in order and in one sandbox; an error where one cannot be replayed.

    Raises UserError where none can: data or sandbox are not here.
    """
    with RunStore.open(folder, write=False) as run:
        last = STAGE_OF[order.part] if order.part else "remember"
        came_so_far = [k for k, stage in run.stages() if stage == last and k]
        manifest = run.manifest
    with surroundings(manifest, order, folder) as around:
        for k in (0, *came_so_far):
            try:
                with _scratch() as into:
                    inputs = gather(folder, k, order, into)
                    stopped = execute(inputs, around, into, announce)
                    found = compare(folder, inputs, around, into, stopped)
            except UserError as error:
                yield k, error
            else:
                yield k, found


@contextmanager
def _scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="replay-") as scratch:
        into = Path(scratch) / "run"
        into.mkdir()
        yield into


# ---------------------------------------------------------------- 1: what it is executed from


def gather(folder: Path, k: int, order: Order, into: Path) -> Inputs:
    """Copy what the attempt is executed from. Raises UserError."""
    with RunStore.open(folder, write=False) as run:
        reached = {stage for iteration, stage in run.stages() if iteration == k}
        _check(run, k, reached, order.part)
        if order.live and run.manifest.profile == "offline":
            raise UserError(f"run {run.manifest.name} used no model: there is nothing to ask again; leave out --live")
        return copy_inputs(run, k, order.part, into, replies=not order.live)


def _check(run: RunStore, k: int, reached: set[str], part: Part | None) -> None:
    """Raises UserError where there is no such attempt, or it did not come so far."""
    name = run.manifest.name
    if not reached:
        last = max(iteration for iteration, _ in run.stages())
        raise UserError(f"run {name} has no attempt {k}; it has 0 to {last}")
    if part is not None and (STAGE_OF[part] in reached or (k == 0 and part == "gate")):
        return
    if ("remember" if k else "validate") not in reached:
        raise UserError(f"attempt {k} of run {name} is not finished; replay it when it is")
    if part is None:
        return
    if taken_in(run, k) is None:
        raise UserError(f"attempt {k} of run {name} has no candidate: its proposal was malformed or refused")
    if part != "develop":  # a held-out figure of what did not earn it would be a use of that split that nobody counts
        more = "; what it scores in development: --stage develop" if part == "validate" else ""
        raise UserError(f"attempt {k} of run {name} never came to {STAGE_OF[part]}: it ended at {_ended(run, k)}{more}")


def _ended(run: RunStore, k: int) -> str:
    """The stage that rejected a finished attempt."""
    remembered = run.attempt(k)
    return remembered.outcome if remembered else ""


# ---------------------------------------------------------------- 2: execution


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a machine has to bring."""

    config: Config
    data: Dataset
    box: Sandbox
    models: Callable[[Path], Models]
    notes: list[str] = field(default_factory=list)


@contextmanager
def surroundings(run: RunManifest, order: Order, folder: Path) -> Iterator[Surroundings]:
    """Data and sandbox of the run, open. Raises UserError: which of them is not here."""
    place = find_data(run, folder, order.data)
    kind = order.sandbox or run.back_end
    section = {**run.config.get("run", {}), "data": str(place), "sandbox": kind, "workers": 0}
    values = {**run.config, "run": section}
    if order.live:
        own = order.live.model_dump(mode="json")
        values |= {name: own[name] for name in ("profiles", "prices")}
    config = recorded(values, os.environ)
    data = load(place)
    if order.live:
        preflight(config)
    box = opened_sandbox(config, config.limits, workers_of(config), f"replay-{run.name}")
    try:
        if box.runtime_digest != run.runtime_digest:
            raise UserError(
                f"the run's runtime is {run.runtime_digest[:12]}, the {kind} sandbox here has {box.runtime_digest[:12]}"
                "; use the version of the harness that made the run, or its image"
            )
        notes = [
            f"{what}: recorded {before}, here {here}"
            for what, before, here in (
                ("data", run.data.path, str(place)),
                ("sandbox", run.sandbox, box.label),
                ("harness", run.harness or "not recorded", __version__),
            )
            if before != here
        ]
        models = open_models if order.live else recorded_models
        yield Surroundings(config, data, box, lambda into: models(config, into), notes)
    finally:
        box.close()


def execute(inputs: Inputs, around: Surroundings, into: Path, announce: Announce) -> str:
    """Run the attempt's stages in the folder ``into``; why it had to stop before its end, else empty."""
    config, data, box = around.config, around.data, around.box
    with ExitStack() as cleanup:
        store = cleanup.enter_context(RunStore.open(into, write=True))
        models = around.models(into)
        if close := getattr(models, "close", None):
            cleanup.callback(close)
        workers = workers_of(config)
        evaluator = TimedEvaluator(data, box, models, config.budget, config.run.seed, workers)
        evaluator.times = inputs.seconds
        search = search_over(config, data, store, box, models, evaluator, Quiet(announce), lambda: False)
        search.clock = lambda: inputs.started
        try:
            _run(search, inputs.iteration, inputs.part)
        except (ModelError, CapReached, UserError) as error:
            return str(error)
    return ""


def _run(search: Search, k: int, part: Part | None) -> None:
    """The loop's own stages: all of an attempt, or a part of it on the recorded candidate."""
    if part is None:
        loop.iterate(search, k) if k else loop.start(search)
    elif k == 0 and part == "gate":
        stages.smoke_seed(search)
    elif k == 0:
        stages.measure_seed(search, {"develop": "development", "validate": "validation"}[part])
    else:
        candidate = search.candidate(k)
        if part == "gate":
            loop.gated(search, k, search.found(k, "recall", Recalled), candidate)
        else:
            {"develop": stages.develop, "validate": stages.validate}[part](search, k, candidate)


# ---------------------------------------------------------------- 3: comparison


def compare(folder: Path, inputs: Inputs, around: Surroundings, into: Path, stopped: str) -> Replayed:
    """Hold the execution in ``into`` against the record. Raises UserError where it stopped without a difference."""
    k = inputs.iteration
    with RunStore.open(into, write=False) as store:
        now = outcomes(store, k)
    with RunStore.open(folder, write=False) as store:
        before: dict[str, Any] = outcomes(store, k)
        ended = _ended(store, k)
    if inputs.part == "develop" and "develop" not in before:
        measured = now.get("develop")
        if not isinstance(measured, Measured):
            raise UserError(f"attempt {k} cannot be measured: {stopped}; to ask the models for it: --live")
        return Replayed(("develop",), (), tuple(around.notes), Beyond(ended, measured))
    if inputs.part is not None:
        wanted = _stages_of(inputs.part, k, set(before))
        before = {name: outcome for name, outcome in before.items() if name in wanted}
        now = {name: outcome for name, outcome in now.items() if name in wanted}
    if stopped:
        before = {name: outcome for name, outcome in before.items() if name in now}
    found = tuple(differences(before, now))
    if stopped and not found:
        raise UserError(f"attempt {k} cannot be replayed: {stopped}; restore replies.db, or ask again with --live")
    return Replayed(tuple(now), found, tuple(around.notes))


def _stages_of(part: Part, k: int, committed: Set[str]) -> frozenset[str]:
    """The gate is that of the candidate as it was taken in last."""
    if part == "gate":
        turn = sum(base(name) == "intake" for name in committed) - 1
        return frozenset({"smoke"} if k == 0 else {named(check.__name__, turn) for check in stages.GATE})
    return frozenset({part})
