"""``harness data``: import, make and check data sets."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from harness.cli.options import console, json_option, print_json
from harness.data import check as checks
from harness.data.egolife import import_egolife
from harness.data.lifelog import make_lifelog
from harness.data.native import load
from harness.data.write import Written
from harness.display import cell, visible


@click.group()
def data() -> None:
    """Import, make and check data sets in the native format."""


@data.group(name="import")
def import_() -> None:
    """Read a published data set and write it in the native format."""


@import_.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write; must not exist yet.")
@click.option("--subject", default="A1_JAKE", show_default=True, help="Whose questions and captions.")
@json_option
def egolife(path: Path, out: Path, subject: str, as_json: bool) -> None:
    """EgoLifeQA as published: the folder that holds EgoLifeQA/ and EgoLifeCap/."""
    _tell(import_egolife(path, out, subject), as_json)


@data.command()
@click.option("--out", required=True, type=click.Path(path_type=Path), help="Folder to write; must not exist yet.")
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="The same seed gives the same bytes."
)
@click.option("--scale", default=1.0, show_default=True, type=float, help="0.2 to 1: shorter days, fewer questions.")
@json_option
def make(out: Path, seed: int, scale: float, as_json: bool) -> None:
    """Generate a life-log: a simulated world told as 30 s windows, with questions and gold."""
    _tell(make_lifelog(out, seed, scale), as_json)


@data.command()
@click.argument("path", type=click.Path(path_type=Path))
@json_option
@click.pass_context
def check(context: click.Context, path: Path, as_json: bool) -> None:
    """Look for everything that is wrong with a data set: file, line, what to do. Exit 1 where something is."""
    problems = checks.check(path)
    if as_json:
        print_json([{"file": str(p.file), "line": p.line, "what": p.what, "to_do": p.to_do} for p in problems])
    else:
        out = console()
        for p in problems:
            where = f"{p.file}:{p.line}" if p.line else str(p.file)
            out.print(cell(where, "bold") + Text(" ") + cell(p.what) + Text(": ") + cell(p.to_do), soft_wrap=True)
        out.print(
            f"{len(problems)} problem(s) in {visible(str(path))}" if problems else "no problem found", markup=False
        )
    context.exit(1 if problems else 0)


def _tell(written: Written, as_json: bool) -> None:
    """What was written, read back, with the notes of whoever wrote it."""
    dataset = load(written.path)
    facts = {
        "folder": str(written.path),
        "name": dataset.name,
        "digest": dataset.digest,
        "videos": len(dataset.videos),
        "windows": sum(len(video.windows) for video in dataset.videos.values()),
        "questions": {split: len(dataset.questions(split)) for split in dataset.splits},
        "notes": list(written.notes),
    }
    if as_json:
        print_json(facts)
        return
    for name, value in facts.items():
        if name != "notes":
            console().print(f"{name:<10} {visible(str(value))}", markup=False)
    for note in written.notes:
        console().print(cell(note), soft_wrap=True)
