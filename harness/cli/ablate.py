"""``harness ablate``: what the parts are worth."""

from __future__ import annotations

from pathlib import Path

import click

from harness.cli.measure import (
    bench_options,
    check_out,
    check_split,
    errors,
    keeper,
    outcome_options,
    rescored,
    tell_failures,
)
from harness.cli.options import console, json_option, print_json, settings
from harness.config import Config
from harness.evaluation import ablation, report
from harness.evaluation.outcomes import Evaluation
from harness.measuring import bench, dataset, measure


@click.group()
def ablate() -> None:
    """Measure what is lost when a part is taken away."""


@ablate.command()
@outcome_options
@bench_options
@json_option
def components(
    split: str,
    out: Path | None,
    saved: Path | None,
    replies: Path | None,
    file: Path | None,
    as_json: bool,
    **flags: object,
) -> None:
    """SEEM with each component off and with each gate; V15 and V44 against their parents."""
    config = settings(flags, file)
    found = rescored(saved, config)[0] if saved is not None else _measured(config, split, out, replies)
    if as_json:
        measured = {name: report.figures(evaluation) for name, evaluation in found.items()}
        print_json({"drops": ablation.as_json(found), "measured": measured})
        return
    shown = console()
    shown.print(ablation.components(found))
    shown.print(ablation.gates(found))
    for note in ablation.notes(found):
        shown.print(note, style="yellow", markup=False, soft_wrap=True)
    tell_failures(shown, found)


def _measured(config: Config, split: str, out: Path | None, replies: Path | None) -> dict[str, Evaluation]:
    check_out(out)
    bundles = ablation.bundles()
    data = dataset(config, errors())
    check_split(data, split)
    with bench(config, data, replies, "ablate") as on:
        return measure(on, bundles, split, errors(), keeper(out, data))
