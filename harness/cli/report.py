"""``harness report``, ``view`` and ``plot``: a run as one HTML file, written or served, and as pictures."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.options import reading, run_folder, run_option
from harness.display import visible
from harness.errors import UserError
from harness.history import OFFLINE
from harness.report.live import View
from harness.report.page import Report
from harness.report.plot import KINDS, can_png
from harness.report.plot import plot as write_plots
from harness.state.folder import write_whole

PORT = 8765
data_option = click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="The run's data set, for texts: where it is now."
)


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write. Default: RUN.html.")
@data_option
def report(run_name: str | None, out: Path | None, data: Path | None) -> None:
    """A run as one HTML file that needs no network: lineage, figures, spend, failures, every attempt.

    RUN is a name or a folder; the latest where none is named.
    """
    with reading(run_name) as store:
        page = Report(data).page(store).encode("utf-8")
        offline, name = store.manifest.profile == "offline", store.folder.resolve().name
    target = out or Path(f"{name}.html")
    try:
        write_whole(target, page)
    except OSError as error:
        raise UserError(f"{target} cannot be written ({error.strerror}); name another file with --out") from None
    click.echo(f"{visible(str(target))}: {len(page) / 1e6:.1f} MB; open it in a browser")
    if offline:
        click.echo(OFFLINE)


@click.command()
@run_option
@click.option("--port", type=click.IntRange(0, 65_535), default=PORT, show_default=True, help="0 takes any free one.")
@data_option
def view(run_name: str | None, port: int, data: Path | None) -> None:
    """The page of a run, served on this machine while the run goes on. Ctrl-C ends it."""
    with View(run_folder(run_name), port, data) as server:
        click.echo(f"{server.address}\nonly this machine can open it, and only with this address; Ctrl-C ends it")
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            click.echo("ended")


@click.command()
@click.argument("kind", type=click.Choice(KINDS))
@run_option
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR", help="Folder.")
def plot(kind: str, run_name: str | None, out: Path) -> None:
    """Pictures of a run as SVG, and as PNG where the extra "plot" is installed, with their data beside them as CSV."""
    with reading(run_name) as store:
        files = write_plots(store, kind, out)
        offline = store.manifest.profile == "offline"
    click.echo("\n".join(visible(str(file)) for file in files))
    if not can_png():
        click.echo('no PNG: pip install "lvmh[plot]"')
    if offline:
        click.echo(OFFLINE)
