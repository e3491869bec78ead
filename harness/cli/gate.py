"""``harness gate check``: what the gate catches of known cheats, and what it rejects of honest candidates."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from harness.cli.measure import bench_options, errors
from harness.cli.options import console, json_option, print_json, settings
from harness.data.native import load
from harness.display import cell, visible
from harness.errors import UserError
from harness.evaluation.executor import Evaluator
from harness.gate import judging
from harness.gate.corpus import Corpus, Kind, load_corpus
from harness.gate.dynamic import DynamicTests
from harness.gate.judging import STAGES, Judge, Judged, rates
from harness.gate.smoke import sample
from harness.measuring import Bench, bench
from harness.models.interface import Role
from harness.opening import development_words
from harness.seeds import derive
from principles.h0 import load_h0

PLANTED = Path(__file__).resolve().parents[2] / "tests" / "leaks"
"""The corpus that comes with the source: forty cheats and twenty honest candidates."""


@click.group()
def gate() -> None:
    """What stands between a candidate and its measurement."""


@gate.command()
@click.option(
    "--corpus",
    "folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Candidates known to cheat or to be honest, with their data (docs/rules.md). Default: the planted corpus.",
)
@bench_options
@json_option
def check(folder: Path | None, replies: Path | None, file: Path | None, as_json: bool, **flags: object) -> None:
    """Run the gate over a corpus: how much is caught, how much is rejected wrongly, and by which stage."""
    if folder is None and not PLANTED.is_dir():
        raise UserError("the planted corpus comes with the source only; name a corpus with --corpus DIR")
    corpus = load_corpus(folder or PLANTED)
    data = load(corpus.data)
    if corpus.split not in data.splits:
        raise UserError(f"{corpus.data}: no {corpus.split} split; it has {', '.join(data.splits)}")
    config = settings({**flags, "data": str(corpus.data)}, file)
    with bench(config, data, replies, "gate") as on:
        judged = _judged(on, corpus, errors())
        name = on.models.describe(Role.REVIEWER) if on.models.has(Role.REVIEWER) else ""
    if as_json:
        print_json(judging.as_json(corpus, judged, name))
    else:
        _show(console(), corpus, judged, name)


def _judged(on: Bench, corpus: Corpus, progress: Console) -> list[Judged]:
    seed = on.config.run.seed
    evaluator = Evaluator(on.data, on.box, on.models, on.config.budget, seed, on.workers)
    budget, split = on.config.budget, corpus.split
    dynamic = DynamicTests(on.data, on.box, on.models, budget, seed, on.workers, evaluator.frames, split=split)
    few = sample(on.data, split, on.config.gate.smoke_questions, derive(seed, 0, "smoke sample"))
    judge = Judge(corpus, evaluator, dynamic, on.models, load_h0(), development_words(on.data, split), few)
    with Progress(console=progress, transient=True, disable=not progress.is_terminal) as bars:
        task = bars.add_task(visible(corpus.name, 60), total=len(corpus.entries))
        return judge.judge(lambda judged: bars.update(task, advance=1))


def _show(out: Console, corpus: Corpus, judged: list[Judged], model: str) -> None:
    table = Table(title=f"The gate over {corpus.name}", title_justify="left")
    for column in ("", "candidates", "rejected", *STAGES[:-1], "with the reviewer model"):
        table.add_column(column, justify="left" if not column else "right")
    for label, kind in (("cheats", Kind.CHEAT), ("honest", Kind.HONEST)):
        found = rates(judged, kind)
        total, rejected, added = found["candidates"], found["rejected"], found["rejected_with_model"]
        stages = [str(found["by_stage"].get(stage, 0)) for stage in STAGES[:-1]]
        asked = "no model" if added is None else _share(added, total)
        table.add_row(label, str(total), _share(rejected, total), *stages, asked)
    out.print(table)
    if model:
        out.print(cell(f"reviewer model: {model}"))
    for judge in judged:
        if judge.rejected_with_model != (judge.entry.kind is Kind.CHEAT):
            word = "not caught" if judge.entry.kind is Kind.CHEAT else "rejected though honest"
            line = f"{word}: {judge.entry.folder} ({judge.entry.way}) {judge.stage} {judge.reason}".rstrip()
            out.print(visible(line, 400), style="yellow", markup=False, soft_wrap=True)


def _share(part: int, total: int) -> str:
    return f"{part} ({part / total:.0%})" if total else "0"
