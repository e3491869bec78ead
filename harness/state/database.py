"""``run.db``: opening it for the one writer, reading it without changing a byte, and naming what went wrong.

The writer keeps SQLite's write-ahead log until it closes and never shares the database. A reader that finds no log
reads the file as immutable; one that finds a log (a run is going on, or was killed) reads a copy of both elsewhere.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from harness.errors import UserError

NAME = "run.db"
LARGE_LOG = 64 * 1024 * 1024
"""Bytes of log after which the writer moves it into the database."""
SALT = slice(16, 24)
"""Bytes of the log's header that change whenever it starts anew."""
TABLE = """
CREATE TABLE stage(number INTEGER PRIMARY KEY, iteration INTEGER NOT NULL, stage TEXT NOT NULL,
                   line TEXT NOT NULL, attempt TEXT, outcome TEXT NOT NULL, UNIQUE(iteration, stage))
"""
"""One row for each committed stage: its audit line, the attempt it remembers, its outcome (last: it may be large)."""


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Turn errors of SQLite and the operating system into one line about ``path``."""
    try:
        yield
    except sqlite3.ProgrammingError:
        raise
    except sqlite3.Error as error:
        raise UserError(f"{path}: {_remedy(error)}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; free space or mend the folder's rights, then try again") from None


def _remedy(error: sqlite3.Error) -> str:
    text = str(error)
    if "full" in text:
        return "the disk is full; free space, then run the same command again"
    if "locked" in text or "busy" in text:
        return "another process is using it; wait until that run ends"
    if "readonly" in text or "unable to open" in text or "I/O" in text:
        return f"it cannot be used ({text}); mend the disk or the folder's rights, then try again"
    return f"it is damaged ({text}); restore it from a copy, or start a new run"


def create(folder: Path) -> sqlite3.Connection:
    """A new, empty database. Raises UserError."""
    connection = writer(folder, make=True)
    with naming(folder / NAME):
        connection.execute(TABLE)
    return connection


def writer(folder: Path, make: bool = False) -> sqlite3.Connection:
    """The one writing connection. Raises UserError."""
    path = folder / NAME
    with naming(path):
        connection = sqlite3.connect(_uri(path, "rwc" if make else "rw"), uri=True, timeout=0, isolation_level=None)
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL", "wal_autocheckpoint=0"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
    return connection


def trim_log(connection: sqlite3.Connection, folder: Path) -> None:
    """Move a log that has grown large into the database."""
    log = folder / f"{NAME}-wal"
    if log.exists() and log.stat().st_size > LARGE_LOG:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


@contextmanager
def reading(folder: Path, check: bool = False) -> Iterator[sqlite3.Connection]:
    """A connection that sees the last committed state and changes nothing in the folder.

    With ``check`` every page is looked at first. Raises UserError.
    """
    path = folder / NAME
    with tempfile.TemporaryDirectory(prefix="run-") as scratch:
        with naming(path):
            if not path.is_file():
                raise UserError(f"{path} is missing; restore it from a copy, or start a new run")
            uri = _uri(path, "ro") + "&immutable=1"
            if _log_header(path):
                uri = _uri(_copy(path, Path(scratch)), "rw")
            connection = sqlite3.connect(uri, uri=True, isolation_level=None)
        try:
            with naming(path):
                if check and connection.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
                    raise sqlite3.DatabaseError("its pages do not fit together")
            yield connection
        finally:
            connection.close()


def _copy(path: Path, scratch: Path) -> Path:
    """Database and log as they stood at one moment: tried again when the log started anew in between."""
    copy = scratch / NAME
    copied_log = scratch / f"{NAME}-wal"
    for _ in range(20):
        before = _log_header(path)
        shutil.copyfile(path, copy)
        if before:
            shutil.copyfile(path.with_name(f"{NAME}-wal"), copied_log)
        else:
            copied_log.unlink(missing_ok=True)
        if before == _log_header(path):
            return copy
    raise UserError(f"{path} changes too fast to be read; try again")


def _log_header(path: Path) -> bytes:
    """The salt of the write-ahead log; empty where there is no log."""
    try:
        with path.with_name(f"{NAME}-wal").open("rb") as log:
            return log.read(32)[SALT]
    except FileNotFoundError:
        return b""


def _uri(path: Path, mode: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode={mode}"
