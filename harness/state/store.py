"""The run folder: one SQLite transaction for each stage is the commit point; everything else is completed from it.

A row holds the stage's outcome, its audit line with the git references wanted, and the attempt, if there is one.
``audit.jsonl``, ``memory.jsonl`` and the references follow; after a kill, opening the run for writing makes them whole.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError

from harness.display import visible
from harness.errors import UserError
from harness.state import database, manifest
from harness.state import folder as places
from harness.state.audit import FIRST, AuditLine, canonical, digest
from harness.state.jsonlines import LineFile
from harness.state.lineage import Lineage, check_refs
from harness.state.manifest import RunManifest
from harness.state.records import REMEDY, Records, load, whole_bytes
from meta_memory.records import Attempt

T = TypeVar("T", bound=BaseModel)
SMALL = 65_536
"""Outcomes whose JSON is shorter are kept in memory once seen."""
LARGE = 8
"""Outcomes of that size and more which are kept parsed."""


class RunStore:
    """One run, open. ``RunStore.create`` and ``RunStore.open`` make one; ``close`` (or ``with``) ends it orderly.

    A store open for reading changes not a byte of the folder and may be used while another process writes. One thread.
    """

    def __init__(
        self,
        folder: Path,
        run: RunManifest,
        records: Records,
        connection: sqlite3.Connection,
        clock: Callable[[], float] | None,
    ) -> None:
        """Use ``create`` or ``open``. Without a clock the store is open for reading."""
        self.folder = folder
        self.manifest = run
        self.lineage = Lineage.open(folder / places.LINEAGE)
        self._records = records
        self._connection = connection
        self._clock = clock
        self._cleanup = ExitStack()
        self._small: dict[tuple[int, str], BaseModel] = {}
        self._large: dict[tuple[int, str], BaseModel] = {}
        self._audit = LineFile(folder / places.AUDIT)
        self._memory = LineFile(folder / places.MEMORY)

    # ------------------------------------------------------------ opening and closing

    @classmethod
    def create(cls, folder: Path, run: RunManifest, clock: Callable[[], float] = time.time) -> RunStore:
        """Make a run in ``folder``, which may hold ``h0`` and what a killed creation left, and nothing else.

        ``run.json`` is written last: a folder without it is no run yet. ``clock`` gives Unix time in seconds.
        Raises UserError.
        """
        with ExitStack() as cleanup, database.naming(folder):
            folder.mkdir(parents=True, exist_ok=True)
            places.check_vacant(folder)
            cleanup.enter_context(places.lock(folder))
            places.check_vacant(folder)  # again: another process may have made one just before
            places.clear_unfinished(folder)
            places.check_space(folder)
            Lineage.init(folder / places.LINEAGE).close()
            for name in (places.AUDIT, places.MEMORY):
                (folder / name).touch()
            connection = database.create(folder)
            cleanup.callback(connection.close)
            store = cls(folder, run, Records(), connection, clock)
            store.commit_stage(0, "run", run, summary=f"run {run.name} created")
            places.write_whole(folder / manifest.NAME, run.model_dump_json(indent=2) + "\n")
            store._cleanup = cleanup.pop_all()
        return store

    @classmethod
    def open(cls, folder: Path, write: bool, clock: Callable[[], float] = time.time) -> RunStore:
        """Open the run in ``folder``. For writing, what a kill left undone is completed.

        Raises UserError, with the folder unchanged: no run, another version, damaged or edited files (which line), a
        second writer, a full disk, a read-only folder.
        """
        run = manifest.read_manifest(folder)
        with ExitStack() as cleanup, database.naming(folder):
            if write:
                cleanup.enter_context(places.lock(folder))
                places.check_space(folder)
                with database.reading(folder, check=True) as connection:
                    records, good = _checked(connection, run, folder)
                connection = database.writer(folder)
                cleanup.callback(connection.close)
                store = cls(folder, run, records, connection, clock)
                store._make_whole(*good)
            else:
                connection = cleanup.enter_context(database.reading(folder))
                records, _ = _checked(connection, run, folder)
                store = cls(folder, run, records, connection, None)
            store._cleanup = cleanup.pop_all()
        return store

    def close(self) -> None:
        """End orderly: the write-ahead log is moved into the database, the lock is released. Idempotent."""
        self.lineage.close()
        with database.naming(self.folder):
            self._cleanup.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------ writing

    def commit_stage(
        self,
        iteration: int,
        stage: str,
        outcome: BaseModel,
        *,
        summary: str,
        refs: Mapping[str, str | None] | None = None,
        attempt: Attempt | None = None,
    ) -> AuditLine:
        """Commit a stage: all of it is on disk when this returns, none of it where the transaction failed.

        ``refs``: git references to set (None removes one); their commits must be stored. ``attempt``: what meta-memory
        keeps of the iteration. Raises UserError (full disk, failing disk); ValueError for a stage committed before.
        """
        if self._clock is None:
            raise ValueError("the run is open for reading")
        if (iteration, stage) in self._records.numbers:
            raise ValueError(f"stage {stage} of iteration {iteration} was committed before")
        wanted = self._checked_refs(refs or {})
        text = _dump(outcome)
        remembered = None if attempt is None else canonical(attempt.model_dump(mode="json"))
        line = AuditLine(
            number=len(self._records.lines) + 1,
            at=float(self._clock()),
            iteration=iteration,
            stage=stage,
            summary=visible(summary),
            outcome=digest(text),
            attempt=None if remembered is None else digest(remembered),
            refs=wanted,
            previous=self.head,
        ).sealed()
        self._settle_before(iteration)
        row = (line.number, iteration, stage, line.text(), remembered, text)
        with database.naming(self.folder / database.NAME):
            self._connection.execute("INSERT INTO stage VALUES (?, ?, ?, ?, ?, ?)", row)
        self._records.add(line, row[3], remembered)
        self._keep((iteration, stage), text, outcome)
        self._complete(wanted)
        return line

    def _checked_refs(self, wanted: Mapping[str, str | None]) -> dict[str, str | None]:
        check_refs(wanted)
        for name, oid in wanted.items():
            if oid is not None and not self.lineage.has_commit(oid):
                raise ValueError(f"{name} is to name {oid}, which is no stored commit")
        return dict(wanted)

    def _settle_before(self, iteration: int) -> None:
        """Before the first stage of an iteration: make the lines of the earlier ones durable.

        So a power cut costs the files only lines of the newest iteration, and any other loss is an edit.
        """
        if self._records.lines and self._records.lines[-1].iteration != iteration:
            self._audit.synchronise()
            self._memory.synchronise()

    def _complete(self, refs: Mapping[str, str | None]) -> None:
        """The files and references that show what is committed. A kill in here is mended at the next opening."""
        self._audit.complete(self._records.audit_texts)
        self._memory.complete(self._records.memory_texts)
        self.lineage.set_refs(refs)
        with database.naming(self.folder / database.NAME):
            database.trim_log(self._connection, self.folder)

    def _make_whole(self, audit_bytes: int, memory_bytes: int) -> None:
        self._audit.cut(audit_bytes)
        self._memory.cut(memory_bytes)
        self.lineage.tidy()
        found = self.lineage.refs()
        self._complete({name: oid for name, oid in self._records.refs.items() if found.get(name) != oid})

    # ------------------------------------------------------------ reading

    @property
    def head(self) -> str:
        """Hash of the newest audit line."""
        return self._records.lines[-1].hash if self._records.lines else FIRST

    def stage(self, iteration: int, stage: str, kind: type[T]) -> T | None:
        """The committed outcome of a stage, or None. Raises UserError where it is not what was committed."""
        key = (iteration, stage)
        number = self._records.numbers.get(key)
        if number is None:
            return None
        kept = self._small.get(key) or self._large.get(key)
        if isinstance(kept, kind):
            return kept
        text = self.outcome_text(number)
        outcome = _parse(kind, text, self.folder / database.NAME)
        self._keep(key, text, outcome)
        return outcome

    def _keep(self, key: tuple[int, str], text: str, outcome: BaseModel) -> None:
        """All small outcomes and the last few large ones stay parsed: an iteration asks for the same ones often."""
        if len(text) < SMALL:
            self._small[key] = outcome
            return
        self._large[key] = outcome
        if len(self._large) > LARGE:
            del self._large[next(iter(self._large))]

    def outcome_text(self, number: int) -> str:
        """The outcome of an audit line as stored (JSON). Raises UserError where it is not what was committed."""
        path = self.folder / database.NAME
        with database.naming(path):
            row = self._connection.execute("SELECT outcome FROM stage WHERE number = ?", (number,)).fetchone()
        if row is None or digest(row[0]) != self._records.lines[number - 1].outcome:
            raise UserError(f"{path}: the outcome of audit line {number} is not what was written: {REMEDY}")
        return str(row[0])

    def stages(self) -> tuple[tuple[int, str], ...]:
        """(iteration, stage) of everything committed, in order."""
        return tuple(self._records.numbers)

    def audit(self) -> tuple[AuditLine, ...]:
        """All audit lines, in order."""
        return tuple(self._records.lines)

    def attempts(self) -> tuple[Attempt, ...]:
        """Every remembered attempt, in order."""
        return tuple(self._records.attempts)

    def attempt(self, iteration: int) -> Attempt | None:
        """The remembered attempt of an iteration; None where it is not closed."""
        return next((attempt for attempt in self._records.attempts if attempt.iteration == iteration), None)

    def refs(self) -> dict[str, str]:
        """The git references of the run, also where a kill kept git from having them."""
        return {name: oid for name, oid in self._records.refs.items() if oid is not None}


def _checked(connection: sqlite3.Connection, run: RunManifest, folder: Path) -> tuple[Records, tuple[int, int]]:
    """Everything that is looked at before a run is used; changes nothing."""
    records = load(connection, run, folder)
    good = whole_bytes(folder, records)
    Lineage.open(folder / places.LINEAGE)
    return records, good


def _dump(outcome: BaseModel) -> str:
    """The outcome as JSON; a lone surrogate, which a model's text can hold, is written as an escape."""
    try:
        return outcome.model_dump_json()
    except PydanticSerializationError:
        return json.dumps(outcome.model_dump(mode="json"), ensure_ascii=True)


def _parse(kind: type[T], text: str, path: Path) -> T:
    try:
        return kind.model_validate_json(text)
    except ValidationError:
        try:
            return kind.model_validate(json.loads(text))  # lone surrogates: pydantic's own parser refuses them
        except ValidationError as error:
            problem = error.errors()[0]["msg"]
            raise UserError(
                f"{path}: holds no {kind.__name__} of this version ({problem}); use the one that wrote it"
            ) from None
