"""``harness report``, ``view`` and ``plot``: a run as one HTML file, written or served, and as pictures."""

from __future__ import annotations

from pathlib import Path

import click

from harness.ablating import plot as ablated
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
ABLATION = "ablation"
"""The one kind of picture that is of several runs, and where ``harness ablate harness`` writes them by default."""
data_option = click.option(
    "--data", type=click.Path(path_type=Path), metavar="DIR", help="The run's data set, for texts: where it is now."
)


@click.command()
@click.argument("run_name", metavar="[RUN]", required=False)
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="File to write. Default: RUN.html.")
@data_option
def report(run_name: str | None, out: Path | None, data: Path | None) -> None:
    """A run as one HTML file that needs no network.

    Lineage, figures, spend, failures, every attempt.

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
@click.argument("kind", type=click.Choice([*KINDS, ABLATION]))
@click.argument("source", type=click.Path(path_type=Path), metavar="[FOLDER|CSV]", required=False)
@run_option
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), required=True, metavar="DIR", help="Folder.")
def plot(kind: str, source: Path | None, run_name: str | None, out: Path) -> None:
    """Pictures as SVG, with their data as CSV.

    As PNG too where the extra "plot" is installed.

    All are of a run but ``ablation``: it draws the curves that "harness ablate harness" wrote, by default into the
    folder ablation.
    """
    if kind == ABLATION:
        if run_name is not None:
            raise UserError("plot ablation is of several runs: leave out --run, and name the ablation's folder")
        points = ablated.read_points(source or Path(ABLATION))
        files = ablated.plot(points, out, ABLATION)
        offline = any(point.profile == "offline" for point in points)
    else:
        if source is not None:
            raise UserError(f"plot {kind} is of a run: name it with --run, not {visible(str(source), 200)}")
        with reading(run_name) as store:
            files = write_plots(store, kind, out)
            offline = store.manifest.profile == "offline"
    click.echo("\n".join(visible(str(file)) for file in files))
    if not can_png():
        click.echo('no PNG: pip install "lvmh[plot]"')
    if offline:
        click.echo(OFFLINE)
