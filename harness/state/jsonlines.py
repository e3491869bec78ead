"""A file of lines that is completed from run.db: appended to, made durable, cut back where a kill tore it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from harness.errors import UserError
from harness.state.database import naming


class LineFile:
    """Appends what is missing. The caller has made sure that what stands in the file is a prefix of the lines."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lines: int | None = None
        """Lines known to be in the file; None before the first look."""

    def complete(self, texts: Sequence[str]) -> None:
        """Append every line of ``texts`` that the file does not have. Raises UserError, the file as it was before."""
        with naming(self.path):
            if self._lines is None:
                self._lines = self.path.read_bytes().count(b"\n")
            missing = texts[self._lines :]
            if missing:
                self._append("".join(text + "\n" for text in missing).encode("ascii"))
            self._lines = len(texts)

    def cut(self, good: int) -> None:
        """Keep the first ``good`` bytes."""
        with naming(self.path):
            if self.path.stat().st_size != good:
                os.truncate(self.path, good)

    def synchronise(self) -> None:
        """Make sure that what was appended is on the disk."""
        with naming(self.path):
            file = os.open(self.path, os.O_RDONLY)
            try:
                os.fsync(file)
            finally:
                os.close(file)

    def _append(self, data: bytes) -> None:
        file = os.open(self.path, os.O_WRONLY | os.O_APPEND)
        try:
            size = os.fstat(file).st_size
            if os.write(file, data) != len(data):
                os.ftruncate(file, size)
                raise UserError(f"{self.path}: the disk is full; free space, then run the same command again")
        finally:
            os.close(file)
