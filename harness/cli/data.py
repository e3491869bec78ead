"""``harness data``: import, make and check data sets."""

from __future__ import annotations

from pathlib import Path

import click
from rich.text import Text

from harness.cli.options import console, json_option, print_json
from harness.data import check as checks
from harness.data.ego_r1 import import_ego_r1
from harness.data.egolife import import_egolife
from harness.data.lifelog import make_lifelog
from harness.data.lvbench import import_lvbench
from harness.data.native import load
from harness.data.videomme import LENGTHS, import_videomme
from harness.data.write import Written
from harness.display import cell, visible

_path = click.argument("path", type=click.Path(path_type=Path))
_out = click.option(
    "--out", required=True, type=click.Path(path_type=Path), help="Folder to write; must not exist yet."
)
_captions = click.option(
    "--captions", type=click.Path(path_type=Path), help="Folder of captions or of data sets that memory build made."
)
_seed = click.option("--seed", default=0, show_default=True, type=click.IntRange(min=0), help="Deals the splits.")


@click.group()
def data() -> None:
    """Import, make and check data sets in the native format."""


@data.group(name="import")
def import_() -> None:
    """Read a published data set and write it in the native format."""


@import_.command()
@_path
@_out
@click.option("--subject", default="A1_JAKE", show_default=True, help="Whose questions and captions.")
@json_option
def egolife(path: Path, out: Path, subject: str, as_json: bool) -> None:
    """EgoLifeQA as published: the folder that holds EgoLifeQA/ and EgoLifeCap/."""
    _tell(import_egolife(path, out, subject), as_json)


@import_.command(name="ego-r1")
@_path
@_out
@_captions
@_seed
@json_option
def ego_r1(path: Path, out: Path, captions: Path | None, seed: int, as_json: bool) -> None:
    """Ego-R1 Bench as published: the folder that holds manual-benchmark/ and gemini-benchmark/.

    It has no captions of its own: --captions names the folder of EgoLife's EgoLifeCap/.
    """
    _tell(import_ego_r1(path, out, captions, seed), as_json)


@import_.command()
@_path
@_out
@_captions
@click.option("--length", default="all", show_default=True, type=click.Choice(["all", *LENGTHS]), help="Which videos.")
@_seed
@json_option
def videomme(path: Path, out: Path, captions: Path | None, length: str, seed: int, as_json: bool) -> None:
    """Video-MME as published: the folder that holds videomme/*.parquet and subtitle/ or subtitle.zip.

    Windows come from --captions, else from the subtitles; videos that have neither are left out.
    """
    _tell(import_videomme(path, out, captions, length, seed), as_json)


@import_.command()
@_path
@_out
@_captions
@_seed
@json_option
def lvbench(path: Path, out: Path, captions: Path | None, seed: int, as_json: bool) -> None:
    """LVBench as published: video_info.meta.jsonl, or the folder that holds it.

    It has neither captions nor subtitles: --captions is needed.
    """
    _tell(import_lvbench(path, out, captions, seed), as_json)


@data.command()
@_out
@click.option(
    "--seed", default=0, show_default=True, type=click.IntRange(min=0), help="The same seed gives the same bytes."
)
@click.option("--scale", default=1.0, show_default=True, type=float, help="0.2 to 1: shorter days, fewer questions.")
@json_option
def make(out: Path, seed: int, scale: float, as_json: bool) -> None:
    """Generate a life-log: a simulated world told as 30 s windows, with questions and gold."""
    _tell(make_lifelog(out, seed, scale), as_json)


@data.command()
@_path
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
