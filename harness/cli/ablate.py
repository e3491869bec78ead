"""``harness ablate``: what the parts are worth, of the final policy and of the harness itself."""

from __future__ import annotations

from pathlib import Path

import click
from rich.table import Table

from harness.ablating import plot, running
from harness.ablating.curves import Summary
from harness.ablating.variants import VARIANTS
from harness.cli.measure import bench_options, measured, one_folder, outcome_options, rescored, tell_failures
from harness.cli.options import console, json_option, print_json, settings
from harness.data.bundled import bundled
from harness.evaluation import ablation, report
from harness.opening import check_parent


@click.group()
def ablate() -> None:
    """Measure what is lost when a part is taken away."""


@ablate.command()
@outcome_options
@bench_options
@json_option
def components(
    split: str,
    folders: tuple[str, ...],
    size: int | None,
    out: Path | None,
    saved: tuple[Path, ...],
    replies: Path | None,
    file: Path | None,
    as_json: bool,
    **flags: object,
) -> None:
    """SEEM with each component off and with each gate; V15 and V44 against their parents."""
    config = settings({**flags, "data": one_folder(folders, saved)}, file)
    if saved:
        found, _ = rescored(saved, folders, config)
    else:
        found, _ = measured(config, ablation.bundles(), split, size, out, replies, "ablate")
    if as_json:
        figures = {name: report.figures(evaluation) for name, evaluation in found.items()}
        print_json({"drops": ablation.as_json(found), "measured": figures})
        return
    shown = console()
    shown.print(ablation.components(found))
    shown.print(ablation.gates(found))
    for note in ablation.notes(found):
        shown.print(note, style="yellow", markup=False, soft_wrap=True)
    tell_failures(shown, found)


@ablate.command("harness")
@click.option("--iterations", type=click.IntRange(1), default=15, show_default=True, help="Of each search.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="S", help="The first seed.")
@click.option("--seeds", type=click.IntRange(1), default=1, show_default=True, help="Searches of each variant.")
@click.option(
    "--variant",
    "names",
    multiple=True,
    type=click.Choice([variant.name for variant in VARIANTS]),
    help="Only this one. Repeatable. Default: all.",
)
@click.option("--at-once", type=click.IntRange(1), default=2, show_default=True, help="Searches at the same time.")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("ablation"),
    show_default=True,
    metavar="DIR",
    help="Folder of the runs and figures; the same command resumes what is there.",
)
@click.option("--data", metavar="DIR", help="Data set folder. Default: the bundled life-log.")
@click.option("--profile", metavar="NAME", help="Which models to use; 'offline' uses none.")
@click.option("--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), help="Where candidates run.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Default: ./harness.toml.")
@json_option
def harness_itself(
    iterations: int,
    seed: int,
    seeds: int,
    names: tuple[str, ...],
    at_once: int,
    out: Path,
    file: Path | None,
    as_json: bool,
    **flags: object,
) -> None:
    """Search with the gate, the memory or the separate roles switched off: gains against what each search spent."""
    config = settings(flags, file)
    check_parent(config)
    if not config.run.data:
        config = settings({**flags, "data": str(bundled(console()))}, file)
    variants = [variant for variant in VARIANTS if not names or variant.name in names]
    out.mkdir(parents=True, exist_ok=True)
    numbers = range(seed, seed + seeds)
    shown = console()
    running.search(config, variants, numbers, iterations, out, at_once, lambda line: click.echo(line, err=True))
    found = running.found(out, variants, numbers)
    label = "offline profile: no language model" if config.run.profile == "offline" else f"profile {config.run.profile}"
    plot.plot(found.points, out, plot.NAME)
    if as_json:
        print_json({"profile": config.run.profile, "summaries": [s.model_dump() for s in found.summaries]})
        return
    shown.print(_summaries(found.summaries, iterations, label))
    shown.print(
        f"every attempt: {out}/curves.csv; drawn: {out}/curves.svg; the runs: {out}/VARIANT-sSEED", markup=False
    )


def _summaries(summaries: tuple[Summary, ...], iterations: int, label: str) -> Table:
    """Medians over the seeds."""
    told = {variant.name: variant.told for variant in VARIANTS}
    table = Table(title=f"after {iterations} iterations, medians over {max(s.seeds for s in summaries)} seeds; {label}")
    columns = ("variant", "dev gain", "transfer gain", "test gain", "validations", "repeats", "promotions")
    for name in (*columns, "search tokens", "answer tokens", "what it is"):
        table.add_column(name, justify="left" if name in ("variant", "what it is") else "right")
    for s in summaries:
        test = "-" if s.test_gain is None else f"{100 * s.test_gain:+.1f}"
        gains = (f"{100 * s.dev_gain:+.1f}", f"{100 * s.transfer_gain:+.1f}", test)
        counts = (f"{s.validations:g}", f"{s.repeats:g}", f"{s.promotions:g}")
        table.add_row(s.variant, *gains, *counts, f"{s.search_tokens:,.0f}", f"{s.answer_tokens:,.0f}", told[s.variant])
    return table
