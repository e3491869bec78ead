"""The commands that read a run: ``status``, ``log``, ``show``, ``diff``, ``frontier``."""

from __future__ import annotations

import click

from harness import history
from harness.auditing import verify_run
from harness.cli.options import console, json_option, print_json, reading, run_option
from harness.cli.tables import print_attempt, print_frontier, print_log, print_status, print_test
from harness.display import visible
from harness.errors import UserError
from harness.report.detail import rule_titles
from harness.report.spend import seconds_by_stage
from harness.rounds import taken_in
from harness.state.store import RunStore


@click.command()
@click.option("--verify", is_flag=True, help="Also check the whole audit trail; exit 1 where anything was changed.")
@run_option
@json_option
@click.pass_context
def status(context: click.Context, verify: bool, run_name: str | None, as_json: bool) -> None:
    """Where a run stands: iterations, frontier, test, spend."""
    with reading(run_name) as store:
        facts = history.status(store)
        folder = store.folder
        facts["seconds"] = {stage: round(seconds, 3) for stage, seconds, _ in seconds_by_stage(store)}
    problems: tuple[str, ...] = ()
    if verify:
        report = verify_run(folder)
        problems = report.problems
        facts["audit"] = "whole" if report.ok else list(problems)
        facts["audit_lines"], facts["audited_commits"] = report.lines, report.commits
    if as_json:
        print_json(facts)
    else:
        print_status(console(), facts)
    context.exit(1 if problems else 0)


@click.command()
@run_option
@json_option
def log(run_name: str | None, as_json: bool) -> None:
    """Every attempt, one line each."""
    with reading(run_name) as store:
        rows = history.log(store)
        facts = history.status(store)
        offline = store.manifest.profile == "offline"
    if as_json:
        print_json({"offline": offline, "attempts": rows})
        return
    print_log(console(), rows, facts)
    if offline:
        console().print(history.OFFLINE, style="yellow")


@click.command()
@click.argument("k", type=int)
@run_option
@json_option
def show(k: int, run_name: str | None, as_json: bool) -> None:
    """Attempt K: hypothesis, verdict of each stage, figures, lesson."""
    with reading(run_name) as store:
        known(store, k)
        found = history.attempt(store, k)
        run, rules = store.manifest.name, rule_titles(store)
    if as_json:
        print_json(found)
    else:
        print_attempt(console(), found, run, rules)


@click.command()
@click.argument("a", type=int)
@click.argument("b", type=int)
@run_option
def diff(a: int, b: int, run_name: str | None) -> None:
    """How the code of attempt B differs from that of A (0: the start)."""
    with reading(run_name) as store:
        trees = [_tree(store, k) for k in (a, b)]
        text = store.lineage.diff(*trees)
    click.echo(visible(text, 1_000_000, keep_lines=True) or "the same files")


@click.command()
@run_option
@json_option
def frontier(run_name: str | None, as_json: bool) -> None:
    """The policies that nothing beats; the use of the test split."""
    with reading(run_name) as store:
        if as_json:
            offline = store.manifest.profile == "offline"
            test = history.status(store)["test_accuracy"]
            print_json({"offline": offline, "frontier": history.standing(store), "test_accuracy": test})
            return
        out = console()
        print_frontier(out, store)
        print_test(out, store)
        if store.manifest.profile == "offline":
            out.print(history.OFFLINE, style="yellow")


def known(store: RunStore, k: int) -> None:
    """Raise UserError where the run has no attempt ``k``."""
    iterations = {iteration for iteration, _ in store.stages()}
    if k not in iterations:
        raise UserError(
            f"run {store.manifest.name} has no attempt {k}; it has 0 to {max(iterations)}; see them with: harness log"
        )


def _tree(store: RunStore, k: int) -> str:
    known(store, k)
    taken = taken_in(store, k)
    if taken is None:
        raise UserError(f"iteration {k} has no candidate: its proposal was malformed or refused; see: harness show {k}")
    return taken.tree
