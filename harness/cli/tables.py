"""What the commands print for people: tables of figures and stories of attempts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from harness import history
from harness.cli.options import print_table
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
    if history.closing(store) is not None and not stopped:
        print_test(out, store)
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
    table = Table(title=cell(f"run {store.manifest.name}, frontier"), title_justify="left")
    table.add_column("policy")
    table.add_column("what it tried", max_width=60, overflow="fold")
    for name in ("dev %", "val %", "tokens a question", "latency bucket"):
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
        table.add_row("-", Text(f"{name} (reference)"), percent(e.accuracy), percent(other), tokens, "-")
    out.print(table)


def print_test(out: Console, store: RunStore) -> None:
    """The closing evaluation: the one use of the test split, or why there is none."""
    closed = history.closing(store)
    if closed is None:
        out.print("test split: not used; that is the last step of a finished run whose data has one", markup=False)
        return
    print_table(out, overview({f"{name} (test)": e for name, e in closed.evaluations.items()}))
    out.print(f"test split: used {closed.use} time(s) in this run; final policy is {closed.final:04d}", markup=False)


def print_status(out: Console, facts: Mapping[str, Any]) -> None:
    """Where a run stands, one fact a line."""
    for name, told in _told(facts):
        hang(out, Text(f"{name:<12} ", style="bold"), cell(told))
    if facts["offline"]:
        out.print(history.OFFLINE, style="yellow")


def _told(facts: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    yield "run", f"{facts['run']}, made {facts['created']}"
    yield "profile", facts["profile"]
    yield "data", f"{facts['data']} in {facts['data_path']}, digest {facts['data_digest'][:16]}"
    yield "started from", f"{facts['parent']}, seed {facts['seed']}"
    if facts["remembers"]:
        yield "remembers", facts["remembers"]
    yield "sandbox", f"{facts['sandbox']}, runtime {facts['runtime_digest'][:16]}"
    asked = f" of {facts['iterations_asked']}" if facts["iterations_asked"] else ""
    yield "iterations", f"{facts['iterations_closed']}{asked}"
    words = {"promoted": "promoted", "malformed": "malformed"}
    ended = [f"{n} {words.get(name, f'rejected at {name}')}" for name, n in facts["outcomes"].items()]
    yield "attempts", ", ".join(ended) or "none closed yet"
    if facts["iterations_closed"] < (facts["iterations_asked"] or 0):
        yield "newest stage", f"{facts['last_stage']}; where the run was stopped, the same command goes on from there"
    yield "frontier", ", ".join(f"{k:04d}" for k in facts["frontier"])
    yield "held out", f"validation split used {facts['validations']} time(s), test split {facts['test_uses']}"
    if facts["test_accuracy"]:
        yield "test", _test(facts)
    for role, booked in facts["spent"].items():
        tokens = f"{booked['prompt_tokens']:,} tokens in, {booked['completion_tokens']:,} out"
        mark = "~" if booked["estimated"] else ""
        yield role, f"{booked['requests']:,} requests, {mark}{tokens}, {booked['dollars']:.4f} US dollars"
    total = f"{facts['search_tokens']:,} tokens, {facts['search_dollars']:.4f} US dollars"
    yield "search spent", total if facts["spent"] else "no model was asked: 0 tokens, 0 US dollars bought"
    seconds = sorted(facts["seconds"].items(), key=lambda item: -item[1])
    where = ", ".join(f"{name} {value:.0f}" for name, value in seconds if value >= 0.5)
    yield "seconds", f"{sum(facts['seconds'].values()):.0f}, pauses included: {where or 'none'}"
    for fact in facts["learned"]:
        yield "learned", f"{fact['model']} at {fact['endpoint']} refuses {fact['parameter']}: {fact['remedy']}"
    if "audit" in facts:
        problems = facts["audit"]
        whole = f"whole: {facts['audit_lines']} lines, {facts['audited_commits']} commits"
        yield "audit", whole if problems == "whole" else "; ".join(problems)


def _test(facts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {percent(share)} %" for name, share in facts["test_accuracy"].items())


def print_log(out: Console, rows: list[dict[str, Any]], facts: Mapping[str, Any]) -> None:
    """One line an attempt, then which gained most."""
    wide = out.width >= WIDE
    table = Table(title=cell(f"run {facts['run']}"), title_justify="left")
    names = ["k", "from", "what it tried", "ended at", "dev %", "gain", "val %", "gain"]
    for name in [*names, "tokens", "why"] if wide else names:
        right = name not in ("what it tried", "ended at", "why")
        table.add_column(name, justify="right" if right else "left", no_wrap=right or name == "ended at")
    for row in rows:
        cells: list[str | Text] = [
            str(row["iteration"]),
            str(row["parent"]),
            cell(row["title"]),
            Text(row["outcome"], style="green" if row["outcome"] == "promoted" else ""),
            percent(row["dev_accuracy"]),
            points(row["dev_delta"]),
            percent(row["validation_accuracy"]),
            points(row["validation_delta"]),
        ]
        why = " ".join([*row["rules"], row["cause"].split("; ")[0]])  # of a bar's reasons the first is the gain
        if wide:
            tokens = row["tokens_per_question"]
            cells += ["-" if tokens is None else f"{tokens:,.0f}", cell(visible(why, LINE))]
        table.add_row(*cells)
    out.print(table)
    more = "Tokens: a question, in development." if wide else f"Why: harness show K, or {WIDE} columns."
    out.print(f"gain: points against the policy it was made from (0: the starting policy). {more}", markup=False)
    for split, name in (("development", "dev_delta"), ("validation", "validation_delta")):
        best = max((row for row in rows if row[name] is not None), key=lambda row: row[name], default=None)
        if best is not None:
            line = f"most gained in {split}: {best['iteration']:04d} {best['title']}, {points(best[name])} points"
            out.print(cell(line), soft_wrap=True)
    if facts["test_accuracy"]:
        out.print(f"test, only of the first and the final policy: {_test(facts)}", markup=False)


def print_attempt(out: Console, found: dict[str, Any], run: str, rules: Mapping[str, str]) -> None:
    """The story of one attempt, stage by stage. ``rules``: titles of the rules by id."""
    k, parents = found["iteration"], found["made_from"]
    out.print(cell(f"run {run}, attempt {k:04d}: {found['title']}", "bold"))
    if parents:
        line = " < ".join(f"{parent['iteration']:04d} {parent['title']}" for parent in parents)
        hang(out, Text(f"{'made from':<11} ", style="bold"), cell(line))
    for name, row in found["stages"].items():
        mark = Text("rejected", style="red") if row["rejected"] else Text("passed", style="green")
        if name in ("recall", "remember"):
            mark = Text("done")
        if (row.get("verdict") or {}).get("decision") == Decision.REVISE:
            mark = Text("not yet", style="yellow")
        summary = row["summary"].split("; ")[0] if row.get("reasons") else row["summary"]
        summary = re.sub("^(rejected|passed)(: |$)", "", summary)
        hang(out, Text(f"{name:<11} ", style="bold"), mark + Text("  ") + cell(summary))
        for line in _below(name, row, rules):
            hang(out, Text(" " * 12), cell(line))
    attempt = found.get("attempt", {})
    if attempt.get("lesson"):
        lesson = f"{attempt['lesson']} (by {attempt['lesson_by']})"
        hang(out, Text(f"{'lesson':<11} ", style="bold"), cell(lesson))
    if attempt.get("lesson_failure"):
        hang(out, Text(" " * 12), cell(f"the analyst gave none: {attempt['lesson_failure']}"))
    if parents:
        out.print(_look_next(found), style="dim", markup=False, soft_wrap=True)


def _below(name: str, row: Mapping[str, Any], rules: Mapping[str, str]) -> Iterator[str]:
    """What stands under a stage's line: the hypothesis, findings, or how it met the bar."""
    if name == "propose" and row["proposal"]:
        for field, text in row["proposal"]["hypothesis"].items():
            if text and field != "title":
                known = f" ({rules[text]})" if field == "rule_at_risk" and text in rules else ""
                yield f"{field.replace('_', ' ')}: {text}{known}"
    verdict = row.get("verdict")
    for finding in verdict.get("findings", []) if isinstance(verdict, dict) else []:
        where = f"{finding['path']}:{finding['line']}" if finding["path"] else ""
        yield f"{finding['rule']} {where} {finding['message']}"
    if len(row.get("reasons", ())) > 1:
        yield "the bar is a gain over its parent (the incumbent), or no loss and cheaper; one of the two:"
    yield from row.get("reasons", ())


def _look_next(found: Mapping[str, Any]) -> str:
    """The commands that answer what is asked next of an attempt."""
    k, stages = found["iteration"], found["stages"]
    words = [f"its code: harness diff {found['made_from'][0]['iteration']} {k}"] if "intake" in stages else []
    words += [f"again: harness replay {k}"] if "remember" in stages else []
    if "intake" in stages and "remember" in stages and "develop" not in stages:
        words.append(f"what it would have scored: harness replay {k} --stage develop")
    return "; ".join(words)


def hang(out: Console, head: Text, body: Text) -> None:
    """A line whose continuations stand under its body, whatever the width."""
    grid = Table.grid()
    grid.add_column(no_wrap=True)
    grid.add_column()
    grid.add_row(head, body)
    out.print(grid)
