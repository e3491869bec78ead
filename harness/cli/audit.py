"""``harness audit``: what was decided on each attempt and by whom, and whether the record is whole."""

from __future__ import annotations

from typing import Any

import click
from rich.console import Console
from rich.text import Text

from harness import history
from harness.auditing import verify_run
from harness.cli.options import console, json_option, print_json, reading, run_folder, run_option
from harness.cli.read import known
from harness.cli.tables import hang
from harness.display import cell, visible
from harness.outcomes import STAGES
from harness.rounds import base
from harness.state.verify import ChainReport

DECIDING = tuple(stage for stage in STAGES if stage not in ("recall", "remember"))
REASON = 600


@click.command()
@click.argument("k", type=int, required=False)
@run_option
@click.option("--rule", metavar="ID", help="Only verdicts with a finding against this rule, for example S03.")
@click.option("--verdict", type=click.Choice(["passed", "revise", "rejected"]), help="Only these.")
@click.option("--stage", type=click.Choice(DECIDING), help="Only this stage, in every round.")
@click.option("--verify", is_flag=True, help="Check the whole record instead; exit 1 where anything was changed.")
@json_option
@click.pass_context
def audit(
    context: click.Context,
    k: int | None,
    run_name: str | None,
    rule: str | None,
    verdict: str | None,
    stage: str | None,
    verify: bool,
    as_json: bool,
) -> None:
    """The reviews of attempt K, or of all.

    Of each: verdict, findings with their lines, cost, and who decided.
    """
    if verify:
        report = verify_run(run_folder(run_name))
        _print_report(report, as_json)
        context.exit(0 if report.ok else 1)
    with reading(run_name) as store:
        if k is not None:
            known(store, k)
        numbers = sorted({iteration for iteration, _ in store.stages()}) if k is None else [k]
        rows = [row for number in numbers for row in history.reviews(store, number)]
        titles = {number: history.title(store, number) for number in numbers}
    wanted = [
        row
        for row in rows
        if (rule is None or rule.upper() in row["rules"])
        and (verdict is None or row["verdict"] == verdict)
        and (stage is None or base(row["stage"]) == stage)
    ]
    if as_json:
        print_json({"reviews": wanted})
        return
    out = console()
    for number in numbers:
        mine = [row for row in wanted if row["iteration"] == number]
        if mine:
            out.print(Text(f"{number:04d}  ", style="bold") + cell(titles[number], "bold"))
            for row in mine:
                _print_review(out, row)
    if not wanted:
        out.print("no review is like that")


def _print_review(out: Console, row: dict[str, Any]) -> None:
    mark = Text(f"{row['verdict']:<8}", style={"rejected": "red", "revise": "yellow"}.get(row["verdict"], "green"))
    head = Text(f"  {row['stage']:<11}") + mark + Text(f"  by {visible(row['decided_by'], 80)}, {_cost(row['cost'])}")
    out.print(head, soft_wrap=True)
    for finding in row["findings"]:
        where = f"{finding['path']}:{finding['line']}" if finding["line"] else finding["path"]
        hang(out, Text(f"      {visible(finding['rule'], 8)} "), cell(f"{where} {finding['message']}".strip()))
        if finding["text"]:
            out.print(Text("          > ") + cell(visible(finding["text"], 160)))
    if row["reason"] and not row["findings"]:
        hang(out, Text(" " * 6), cell(visible(row["reason"], REASON)))


def _cost(cost: dict[str, float]) -> str:
    words = [f"{cost['seconds']:.1f} s"] if cost["seconds"] else []
    words += [f"{cost['tokens']:,.0f} tokens"] if cost["tokens"] else []
    words += [f"{cost['dollars']:.4f} dollars"] if cost["dollars"] else []
    return ", ".join(words) or "no cost"


def _print_report(report: ChainReport, as_json: bool) -> None:
    if as_json:
        facts = {"whole": report.ok, "problems": report.problems, "head": report.head}
        print_json({**facts, "audit_lines": report.lines, "commits": report.commits})
        return
    out = console()
    for problem in report.problems:
        out.print(visible(problem, 600), style="red", markup=False, soft_wrap=True)
    if report.ok:
        whole = f"whole: {report.lines} audit lines, {report.commits} commits, head {report.head[:12]}"
        out.print(f"{whole}; what ran is what was reviewed, and what was spent is what the replies cost")
