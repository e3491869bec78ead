"""``harness ablate``: what the parts are worth."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.measure import bench_options, measured, one_folder, outcome_options, rescored, tell_failures
from harness.cli.options import console, json_option, print_json, settings
from harness.evaluation import ablation, report


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
