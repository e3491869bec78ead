"""Every attempt of a run executed again while its record is on no disk and open in no process.

``python -m tests.replay.unreadable COPY --data DIR --sandbox KIND``. It removes the folder for as long as an attempt
executes and writes it back to compare, so give it a copy. Exit 0: all as recorded; else 1.
"""

from __future__ import annotations

import io
import shutil
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import click

from harness.replay.replaying import Order, Replayed, compare, execute, gather, surroundings
from harness.state.store import RunStore


@contextmanager
def unreadable(folder: Path) -> Iterator[None]:
    """The folder is nowhere but in a variable of this function until the block ends."""
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w") as archive:
        archive.add(folder, arcname=".")
    assert not open_in(folder), open_in(folder)
    shutil.rmtree(folder)
    try:
        yield
        assert not folder.exists()
    finally:
        kept.seek(0)
        with tarfile.open(fileobj=kept) as archive:
            archive.extractall(folder)


def open_in(folder: Path) -> list[str]:
    """Files of the folder that a process of this machine holds open, as far as this user may look."""
    found = []
    for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
        with suppress(OSError):  # ended or closed meanwhile, or another user's
            if (file := descriptor.readlink()).is_relative_to(folder.resolve()):
                found.append(f"{descriptor}: {file}")
    return found


def replay_unreadable(folder: Path, k: int, order: Order) -> Replayed:
    """One attempt, its record away while it executes."""
    with tempfile.TemporaryDirectory() as scratch:
        into = Path(scratch)
        inputs = gather(folder, k, order, into)
        assert results_in(into, k) == []
        with surroundings(inputs.run, order, folder) as around:
            with unreadable(folder):
                stopped = execute(inputs, around, into, lambda stage: None)
            return compare(folder, inputs, around, into, stopped)


def results_in(into: Path, k: int) -> list[tuple[int, str]]:
    """Outcomes of the attempt itself or of later ones that the scratch folder holds."""
    with RunStore.open(into, write=False) as store:
        return [(iteration, stage) for iteration, stage in store.stages() if iteration >= k and stage != "run"]


@click.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True))
@click.option("--data", type=click.Path(path_type=Path, exists=True))
@click.option("--sandbox", type=click.Choice(["docker", "bubblewrap"]), default="")
def main(folder: Path, data: Path | None, sandbox: str) -> None:
    """See above."""
    with RunStore.open(folder, write=False) as store:
        attempts = [0, *(attempt.iteration for attempt in store.attempts())]
    differing = 0
    for k in attempts:
        began = time.monotonic()
        found = replay_unreadable(folder, k, Order(data=data, sandbox=sandbox))
        differing += bool(found.differences)
        told = found.differences[0].line() if found.differences else f"as recorded, {len(found.stages)} stages"
        print(f"{k:4d}  {told}  ({time.monotonic() - began:.1f} s)", flush=True)
    print(f"{len(attempts)} replayed, {differing} different")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
