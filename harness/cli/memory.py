"""``harness memory``: build a data set from real material."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from harness.cli.options import console, json_option, print_json, settings
from harness.construction import axis
from harness.construction.build import Built, Order
from harness.construction.build import build as build_data
from harness.construction.describing import PARALLEL, PICTURES, Watch
from harness.data.native import load
from harness.display import cell, visible
from harness.errors import UserError

PATH = click.Path(path_type=Path)


@click.group()
def memory() -> None:
    """Build a data set from captions, transcripts and videos."""


@memory.command()
@click.argument("sources", nargs=-1, required=True, type=PATH, metavar="SOURCE...")
@click.option("--out", required=True, type=PATH, metavar="DIR", help="Data set to write; must not exist yet.")
@click.option("--questions", type=PATH, metavar="FILE", help="Questions with answers, JSON or JSON Lines.")
@click.option("--start", metavar="TIME", help="When the material begins: DAY1T11:00:00, or seconds. Default: 0.")
@click.option("--video", metavar="ID", help="Make one video of all pieces. Default: one of each.")
@click.option("--frames", type=PATH, metavar="DIR", help="Pictures named for their second (90.5.jpg), without a video.")
@click.option("--transcribe", is_flag=True, help="Have the profile's transcriber write down what videos say.")
@click.option("--pictures", default=PICTURES, show_default=True, type=click.IntRange(1, 64), metavar="N",
              help="Pictures of a window that the captioner is shown.")  # fmt: skip
@click.option("--parallel", default=PARALLEL, show_default=True, type=click.IntRange(1, 64), metavar="N",
              help="Calls under way at the same time.")  # fmt: skip
@click.option("--encoding", metavar="NAME", help="Of text files. Default: UTF-8, UTF-16 or GB18030, as found.")
@click.option("--profile", metavar="NAME", help="Which models to use; 'offline' uses none.")
@click.option("--config", "file", type=PATH, metavar="FILE", help="Default: ./harness.toml.")
@json_option
def build(
    sources: tuple[Path, ...],
    out: Path,
    questions: Path | None,
    start: str | None,
    video: str | None,
    frames: Path | None,
    transcribe: bool,
    pictures: int,
    parallel: int,
    encoding: str | None,
    profile: str | None,
    file: Path | None,
    as_json: bool,
) -> None:
    """Make windows of 30 s from SOURCEs: captions (.json, .jsonl, .txt), transcripts (.srt, .vtt), videos, folders.

    Files of the same name belong together. What a video has no captions for is described by the profile's captioner.
    The same command goes on after a stop or a kill; no reply that was received is asked for again.
    """
    begin = None if start is None else axis.seconds(start, 0.0)
    if start is not None and begin is None:
        raise UserError(f"--start {visible(start, 40)}: is no time; write {axis.FORMS}")
    order = Order(sources, out, questions, begin, video, frames, transcribe, pictures, parallel, encoding)
    shown = Console(stderr=True, highlight=False) if as_json else console()
    with _progress(shown) as watch:
        built = build_data(order, settings({"profile": profile}, file), watch, lambda line: _line(shown, line))
    facts = _facts(built)
    if as_json:
        print_json(facts)
    else:
        _show(shown, built, facts)


@contextmanager
def _progress(out: Console) -> Iterator[Watch]:
    """A bar for captions and one for transcripts, on a terminal."""
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=out, disable=not out.is_terminal) as bars:
        tasks = {}

        def watch(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(visible(what, 60), total=total)
            bars.update(tasks[what], completed=done)

        yield watch


def _line(out: Console, text: str) -> None:
    out.print(visible(text, 600), markup=False, soft_wrap=True)


def _facts(built: Built) -> dict[str, object]:
    data = load(built.written.path)
    cost = {
        str(role): {
            "requests": usage.requests,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "dollars": round(usage.dollars, 6),
            "estimated": usage.estimated,
            "seconds": round(built.seconds.get(role, 0.0), 3),
        }
        for role, usage in built.spent.items()
    }
    return {
        "folder": str(built.written.path),
        "name": data.name,
        "digest": data.digest,
        "videos": len(data.videos),
        "windows": sum(len(video.windows) for video in data.videos.values()),
        "with_frames": sum(window.frames for video in data.videos.values() for window in video.windows),
        "questions": {split: len(data.questions(split)) for split in data.splits},
        "asked_now": built.asked,
        "taken_from_before": built.kept,
        "replies": str(built.replies or ""),
        "cost": cost,
        "notes": list(built.written.notes),
    }


def _show(out: Console, built: Built, facts: dict[str, object]) -> None:
    for note in built.written.notes:
        out.print(cell(note, "yellow"), soft_wrap=True)
    for name in ("folder", "name", "digest", "videos", "windows", "with_frames", "questions"):
        out.print(f"{name:<12} {visible(str(facts[name]))}", markup=False, soft_wrap=True)
    if built.replies is None:
        out.print("no model was needed, nothing was spent")
        return
    table = Table(title="cost of the build, earlier sessions included", title_justify="left")
    for name in ("role", "requests", "tokens in", "tokens out", "dollars", "seconds in calls"):
        table.add_column(name, justify="left" if name == "role" else "right")
    for role, usage in built.spent.items():
        about = "~" if usage.estimated else ""
        numbers = [f"{usage.requests:,}", f"{about}{usage.prompt_tokens:,}", f"{about}{usage.completion_tokens:,}"]
        table.add_row(str(role), *numbers, f"{about}{usage.dollars:.4f}", f"{built.seconds.get(role, 0.0):.1f}")
    out.print(table)
    _line(out, f"{built.asked} requests now, {built.kept} replies from before; kept in {built.replies}")
