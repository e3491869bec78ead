"""Options shared by several commands, and how figures are printed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console
from rich.table import Column, Table

from harness.config import Config, resolve
from harness.errors import UserError
from harness.state.store import RunStore

F = TypeVar("F", bound=Callable[..., Any])

SETTINGS = Path("harness.toml")
RUNS = Path("runs")
"""Where run folders live, under the current folder."""
UNBOUNDED = 100_000
"""Columns in which every table finds room."""


def settings(flags: Mapping[str, object], file: Path | None) -> Config:
    """The resolved configuration; ``harness.toml`` of the current folder where no file is named."""
    found = file or (SETTINGS if SETTINGS.is_file() else None)
    return resolve(flags, os.environ, found)


def run_option(command: F) -> F:
    """``--run NAME`` (default: the latest run) or a path to a run folder."""
    return click.option(
        "--run", "run_name", metavar="NAME", help="Run to read: a name or a folder. Default: the latest."
    )(command)


def json_option(command: F) -> F:
    """``--json``: the figures as JSON on standard output."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def run_folder(name: str | None) -> Path:
    """The folder of a run by name or path; the latest where none is named. Raises UserError."""
    if name is not None:
        named = RUNS / name
        folder = named if named.is_dir() else Path(name)
        if not (folder / "run.json").is_file():
            raise UserError(
                f"no run {name!r} in {RUNS}/ and no run folder at that path; see what there is with: ls {RUNS}"
            )
        return folder
    candidates = sorted(RUNS.glob("*/run.json"), key=lambda path: path.parent.stat().st_mtime)
    if not candidates:
        raise UserError(
            f"there is no run in {RUNS}/ of this folder; name one with --run, or start one: harness run --iterations 50"
        )
    return candidates[-1].parent


@contextmanager
def reading(name: str | None) -> Iterator[RunStore]:
    """The run's store, opened without changing a byte of its folder."""
    store = RunStore.open(run_folder(name), write=False)
    try:
        yield store
    finally:
        store.close()


def print_json(value: object) -> None:
    """One JSON document on standard output."""
    click.echo(json.dumps(value, indent=2, ensure_ascii=True, allow_nan=False, default=str))


def console() -> Console:
    """Standard output; wide enough for tables when it is not a terminal."""
    shown = Console(highlight=False)
    return shown if shown.is_terminal else Console(highlight=False, width=200)


def print_table(out: Console, table: Table) -> None:
    """A table whose figures are never cut: where it is too wide, in several, each beginning with the first column."""
    parts, unbounded = [[table.columns[0]]], out.options.update(width=UNBOUNDED)
    for column in table.columns[1:]:
        wanted = out.measure(_part(table, [*parts[-1], column]), options=unbounded).maximum
        if len(parts[-1]) > 1 and wanted > out.width:
            parts.append([table.columns[0]])
        parts[-1].append(column)
    for number, columns in enumerate(parts):
        part = _part(table, columns)
        part.title = table.title if number == 0 else None
        part.caption = table.caption if number == len(parts) - 1 else None
        out.print(part)


def _part(table: Table, columns: Sequence[Column]) -> Table:
    part = copy(table)
    part.columns = [replace(column, _index=index) for index, column in enumerate(columns)]
    return part
