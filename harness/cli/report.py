"""``harness report``: a run as one HTML file."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import reading
from harness.cli.tables import OFFLINE
from harness.display import visible
from harness.errors import UserError
from harness.report.page import Report

DATA = click.option(
    "--data", type=click.Path(path_type=Path), help="Folder of the run's data set, for the texts of questions."
)


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write. Default: RUN.html.")
@DATA
def report(run_name: str | None, out: Path | None, data: Path | None) -> None:
    """A run as one HTML file that needs no network: lineage, figures, spend, failures, every attempt.

    RUN is a name or a folder; the latest where none is named.
    """
    with reading(run_name) as store:
        page = Report(data).page(store)
        name, offline = store.manifest.name, store.manifest.profile == "offline"
    target = out or Path(f"{name}.html")
    try:
        target.write_text(page, encoding="utf-8")
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error.strerror}); name another file with --out") from None
    size = len(page.encode("utf-8")) / 1e6
    click.echo(f"{visible(str(target))}: {size:.1f} MB; open it in a browser")
    if offline:
        click.echo(OFFLINE)
