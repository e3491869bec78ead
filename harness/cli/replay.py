"""``harness replay``: an attempt executed again from its record, and held against it."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import cast

import click
from rich.console import Console

from harness.cli.options import console, json_option, print_json, run_folder, run_option, settings
from harness.display import visible
from harness.errors import UserError
from harness.evaluation.report import figures, headline
from harness.replay.replaying import Beyond, Order, Replayed, replay_all
from harness.replay.replaying import replay as replayed
from harness.replay.scratch import Part
from harness.replay.shell import Terminal, shell
from harness.state.manifest import read_manifest

MOST = 40
"""Differences shown of an attempt whose models were asked again."""


@click.command()
@click.argument("k", type=int, required=False)
@click.option("--all", "every", is_flag=True, help="Every finished attempt, one after the other.")
@run_option
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="Where the data is, or a folder above.")
@click.option("--sandbox", type=click.Choice(["docker", "bubblewrap"]), help="Default: the one that the run used.")
@click.option(
    "--stage",
    type=click.Choice(["gate", "develop", "validate"]),
    help="Only this part; develop also measures what was never measured.",
)
@click.option("--live", is_flag=True, help="Ask the models of your own configuration again. Costs money.")
@click.option("--shell", "look", is_flag=True, help="A Python prompt in the attempt's sandbox instead.")
@json_option
@click.pass_context
def replay(
    context: click.Context,
    k: int | None,
    every: bool,
    run_name: str | None,
    data: Path | None,
    sandbox: str | None,
    stage: str | None,
    live: bool,
    look: bool,
    as_json: bool,
) -> None:
    """Execute attempt K again, or all, and compare with the record.

    Exit 0: the same, 1: different, 2: it cannot be done.

    Measured seconds are not compared. The run's folder is not changed, and without --live no model is asked.
    """
    if look:
        if k is None or every or data or stage or live or as_json:
            raise UserError("--shell takes the number K of one attempt, --run and --sandbox, and nothing else")
        shell(run_folder(run_name), k, sandbox or "", Terminal(click.echo, _typed))
        return
    if every and (k is not None or live):
        raise UserError("--all replays every attempt from its record: give it neither K nor --live")
    folder = run_folder(run_name)
    own = settings({"profile": read_manifest(folder).profile}, None) if live else None
    order = Order(cast("Part | None", stage), data, sandbox or "", own)
    if every:
        context.exit(_all(replay_all(folder, order, _announce), as_json))
    if k is None:
        raise UserError("which attempt? give its number K, or --all")
    found = replayed(folder, k, order, _announce)
    if as_json:
        print_json(_as_json(k, found))
    else:
        _notes(found.notes)
        _show(k, found, MOST if live else 1)
    context.exit(1 if found.differences else 0)


def _all(replays: Iterator[tuple[int, Replayed | UserError]], as_json: bool) -> int:
    """Each attempt as it comes, then how many; the exit code: 1 where one differs, else 2 where one could not be."""
    found: dict[int, Replayed | UserError] = {}
    noted: set[str] = set()
    for k, found[k] in replays:
        if not as_json:
            _show_one(k, found[k], noted)
    failed = sum(isinstance(one, UserError) for one in found.values())
    differing = sum(isinstance(one, Replayed) and bool(one.differences) for one in found.values())
    if as_json:
        print_json([_as_json(k, one) for k, one in found.items()])
    else:
        same = len(found) - failed - differing
        line = f"{len(found)} replayed: {same} as recorded, {differing} different, {failed} could not be"
        console().print(line, style="green" if same == len(found) else "yellow", markup=False)
    return 1 if differing else 2 if failed else 0


def _show_one(k: int, found: Replayed | UserError, noted: set[str]) -> None:
    """One of several; a note that was shown is not shown again."""
    if isinstance(found, UserError):
        console().print(f"attempt {k}: {visible(str(found), 600)}", style="red", markup=False, soft_wrap=True)
        return
    _notes([note for note in found.notes if note not in noted])
    noted.update(found.notes)
    _show(k, found, 1)


def _typed(prompt: str) -> str:
    """One line; with the keys and the history of a shell where Python has them."""
    with contextlib.suppress(ImportError):
        import_module("readline")
    return input(prompt)


def _announce(stage: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"{stage} ...", err=True)


def _as_json(k: int, found: Replayed | UserError) -> dict[str, object]:
    if isinstance(found, UserError):
        return {"attempt": k, "error": str(found)}
    fields = ("stage", "question", "field", "recorded", "now")
    rows = [{name: getattr(difference, name) for name in fields} for difference in found.differences]
    told = {"attempt": k, "same": not rows, "stages": found.stages, "differences": rows, "notes": found.notes}
    if found.beyond is None:
        return told
    measured = found.beyond.measured
    beyond = {"rejected_at": found.beyond.ended, "would_pass": not measured.rejected, "reasons": measured.reasons}
    return {**told, "same": None, "not_part_of_the_run": {**beyond, "figures": figures(measured.evaluation)}}


def _notes(notes: Sequence[str]) -> None:
    for note in notes:
        console().print(visible(note, 400), style="dim", markup=False, soft_wrap=True)


def _show(k: int, found: Replayed, most: int) -> None:
    out = console()
    if found.beyond is not None:
        _show_beyond(out, k, found.beyond)
        return
    if not found.differences:
        out.print(f"attempt {k}: as recorded ({', '.join(found.stages)})", style="green", markup=False, soft_wrap=True)
        return
    shown = found.differences[:most]
    for difference in shown:
        out.print(f"attempt {k} differs: {difference.line()}", style="yellow", markup=False, soft_wrap=True)
    if more := len(found.differences) - len(shown):
        out.print(f"and {more} more; all of them: --json", style="dim")


def _show_beyond(out: Console, k: int, beyond: Beyond) -> None:
    """A figure that the run does not have must not look like one of its own."""
    measured = beyond.measured
    head = (
        f"attempt {k} was rejected at {beyond.ended}, so the run never measured it; measured now, not part of the run:"
    )
    out.print(head, style="yellow", markup=False, soft_wrap=True)
    bar = "at develop it would have been rejected:" if measured.rejected else "at develop it would have passed:"
    for line in (headline(measured.evaluation), bar, *measured.reasons):
        out.print(f"  {visible(line, 400)}", markup=False, soft_wrap=True)
