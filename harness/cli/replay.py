"""``harness replay``: an attempt executed again from its record, and held against it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import click

from harness.cli.options import console, json_option, print_json, run_folder, run_option
from harness.display import visible
from harness.replay.replaying import Order, Replayed
from harness.replay.replaying import replay as replayed
from harness.replay.scratch import Part

MOST = 40
"""Differences shown of an attempt whose models were asked again."""


@click.command()
@click.argument("k", type=int)
@run_option
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="Where the data is, or a folder above.")
@click.option("--sandbox", type=click.Choice(["docker", "bubblewrap"]), help="Default: the one that the run used.")
@click.option("--stage", type=click.Choice(["gate", "develop", "validate"]), help="Only this part of the attempt.")
@click.option("--live", is_flag=True, help="Ask the models again, within the run's caps. Costs what they cost.")
@json_option
@click.pass_context
def replay(
    context: click.Context,
    k: int,
    run_name: str | None,
    data: Path | None,
    sandbox: str | None,
    stage: str | None,
    live: bool,
    as_json: bool,
) -> None:
    """Execute attempt K again and compare: exit 0 the same, 1 different, 2 it cannot be done.

    Measured seconds are not compared. The run's folder is not changed, and without --live no model is asked.
    """
    order = Order(cast("Part | None", stage), data, sandbox or "", live)
    found = replayed(run_folder(run_name), k, order, _announce)
    if as_json:
        print_json(_as_json(k, found))
    else:
        _show(k, found, live)
    context.exit(1 if found.differences else 0)


def _announce(stage: str) -> None:
    if sys.stderr.isatty():
        click.echo(f"{stage} ...", err=True)


def _as_json(k: int, found: Replayed) -> dict[str, object]:
    fields = ("stage", "question", "field", "recorded", "now")
    rows = [{name: getattr(difference, name) for name in fields} for difference in found.differences]
    return {"attempt": k, "same": not rows, "stages": found.stages, "differences": rows, "notes": found.notes}


def _show(k: int, found: Replayed, live: bool) -> None:
    out = console()
    for note in found.notes:
        out.print(visible(note, 400), style="dim", markup=False, soft_wrap=True)
    if not found.differences:
        out.print(f"attempt {k}: as recorded ({', '.join(found.stages)})", style="green", markup=False, soft_wrap=True)
        return
    shown = found.differences[: MOST if live else 1]
    for difference in shown:
        out.print(f"attempt {k} differs: {difference.line()}", style="yellow", markup=False, soft_wrap=True)
    if more := len(found.differences) - len(shown):
        out.print(f"and {more} more; all of them: --json", style="dim")
