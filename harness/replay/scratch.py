"""What an attempt is executed from: a run folder of its own that ends where the attempt began.

Of the record, only inputs are copied: everything committed before the attempt, the fixed texts, the model replies, and
the times that were measured, which nothing can measure again. Outcomes of the attempt itself and of later ones stay
behind, so that what executes could not repeat them even if it tried.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from harness.display import visible
from harness.errors import UserError
from harness.evaluation.executor import Evaluator
from harness.evaluation.outcomes import Evaluation, Item
from harness.models.hub import SHARED_SCOPES
from harness.models.replies import REPLIES, checked_calls, copy_replies
from harness.outcomes import Measured, Recalled
from harness.replay.comparing import ITEM_SECONDS
from harness.rounds import base, intakes
from harness.state import database, folder, manifest
from harness.state.lineage import Lineage
from harness.state.store import RunStore
from principles.h0 import FOLDER, H0Error, verify
from sandbox.interface import Bundle

Part = Literal["gate", "develop", "validate"]
Seconds = Mapping[str, Mapping[str, float]]
"""Measured seconds by question and field."""


@dataclass(frozen=True, slots=True)
class Inputs:
    """What is known of an attempt before it is executed again."""

    iteration: int
    part: Part | None
    """One part alone; None: from recall to the end."""
    run: manifest.RunManifest
    started: float
    """Unix time at which it began, the date of its commits."""
    seconds: Mapping[str, Seconds]
    """Measured seconds of its evaluations, by scope: a clock's readings are inputs, as its date is."""


def copy_inputs(run: RunStore, k: int, part: Part | None, into: Path, replies: bool) -> Inputs:
    """Make the run folder ``into`` for attempt ``k``. Raises UserError naming what of the record is damaged.

    A single part is given the candidate; a whole attempt proposes it again. Without ``replies`` none are copied.
    """
    lines = _lines_before(run, k, part)
    for line in run.audit():
        if line.number <= lines or line.iteration == k:
            run.outcome_text(line.number)  # compared with the digest that the audit holds
    for taken in intakes(run, k):
        if taken.tree:
            run.lineage.read(taken.tree)
    try:
        verify(run.folder, run.manifest.h0)
        shutil.copytree(run.folder / FOLDER, into / FOLDER)
    except H0Error as error:
        raise UserError(str(error)) from None
    _copy_state(run, lines, into)
    scopes = (f"{k:04d}/", *SHARED_SCOPES.values()) if replies else ()
    copy_replies(run.folder / REPLIES, into / REPLIES, scopes)
    if problem := next((problem for _, problem in checked_calls(into / REPLIES) if problem), ""):
        raise UserError(f"{run.folder / REPLIES}: {visible(problem, 300)}; restore it from a copy")
    recalled = run.stage(k, "recall", Recalled)
    seconds = {} if not replies else {f"{k:04d}/{name}": _seconds(run, k, name) for name in ("develop", "validate")}
    return Inputs(k, part, run.manifest, recalled.started if recalled else 0.0, seconds)


def _lines_before(run: RunStore, k: int, part: Part | None) -> int:
    """Audit lines that are inputs."""
    numbers = {line.stage: line.number for line in run.audit() if line.iteration == k}
    if part is not None:
        return max(number for stage, number in numbers.items() if base(stage) == "intake")
    return 1 if k == 0 else min(numbers.values()) - 1


def _copy_state(run: RunStore, lines: int, into: Path) -> None:
    """run.db, the files completed from it, and the repository, as they stood after so many audit lines."""
    with database.reading(run.folder) as old:
        rows = old.execute("SELECT * FROM stage WHERE number <= ? ORDER BY number", (lines,)).fetchall()
    new = database.create(into)
    try:
        new.execute("BEGIN")
        new.executemany("INSERT INTO stage VALUES (?, ?, ?, ?, ?, ?)", rows)
        new.execute("COMMIT")
    finally:
        new.close()
    shutil.copyfile(run.folder / manifest.NAME, into / manifest.NAME)
    for name, column in ((folder.AUDIT, 3), (folder.MEMORY, 4)):
        (into / name).write_text("".join(f"{row[column]}\n" for row in rows if row[column] is not None), "ascii")
    refs: dict[str, str | None] = {}
    for line in run.audit()[:lines]:
        refs.update(line.refs)
    repository = Lineage.init(into / folder.LINEAGE)
    run.lineage.copy_to(repository, sorted({oid for oid in refs.values() if oid is not None}))


def _seconds(run: RunStore, k: int, name: str) -> Seconds:
    measured = run.stage(k, name, Measured)
    items = measured.evaluation.items if measured else ()
    return {item.question: {field: getattr(item, field) for field in ITEM_SECONDS} for item in items}


class TimedEvaluator(Evaluator):
    """Measures as the run did, and takes the seconds from the run's own clock where it has them.

    Latency decides on promotion. Measured again, on another machine, it could decide otherwise while every answer is
    the same.
    """

    times: Mapping[str, Seconds] = {}

    def evaluate(
        self,
        bundle: Bundle,
        split: str,
        scope: str,
        questions: Sequence[str] | None = None,
        shards_per_video: int = 1,
    ) -> Evaluation:
        """See ``Evaluator.evaluate``."""
        found = super().evaluate(bundle, split, scope, questions, shards_per_video)
        times = self.times.get(scope, {})
        items = tuple(_timed(item, times) for item in found.items)
        return found.model_copy(update={"items": items})


def _timed(item: Item, times: Seconds) -> Item:
    return item.model_copy(update=dict(times[item.question])) if item.question in times else item


def find_data(run: manifest.RunManifest, at: Path, named: Path | None) -> Path:
    """The folder of the run's data set: ``named`` or a folder in it, else where the run had it. Raises UserError.

    A data set is known by its digest, wherever it lies. ``at`` is the run's folder: its data may have moved with it.
    """
    roots = [named, *_folders(named)] if named else manifest.data_places(run, at)
    other = ""
    for root in roots:
        try:
            digest = hashlib.sha256((root / "manifest.json").read_bytes()).hexdigest()
        except OSError:
            continue
        if digest == run.data.digest:
            return root
        other = other or f" ({root} holds another one, digest {digest[:12]})"
    raise UserError(
        f"data {run.data.name} with digest {run.data.digest[:12]} is not at {named or run.data.path}{other}; "
        "name the folder that holds it with --data"
    )


def _folders(root: Path) -> list[Path]:
    return sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
