"""``harness export``: what a run found, for use elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import reading, run_option
from harness.cli.read import known
from harness.display import visible
from harness.export.policy import export_policy
from harness.export.records import export_records
from harness.history import OFFLINE


@click.group()
def export() -> None:
    """What a run found: a policy as a package, attempts as JSON Lines."""


@export.command()
@click.argument("k", type=int, required=False)
@run_option
@click.option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new folder.")
def policy(k: int | None, run_name: str | None, out: Path) -> None:
    """Attempt K as a Python package that answers on its own; by default the best of the frontier.

    Nothing of the candidate is executed here. Whoever runs the package runs it without the sandbox.
    """
    with reading(run_name) as store:
        if k is not None:
            known(store, k)
        done = export_policy(store, k, out)
        offline = store.manifest.profile == "offline"
    click.echo(f"{visible(str(done.folder))}: attempt {done.attempt}, {visible(done.outcome)}")
    click.echo(f"it runs without the sandbox: read {done.package}/candidate first; how to ask it: README.md")
    if offline:
        click.echo(OFFLINE)


@export.command()
@run_option
@click.option(
    "--out", type=click.Path(path_type=Path, dir_okay=False), required=True, metavar="FILE", help="A new file."
)
def records(run_name: str | None, out: Path) -> None:
    """Every attempt as a line of JSON: hypothesis, verdicts, figures, costs, commit, lesson. No gold answers."""
    with reading(run_name) as store:
        count = export_records(store, out)
        offline = store.manifest.profile == "offline"
    click.echo(f"{visible(str(out))}: {count} attempts, a line each")
    if offline:
        click.echo(OFFLINE)
