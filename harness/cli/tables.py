"""What the commands print for people: tables of figures and stories of attempts."""

from __future__ import annotations

import re
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness import history
from harness.display import cell, visible
from harness.evaluation.report import overview
from harness.gate.interface import Decision
from harness.outcomes import Measured
from harness.state.store import RunStore

LINE = 110
"""Characters of a cause in a table; ``show`` has all of it."""
WIDE = 110
"""Columns from which on the log has room for causes."""


def percent(share: float | None) -> str:
    """A share as a percentage, or a dash."""
    return "-" if share is None else f"{100 * share:.1f}"


def points(difference: float | None) -> str:
    """A difference of shares in signed points, or a dash."""
    return "-" if difference is None else f"{100 * difference:+.1f}"


def closing_report(out: Console, store: RunStore, stopped: str) -> None:
    """What ``run`` ends with: what was found, and what to look at next."""
    facts = history.status(store)
    rejected = ", ".join(f"{n} at {name}" for name, n in sorted(facts["outcomes"].items()) if name != "promoted")
    out.print()
    out.print(
        f"{facts['iterations_closed']} iterations, {facts['outcomes'].get('promoted', 0)} promoted; rejected: "
        f"{rejected or 'none'}; validation split used {facts['validations']} times",
        markup=False,
    )
    if store.stage(0, "validate", Measured) is not None:
        print_frontier(out, store)
    closed = history.closing(store)
    if closed is not None and not stopped:
        out.print(overview({f"{name} (test)": e for name, e in closed.evaluations.items()}))
        out.print(
            f"test split: used {closed.use} time(s) in this run; final policy is {closed.final:04d}", markup=False
        )
    elif not stopped:
        out.print("the data has no test split; nothing was measured on one", markup=False)
    if facts["offline"]:
        out.print(history.OFFLINE, style="yellow")
    out.print("look next: harness log, harness show K, harness diff 0 K, harness frontier;", markup=False)
    out.print(
        f"git history: git --git-dir {store.folder / 'lineage.git'} log --graph --all", markup=False, soft_wrap=True
    )
    if stopped:
        out.print(visible(stopped, 500), style="yellow", markup=False)


def print_frontier(out: Console, store: RunStore) -> None:
    """The frontier, with the reference policies beside it."""
    table = Table(title="frontier", title_justify="left")
    table.add_column("policy")
    table.add_column("what it tried", max_width=60)
    for name in ("dev %", "validation %", "tokens/question", "latency bucket"):
        table.add_column(name, justify="right")
    for row in history.standing(store):
        table.add_row(
            f"{row['iteration']:04d}",
            cell(row["title"]),
            percent(row["dev_accuracy"]),
            percent(row["validation_accuracy"]),
            f"{row['tokens_per_question']:.0f}",
            str(row["latency_bucket"]),
        )
    table.add_section()
    validation = history.references(store, "validation")
    for name, e in history.references(store, "development").items():
        other = validation[name].accuracy if name in validation else None
        tokens = f"{e.tokens_per_question:.0f}"
        table.add_row("-", Text(f"reference: {name}"), percent(e.accuracy), percent(other), tokens, "-")
    out.print(table)


def print_log(out: Console, rows: list[dict[str, Any]]) -> None:
    """One line an attempt."""
    table = Table()
    wide = out.width >= WIDE
    names = ["k", "parent", "what it tried", "ended at", "dev %", "against parent", "validation %"]
    for name in [*names, "why"] if wide else names:
        right = "%" in name or name in ("k", "parent")
        table.add_column(name, justify="right" if right else "left", no_wrap=name == "ended at")
    for row in rows:
        cells: list[str | Text] = [
            str(row["iteration"]),
            str(row["parent"]),
            cell(row["title"]),
            Text(row["outcome"], style="green" if row["outcome"] == "promoted" else ""),
            percent(row["dev_accuracy"]),
            points(row["dev_delta"]),
            percent(row["validation_accuracy"]),
        ]
        table.add_row(*cells, *([cell(visible(row["cause"], LINE))] if wide else []))
    out.print(table)
    if not wide:
        out.print(f"why: harness show K, or a terminal of {WIDE} columns")


def print_attempt(out: Console, found: dict[str, Any]) -> None:
    """The story of one attempt, stage by stage."""
    for name, row in found["stages"].items():
        mark = Text("rejected", style="red") if row["rejected"] else Text("passed", style="green")
        if name in ("recall", "remember"):
            mark = Text("done")
        if (row.get("verdict") or {}).get("decision") == Decision.REVISE:
            mark = Text("not yet", style="yellow")
        summary = row["summary"].split("; ")[0] if row.get("reasons") else row["summary"]
        summary = re.sub("^(rejected|passed)(: |$)", "", summary)
        out.print(Text(f"{name:<11} ", style="bold") + mark + Text("  ") + cell(summary))
        if name == "propose" and row["proposal"]:
            for field, text in row["proposal"]["hypothesis"].items():
                if text and field != "title":
                    out.print(Text(f"            {field}: ") + cell(text))
        for finding in row.get("verdict", {}).get("findings", []) if isinstance(row.get("verdict"), dict) else []:
            where = f"{finding['path']}:{finding['line']}" if finding["path"] else ""
            out.print(Text(f"            {finding['rule']} {where} ") + cell(finding["message"]))
        for reason in row.get("reasons", []):
            out.print(Text("            ") + cell(reason))
    attempt = found.get("attempt", {})
    if attempt.get("lesson"):
        out.print(Text("lesson     ", style="bold") + cell(f"{attempt['lesson']} (by {attempt['lesson_by']})"))
    if attempt.get("lesson_failure"):
        out.print(Text("            the analyst gave none: ") + cell(attempt["lesson_failure"]))
