"""``harness evaluate``: measure policies on one split, or score saved outcomes again."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click
from rich.console import Console

from harness.cli.options import console, json_option, print_json, print_table, settings
from harness.config import Config
from harness.data.native import Dataset, load
from harness.display import visible
from harness.errors import UserError
from harness.evaluation import paper, report
from harness.evaluation.executor import WHOLE
from harness.evaluation.outcomes import Evaluation
from harness.evaluation.rescore import pool, read, rescore, save
from harness.evaluation.sampling import Sample, sampled
from harness.measuring import bench, dataset, measure, policy_bundles
from policies import library
from sandbox.interface import Bundle, Verdict

F = TypeVar("F", bound=Callable[..., Any])

BESIDE = "options_only"
"""Measured beside every policy: what is scored above it is owed to the question."""


def bench_options(command: F) -> F:
    """What every measuring command takes: seed, models, sandbox, where replies are kept."""
    for option in reversed(
        (
            click.option(
                "--seed", type=int, metavar="S", help="Names the questions; the same seed gives the same figures."
            ),
            click.option("--profile", metavar="NAME", help="Which models to use; 'offline' uses none."),
            click.option(
                "--replies",
                type=click.Path(path_type=Path),
                metavar="DIR",
                help="Where models' replies are kept, so that none is paid for twice; caps count all that is in it. "
                "Default: replies/DATA-PROFILE.",
            ),
            click.option("--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), help="Where policies run."),
            click.option(
                "--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Default: ./harness.toml."
            ),
        )
    ):
        command = option(command)
    return command


def outcome_options(command: F) -> F:
    """What every command takes that measures whole splits."""
    for option in reversed(
        (
            click.option(
                "--data",
                "folders",
                multiple=True,
                metavar="DIR",
                help="Data set folder. Default: the bundled life-log. With --rescore, one for each file.",
            ),
            click.option(
                "--split",
                default="development",
                show_default=True,
                type=click.Choice(["development", "validation", "test", WHOLE]),
                help="'all': the questions of every split, in one stream.",
            ),
            click.option(
                "--sample",
                "size",
                type=int,
                metavar="N",
                help="Only N questions, fixed by --seed, in the proportions of the question types.",
            ),
            click.option(
                "--workers", type=int, metavar="N", help="Containers at work at the same time. Default: one per core."
            ),
            click.option(
                "--out", type=click.Path(path_type=Path), metavar="FILE", help="Save every outcome, to be rescored."
            ),
            click.option(
                "--rescore",
                "saved",
                multiple=True,
                type=click.Path(path_type=Path),
                metavar="FILE",
                help="Measure nothing: score outcomes that --out has saved, with the data's gold. Several are pooled.",
            ),
        )
    ):
        command = option(command)
    return command


@click.command()
@click.option(
    "--policy",
    "policies",
    multiple=True,
    metavar="NAME",
    help="Of the library, or a folder with policy.py. Repeatable.",
)
@click.option("--all", "lineage", is_flag=True, help="Every policy of the library, beside the papers' figures.")
@outcome_options
@bench_options
@json_option
def evaluate(
    policies: tuple[str, ...],
    lineage: bool,
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
    """Measure policies on one split, with options-only beside them. Each use of a test split is yours to count."""
    if not (policies or lineage or saved):
        raise UserError("nothing to measure: name a policy with --policy NAME, or give --all or --rescore FILE")
    if saved and (policies or out or size):
        raise UserError("--rescore scores what is in its file; leave --policy, --sample and --out away")
    config = settings({**flags, "data": one_folder(folders, saved)}, file)
    if saved:
        found, data = rescored(saved, folders, config)
    else:
        names = [*policies, *(library.lineage() if lineage else ()), BESIDE]
        found, data = measured(config, policy_bundles(names), split, size, out, replies, "evaluate")
    if as_json:
        print_json(_json(found, data, lineage))
        return
    shown = console()
    if lineage:
        for table in paper.lineage_tables(found, data):
            print_table(shown, table)
    for tabled in (report.overview, report.types, report.routes, report.parts, report.construction):
        print_table(shown, tabled(found))
    tell_failures(shown, found)


Found = tuple[dict[str, Evaluation], Sequence[Dataset]]
"""Evaluations by label, and the data that they are of."""


def measured(
    config: Config,
    bundles: Mapping[str, Bundle],
    split: str,
    size: int | None,
    out: Path | None,
    replies: Path | None,
    run_id: str,
) -> Found:
    """Measure every bundle on the split, saving the outcomes after each where a file is named."""
    check_out(out)
    data = dataset(config, errors())
    if split != WHOLE and split not in data.splits:
        raise UserError(f"{data.name} has no {split} split; it has {', '.join(data.splits)}")
    sample = None if size is None else Sample(size=size, seed=config.run.seed)
    sampled(data, split, sample)  # a size that cannot be had is told before anything is started
    with bench(config, data, replies, run_id) as on:
        keep = (lambda found: save(out, data.name, found, sample)) if out is not None else (lambda found: None)
        return measure(on, bundles, split, errors(), sample, keep), [data]


def rescored(saved: Sequence[Path], folders: Sequence[str], config: Config) -> Found:
    """Saved outcomes, scored with the data's gold and pooled; a file whose own marks differ is told of."""
    sets = [load(Path(folder)) for folder in folders] or [dataset(config, errors())]
    by_digest = {data.digest: data for data in sets}
    scored = []
    for path in saved:
        outcomes = read(path)
        digest = next(iter(outcomes.evaluations.values())).data
        found, changed = rescore(outcomes, by_digest.get(digest, sets[0]))
        if changed:
            line = f"{path}: {changed} outcomes were marked otherwise than the gold says; the figures shown are right"
            errors().print(visible(line, 600), style="yellow", markup=False, soft_wrap=True)
        scored.append(found)
    return pool(scored), sets


def one_folder(folders: Sequence[str], saved: Sequence[Path]) -> str | None:
    """The data set to measure on; several are for rescoring alone."""
    if len(folders) > 1 and not saved:
        raise UserError(
            "--data: measure on one data set at a time, each with its own --out; then give all files to --rescore"
        )
    return folders[0] if folders else None


def check_out(out: Path | None) -> None:
    """Refuse a file that cannot be written before anything is measured."""
    if out is not None and (out.is_dir() or not os.access(out.parent, os.W_OK)):
        raise UserError(f"--out {out}: no file can be written there; name one in a folder that can be written")


def errors() -> Console:
    """Standard error: progress goes there, so that standard output holds the figures alone."""
    return Console(stderr=True, highlight=False)


def tell_failures(shown: Console, found: Mapping[str, Evaluation]) -> None:
    """The cause of each policy's first failure, below the figures."""
    for name, evaluation in found.items():
        failed = [item for item in evaluation.items if item.verdict is not Verdict.OK]
        if failed:
            cause = f"{name}: {len(failed)} failed, the first with {failed[0].verdict}: {failed[0].detail}"
            shown.print(visible(cause, 600), style="yellow", markup=False, soft_wrap=True)


def _json(found: Mapping[str, Evaluation], data: Sequence[Dataset], lineage: bool) -> dict[str, Any]:
    figures = {name: report.figures(evaluation) for name, evaluation in found.items()}
    return {"measured": figures, **paper.as_json(found, data)} if lineage else figures
