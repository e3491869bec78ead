"""The committed state of a run as read from run.db, and whether the files beside it say the same."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from harness.errors import UserError
from harness.state.audit import AuditLine, Edited, broken_line, digest, whole_prefix
from harness.state.database import NAME, naming
from harness.state.folder import AUDIT, MEMORY
from harness.state.manifest import RunManifest
from meta_memory.records import Attempt

REMEDY = "it was edited or the disk fails; restore the folder from a copy, or start a new run"


@dataclass
class Records:
    """What is committed, outcomes apart."""

    lines: list[AuditLine] = field(default_factory=list)
    audit_texts: list[str] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    memory_texts: list[str] = field(default_factory=list)
    refs: dict[str, str | None] = field(default_factory=dict)
    """What every git reference is to be; None: removed."""
    numbers: dict[tuple[int, str], int] = field(default_factory=dict)
    """Audit line number by (iteration, stage)."""

    def add(self, line: AuditLine, text: str, attempt: str | None) -> None:
        """Take in a committed stage. Raises ValueError for an attempt that is none."""
        self.lines.append(line)
        self.audit_texts.append(text)
        self.numbers[line.iteration, line.stage] = line.number
        self.refs.update(line.refs)
        if attempt is not None:
            self.attempts.append(Attempt.model_validate(json.loads(attempt)))
            self.memory_texts.append(attempt)

    def settled(self) -> tuple[int, int]:
        """Lines of ``audit.jsonl`` and ``memory.jsonl`` that were made durable: those of earlier iterations."""
        newest = self.lines[-1].iteration
        audit = len(self.lines)
        while audit and self.lines[audit - 1].iteration == newest:
            audit -= 1
        return audit, sum(attempt.iteration != newest for attempt in self.attempts)


def load(connection: sqlite3.Connection, run: RunManifest, folder: Path) -> Records:
    """Read what is committed. Raises UserError where the chain is broken or does not begin with this manifest."""
    path = folder / NAME
    with naming(path):
        rows = connection.execute("SELECT line, attempt FROM stage ORDER BY number").fetchall()
        first = connection.execute("SELECT outcome FROM stage WHERE number = 1").fetchone()
    if broken := broken_line([row[0] for row in rows]):
        raise UserError(f"{path}: audit line {broken} does not continue the chain: {REMEDY}")
    records = Records()
    for text, attempt in rows:
        line = AuditLine.model_validate_json(text)
        try:
            if line.attempt != (None if attempt is None else digest(attempt)):
                raise ValueError
            records.add(line, text, attempt)
        except ValueError:
            raise UserError(
                f"{path}: the attempt of audit line {line.number} is not what was written: {REMEDY}"
            ) from None
    if first is None or not _same(first[0], records.lines[0], run):
        raise UserError(f"{folder / 'run.json'} is not what the first audit line records: {REMEDY}")
    return records


def _same(outcome: str, line: AuditLine, run: RunManifest) -> bool:
    try:
        return digest(outcome) == line.outcome and RunManifest.model_validate_json(outcome) == run
    except ValidationError:
        return False


def whole_bytes(folder: Path, records: Records) -> tuple[int, int]:
    """How many bytes of ``audit.jsonl`` and ``memory.jsonl`` are good; what follows was torn by a kill.

    Raises UserError naming file and line where they say something else than run.db.
    """
    good = []
    texts = {AUDIT: records.audit_texts, MEMORY: records.memory_texts}
    for (name, lines), settled in zip(texts.items(), records.settled(), strict=True):
        path = folder / name
        with naming(path):
            content = path.read_bytes()
        try:
            good.append(whole_prefix(content, lines, settled))
        except Edited as edited:
            raise UserError(f"{path}: line {edited.line} {edited}: {REMEDY}") from None
    return good[0], good[1]
