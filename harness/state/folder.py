"""The run folder as a place: its lock, its free space, its unfinished creation, the runs beside it."""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.errors import UserError
from harness.state import database, manifest

LOCK = "run.lock"
LINEAGE = "lineage.git"
AUDIT = "audit.jsonl"
MEMORY = "memory.jsonl"
UNFINISHED = frozenset(
    {AUDIT, MEMORY, LINEAGE, f"{manifest.NAME}.new", database.NAME}
    | {f"{database.NAME}-{kind}" for kind in ("wal", "shm", "journal")}
)
"""What a killed creation can leave: begun again, it starts from nothing."""
FREE_BYTES = 16_000_000
"""A run is not opened for writing with less free space than this."""


@contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Hold the folder for one writer; the kernel releases it when the process dies, however it dies.

    (Not a lock of ``fcntl``'s record kind: those are lost as soon as anything in the process closes the same file.)
    Raises UserError where another process holds it.
    """
    file = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"{folder}: another process is running this run; wait for it, or stop it") from None
        yield
    finally:
        os.close(file)


def check_space(folder: Path) -> None:
    """Raises UserError where the disk is all but full."""
    free = shutil.disk_usage(folder).free
    if free < FREE_BYTES:
        needed = f"a run needs {FREE_BYTES // 1_000_000} MB"
        raise UserError(f"{folder}: the disk is full ({free // 1_000_000} MB free, {needed}); free some space")


def check_vacant(folder: Path) -> None:
    """Raises UserError where the folder holds a run already, or anything that is none of a run's."""
    if (folder / manifest.NAME).exists():
        raise UserError(f"{folder} already holds a run; name another one")
    strangers = sorted(path.name for path in folder.iterdir() if path.name not in UNFINISHED | {"h0", LOCK})
    if strangers:
        raise UserError(f"{folder} is not empty and holds no run ({strangers[0]!a} is in it); name another folder")


def clear_unfinished(folder: Path) -> None:
    """Remove what a killed creation left."""
    for name in sorted(UNFINISHED):
        path = folder / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file so that it is there whole or not at all, and stays after a power cut."""
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(content.encode("utf-8") if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    parent = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(parent)
    finally:
        os.close(parent)


def write_result(path: Path, text: str) -> None:
    """The same for a file that a user asked for. Raises UserError."""
    try:
        write_whole(path, text)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}); check its folder and free space") from None


def runs(root: Path) -> list[Path]:
    """The run folders below ``root``, the newest first."""
    found = [path.parent for path in root.glob(f"*/{manifest.NAME}")]
    return sorted(found, key=lambda path: ((path / manifest.NAME).stat().st_mtime_ns, path.name), reverse=True)
