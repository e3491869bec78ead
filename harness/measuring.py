"""Measuring policies outside a run: what it needs is opened, several policies are measured in turn, all is closed."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from harness.config import Config
from harness.data.bundled import bundled
from harness.data.native import Dataset, load
from harness.display import cell, visible
from harness.errors import UserError
from harness.evaluation.executor import Evaluator
from harness.evaluation.outcomes import Evaluation
from harness.evaluation.report import headline
from harness.evaluation.sampling import Sample, sampled
from harness.models.hub import open_models
from harness.models.interface import CapReached, ModelError, Models
from harness.models.preflight import preflight
from harness.opening import opened_sandbox
from policies import library
from sandbox.bundle import BundleError, make_bundle
from sandbox.interface import Bundle, Sandbox

REPLIES = Path("replies")
"""Where replies are kept, under the current folder, one folder for each data set and profile: measuring again pays
for nothing that was received before."""


@dataclass(frozen=True)
class Bench:
    """Data, models and sandbox, open."""

    config: Config
    data: Dataset
    models: Models
    box: Sandbox
    workers: int


def dataset(config: Config, errors: Console) -> Dataset:
    """The data set of the configuration; the bundled life-log where none is named."""
    return load(Path(config.run.data) if config.run.data else bundled(errors))


@contextmanager
def bench(
    config: Config, data: Dataset, replies: Path | None, run_id: str, workers: int | None = None
) -> Iterator[Bench]:
    """What measuring needs, checked before it is started. Raises UserError, also for what models raise."""
    preflight(config)
    workers = workers or config.run.workers or os.cpu_count() or 1
    folder = replies or REPLIES / f"{data.name}-{data.digest[:8]}-{config.run.profile}"
    with ExitStack() as cleanup:
        if config.run.profile != "offline":
            _make(folder)
        models = open_models(config, folder)
        close = getattr(models, "close", None)
        if close:
            cleanup.callback(close)
        box = opened_sandbox(config, config.limits, workers, run_id)
        cleanup.callback(box.close)
        try:
            yield Bench(config, data, models, box, workers)
        except (CapReached, ModelError) as error:
            raise UserError(str(error)) from None


def measure(
    on: Bench,
    bundles: Mapping[str, Bundle],
    split: str,
    errors: Console,
    sample: Sample | None = None,
    keep: Callable[[Mapping[str, Evaluation]], None] = lambda found: None,
) -> dict[str, Evaluation]:
    """Measure each bundle on the split or a sample of it, in turn, on the same questions under the same ids.

    All share one scope of the reply store: the same request to the same question gets the same reply, so that two
    policies differ only where their requests do. ``keep`` is given what there is after each policy.
    """
    config, questions = on.config, [question.id for question in sampled(on.data, split, sample)]
    with watching(errors) as watch:
        evaluator = Evaluator(
            on.data,
            on.box,
            on.models,
            config.budget,
            config.run.seed,
            on.workers,
            progress=watch.progress,
        )
        # With a model most of the time is waiting: a video's questions are dealt to several containers. Without one,
        # containers would take each other's time, and seconds are among the figures.
        shards = 1 if config.run.profile == "offline" else max(1, on.workers // len(on.data.videos))
        found: dict[str, Evaluation] = {}
        for number, (name, bundle) in enumerate(bundles.items(), 1):
            watch.begin(f"{number}/{len(bundles)} {visible(name, 60)}")
            found[name] = evaluator.evaluate(bundle, split, "evaluate", questions, shards)
            watch.end(f"{name}: {headline(found[name])}")
            keep(found)
    return found


def policy_bundles(names: Iterable[str]) -> dict[str, Bundle]:
    """Bundles under the names that figures are shown by: a folder goes by its last part where that is free."""
    found: dict[str, Bundle] = {}
    for name in dict.fromkeys(names):
        short = Path(name).resolve().name
        found[name if short in found or short in library.names() else short] = policy_bundle(name)
    return found


def policy_bundle(name: str) -> Bundle:
    """A library policy by name, or the package in a folder. Raises UserError."""
    if name in library.names():
        return make_bundle(library.load(name))
    folder = Path(name)
    if not (folder / "policy.py").is_file():
        known = ", ".join(library.names())
        raise UserError(f"{visible(name)} is no policy of the library ({known}) and no folder with policy.py")
    files = [
        path for path in sorted(folder.iterdir()) if path.suffix in (".py", ".json") and path.name != "__init__.py"
    ]
    try:
        return make_bundle({path.name: path.read_bytes() for path in files})
    except BundleError as error:
        raise UserError(f"{folder}: {error}") from None


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{folder} cannot be made ({error.strerror}); name another with --replies") from None


# ---------------------------------------------------------------- progress


@dataclass
class Watch:
    """A bar of the questions on a terminal; elsewhere one line for each policy that is done."""

    console: Console
    bars: Progress
    _task: TaskID | None = field(default=None)

    def begin(self, label: str) -> None:
        """The next policy."""
        if self._task is not None:
            self.bars.remove_task(self._task)
        self._task = self.bars.add_task(label, total=None)

    def progress(self, done: int, total: int) -> None:
        """Questions done so far; called from the evaluation's threads."""
        if self._task is not None:
            self.bars.update(self._task, completed=done, total=total)

    def end(self, line: str) -> None:
        """What came of it, kept on screen."""
        self.bars.console.print(cell(line, "dim"), soft_wrap=True)


@contextmanager
def watching(console: Console) -> Iterator[Watch]:
    """Progress on ``console`` while the block runs."""
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bars:
        yield Watch(console, bars)
