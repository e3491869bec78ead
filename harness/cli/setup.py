"""``harness config`` and ``harness doctor``."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from harness.cli.options import console, json_option, print_json, settings
from harness.display import cell
from harness.doctor import doctor as examine
from harness.doctor import render


@click.command()
@click.option("--profile", metavar="NAME", help="Which models to use.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Default: ./harness.toml.")
@json_option
def config(profile: str | None, file: Path | None, as_json: bool) -> None:
    """Every setting as resolved, and where it came from.

    From harness.toml, the environment, or a flag.
    """
    rows = settings({"profile": profile}, file).explain()
    if as_json:
        print_json([row._asdict() for row in rows])
        return
    table = Table("setting", "value", "from")
    for row in rows:
        table.add_row(cell(row.name), cell(row.value), cell(row.origin))
    console().print(table)


@click.command()
@json_option
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """What works here, what does not, and the one command that mends it.

    Exit 1 where no sandbox works.
    """
    report = examine()
    if as_json:
        print_json(report.as_json())
    else:
        render(report, console())
    context.exit(0 if report.usable else 1)
