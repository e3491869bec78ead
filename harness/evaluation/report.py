"""Evaluations as tables for a terminal and as JSON figures. ``docs/figures.md`` says what each figure means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rich.table import Table
from rich.text import Text

from harness.display import visible
from harness.evaluation import metrics
from harness.evaluation.outcomes import Evaluation

OFFLINE_NOTE = "offline: answered by the lexical reader, no language model; tokens are counted offline"
ESTIMATED_NOTE = "~ tokens counted offline"
CELL_CHARS = 64
"""Of text from the data or a candidate; what is invisible in it is shown as an escape."""


def figures(evaluation: Evaluation) -> dict[str, Any]:
    """All figures of one evaluation as JSON values; holds no question, no gold and no text of the candidate but
    its route names."""
    interval = metrics.accuracy_interval(evaluation)
    return {
        "policy": evaluation.policy,
        "split": evaluation.split,
        "data": evaluation.data,
        "runtime": evaluation.runtime_digest,
        "sandbox": evaluation.sandbox,
        "reader": evaluation.reader,
        "offline": evaluation.offline,
        "questions": len(evaluation.items),
        "accuracy": evaluation.accuracy,
        "accuracy_low": interval.low,
        "accuracy_high": interval.high,
        "by_type": metrics.by_type(evaluation),
        "by_route": {visible(name, CELL_CHARS): asdict(route) for name, route in metrics.by_route(evaluation).items()},
        "hit_rate": metrics.hit_rate(evaluation),
        "unparsed_share": metrics.unparsed_share(evaluation),
        "verdicts": metrics.verdicts(evaluation),
        "tokens_per_question": evaluation.tokens_per_question,
        "requests_per_question": metrics.requests_per_question(evaluation),
        "frames_per_question": metrics.frames_per_question(evaluation),
        "construction_tokens_per_question": metrics.construction_per_question(evaluation),
        "cost_by_part": {name: cost.model_dump() for name, cost in metrics.cost_by_part(evaluation).items()},
        "seconds": {name: asdict(summary) for name, summary in metrics.seconds_by_part(evaluation).items()},
        "wall_seconds": evaluation.wall_seconds,
        "restarts": evaluation.restarts,
    }


def overview(evaluations: Mapping[str, Evaluation]) -> Table:
    """One line for each evaluation."""
    table = _table("Policy", evaluations)
    for name in (
        "split",
        "n",
        "accuracy %",
        "95 %",
        "hit %",
        "tokens",
        "built",
        "requests",
        "p50 s",
        "p95 s",
        "failed",
    ):
        table.add_column(name, justify="left" if name == "split" else "right", no_wrap=True)
    for name, e in evaluations.items():
        interval, seconds = metrics.accuracy_interval(e), metrics.seconds_by_part(e)["all"]
        rate = metrics.hit_rate(e)
        mark = "~" if any(cost.estimated for cost in metrics.cost_by_part(e).values()) else ""
        cells = [
            visible(e.split, CELL_CHARS),
            str(len(e.items)),
            f"{100 * e.accuracy:.1f}" + (" offline" if e.offline else ""),
            f"{100 * interval.low:.1f}–{100 * interval.high:.1f}",
            "–" if rate is None else f"{100 * rate:.1f}",
            f"{mark}{e.tokens_per_question:,.0f}",
            f"{metrics.construction_per_question(e):,.0f}",
            f"{metrics.requests_per_question(e):.2f}",
            f"{seconds.median:.3f}",
            f"{seconds.p95:.3f}",
            str(len(e.items) - metrics.verdicts(e).get("OK", 0)),
        ]
        table.add_row(Text(visible(name, CELL_CHARS)), *map(Text, cells))
    return table


def types(evaluations: Mapping[str, Evaluation]) -> Table:
    """Accuracy in percent by question type, one line for each evaluation."""
    table = _table("Accuracy % by type", evaluations)
    names = sorted({item.type for e in evaluations.values() for item in e.items})
    for name in names:
        table.add_column(Text(visible(name, CELL_CHARS)), justify="right")
    for label, e in evaluations.items():
        shares = metrics.by_type(e)
        table.add_row(
            Text(visible(label, CELL_CHARS) + (" (offline)" if e.offline else "")),
            *(Text(f"{100 * shares[name]:.1f}" if name in shares else "–") for name in names),
        )
    return table


def routes(evaluations: Mapping[str, Evaluation]) -> Table:
    """Figures by the route that answered."""
    table = _table("Policy", evaluations)
    for name in ("route", "n", "accuracy %", "tokens", "mean s", "p50 s", "p95 s"):
        table.add_column(name, justify="left" if name == "route" else "right")
    for label, e in evaluations.items():
        for route, f in metrics.by_route(e).items():
            numbers = (
                str(f.questions),
                f"{100 * f.accuracy:.1f}" + (" offline" if e.offline else ""),
                f"{f.tokens:,.0f}",
                f"{f.seconds.mean:.3f}",
                f"{f.seconds.median:.3f}",
                f"{f.seconds.p95:.3f}",
            )
            table.add_row(Text(visible(label, CELL_CHARS)), Text(visible(route, CELL_CHARS)), *map(Text, numbers))
    return table


def headline(evaluation: Evaluation) -> str:
    """One line for logs and the audit trail."""
    interval = metrics.accuracy_interval(evaluation)
    offline = " (offline reader)" if evaluation.offline else ""
    return (
        f"accuracy {100 * evaluation.accuracy:.1f} % ({100 * interval.low:.1f}–{100 * interval.high:.1f}, "
        f"n = {len(evaluation.items)}){offline}, {evaluation.tokens_per_question:.0f} tokens per question"
    )


def _table(first: str, evaluations: Mapping[str, Evaluation]) -> Table:
    notes = [OFFLINE_NOTE] if any(e.offline for e in evaluations.values()) else []
    if any(c.estimated for e in evaluations.values() if not e.offline for c in metrics.cost_by_part(e).values()):
        notes.append(ESTIMATED_NOTE)
    table = Table(caption=Text("; ".join(notes)) if notes else None, caption_justify="left")
    table.add_column(first, no_wrap=True)
    return table
