"""Evaluations as tables for a terminal and as JSON figures. ``docs/figures.md`` says what each figure means."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from harness.display import visible
from harness.evaluation import metrics
from harness.evaluation.metrics import Interval, Share, Summary
from harness.evaluation.outcomes import Evaluation

OFFLINE_NOTE = "offline: answered by the lexical reader, no language model; tokens are counted offline"
ESTIMATED_NOTE = "~ tokens counted offline"
CELL_CHARS = 64
"""Of text from the data or a candidate; what is invisible in it is shown as an escape."""
PARTS = ("retrieval", "frames", "embedding", "model")
"""What the seconds of a question are made of."""


def figures(evaluation: Evaluation) -> dict[str, Any]:
    """All figures of one evaluation as JSON values; holds no question, no gold and no text of the candidate but
    its route names."""
    interval = metrics.accuracy_interval(evaluation)
    tokens_in, tokens_out = metrics.tokens_per_question(evaluation)
    gate = metrics.gate_open(evaluation)
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
        "by_type": {name: _share(right) for name, right in metrics.right_by_type(evaluation).items()},
        "by_route": {visible(name, CELL_CHARS): asdict(route) for name, route in metrics.by_route(evaluation).items()},
        "hit_rate": metrics.hit_rate(evaluation),
        "direct": _share(metrics.direct(evaluation)),
        "gate_open": None if gate is None else _share(gate),
        "verified": _share(metrics.verified(evaluation)),
        "unparsed_share": metrics.unparsed_share(evaluation),
        "verdicts": metrics.verdicts(evaluation),
        "tokens_per_question": evaluation.tokens_per_question,
        "tokens_in_per_question": tokens_in,
        "tokens_out_per_question": tokens_out,
        "requests_per_question": metrics.requests_per_question(evaluation),
        "frames_per_question": metrics.frames_per_question(evaluation),
        "construction_tokens_per_question": metrics.construction_per_question(evaluation),
        "cost_by_part": {name: cost.model_dump() for name, cost in metrics.cost_by_part(evaluation).items()},
        "seconds": {name: asdict(summary) for name, summary in metrics.seconds_by_part(evaluation).items()},
        "observe_seconds": evaluation.observe_seconds,
        "wall_seconds": evaluation.wall_seconds,
        "restarts": evaluation.restarts,
    }


def overview(evaluations: Mapping[str, Evaluation]) -> Table:
    """One line for each evaluation; split and number of questions stand above where all have the same."""
    splits = {(e.split, len(e.items)) for e in evaluations.values()}
    same = len(splits) == 1
    title = ", ".join(f"{visible(split, CELL_CHARS)}, {n} questions" for split, n in splits) if same else None
    table = table_of("Policy", evaluations, title)
    columns = ("accuracy %", "95 %", "hit %", "in", "out", "requests", "frames", "p50 s", "p95 s", "failed")
    for name in columns if same else ("split", "n", *columns):
        table.add_column(name, justify="left" if name == "split" else "right")
    for name, e in evaluations.items():
        seconds = metrics.seconds_by_part(e)["all"]
        cells = [
            accuracy(e),
            interval(metrics.accuracy_interval(e)),
            percent(metrics.hit_rate(e)),
            *tokens(e),
            f"{metrics.requests_per_question(e):.2f}",
            f"{metrics.frames_per_question(e):.2f}",
            f"{seconds.median:.3f}",
            f"{seconds.p95:.3f}",
            str(len(e.items) - metrics.verdicts(e).get("OK", 0)),
        ]
        add_row(table, name, cells if same else [visible(e.split, CELL_CHARS), str(len(e.items)), *cells])
    return table


def types(evaluations: Mapping[str, Evaluation]) -> Table:
    """Accuracy in percent by question type with its interval, one line for each evaluation."""
    table = table_of("Accuracy % by type", evaluations)
    found = {label: metrics.right_by_type(e) for label, e in evaluations.items()}
    names = sorted({name for shares in found.values() for name in shares})
    for name in names:
        sizes = {shares[name].n for shares in found.values() if name in shares}
        table.add_column(Text(f"{visible(name, CELL_CHARS)} ({'/'.join(map(str, sorted(sizes)))})"), justify="right")
    for label, e in evaluations.items():
        shares = found[label]
        cells = (
            f"{100 * shares[name].share:.1f} ({interval(shares[name].interval, 0)})" if name in shares else "–"
            for name in names
        )
        add_row(table, visible(label, CELL_CHARS) + (" (offline)" if e.offline else ""), cells)
    return table


def routes(evaluations: Mapping[str, Evaluation]) -> Table:
    """Figures by the route that answered."""
    table = table_of("Policy", evaluations)
    for name in ("route", "n", "share %", "accuracy %", "tokens", "mean s", "p50 s", "p95 s"):
        table.add_column(name, justify="left" if name == "route" else "right")
    for label, e in evaluations.items():
        for route, f in metrics.by_route(e).items():
            cells = [
                visible(route, CELL_CHARS),
                str(f.questions),
                percent(f.questions / len(e.items)),
                f"{100 * f.accuracy:.1f}" + (" offline" if e.offline else ""),
                f"{f.tokens:,.0f}",
                *(f"{value:.3f}" for value in (f.seconds.mean, f.seconds.median, f.seconds.p95)),
            ]
            add_row(table, label, cells)
    return table


def parts(evaluations: Mapping[str, Evaluation]) -> Table:
    """Seconds per question by part, p50 and p95."""
    table = table_of("Seconds p50 / p95", evaluations)
    for name in PARTS:
        table.add_column(name, justify="right")
    for label, e in evaluations.items():
        seconds = metrics.seconds_by_part(e)
        add_row(table, label + (" (offline)" if e.offline else ""), (_both(seconds[part]) for part in PARTS))
    return table


def construction(evaluations: Mapping[str, Evaluation]) -> Table:
    """What construction took in all, apart from the questions."""
    table = table_of("Construction", evaluations)
    for name in ("requests", "in", "out", "model s", "observe s", "tokens per question"):
        table.add_column(name, justify="right")
    for label, e in evaluations.items():
        built = e.construction
        cells = [
            f"{built.requests:,}",
            f"{built.prompt_tokens:,}",
            f"{built.completion_tokens:,}",
            f"{built.seconds:.1f}",
            f"{e.observe_seconds:.1f}",
            f"{metrics.construction_per_question(e):,.0f}",
        ]
        add_row(table, label + (" (offline)" if e.offline else ""), cells)
    return table


def headline(evaluation: Evaluation) -> str:
    """One line for logs and the audit trail."""
    offline = " (offline reader)" if evaluation.offline else ""
    return (
        f"accuracy {100 * evaluation.accuracy:.1f} % ({interval(metrics.accuracy_interval(evaluation))}, "
        f"n = {len(evaluation.items)}){offline}, {evaluation.tokens_per_question:.0f} tokens per question"
    )


# ---------------------------------------------------------------- shared with the other tables


def measured_here(evaluations: Iterable[Evaluation]) -> str:
    """What a column of measured figures is labelled with: who answered, and that it was measured, not reported."""
    readers = {"lexical reader, no language model" if e.offline else visible(e.reader, CELL_CHARS) for e in evaluations}
    return f"measured here: {' and '.join(sorted(readers))}"


def table_of(first: str, evaluations: Mapping[str, Evaluation], title: str | None = None) -> Table:
    """An empty table whose caption says what is to be said of these evaluations' figures."""
    notes = [OFFLINE_NOTE] if any(e.offline for e in evaluations.values()) else []
    if any(c.estimated for e in evaluations.values() if not e.offline for c in metrics.cost_by_part(e).values()):
        notes.append(ESTIMATED_NOTE)
    table = Table(
        box=SIMPLE,
        padding=(0, 1, 0, 0),
        title=Text(title) if title else None,
        title_justify="left",
        caption=Text("; ".join(notes)) if notes else None,
        caption_justify="left",
    )
    table.add_column(first, no_wrap=True)
    return table


def add_row(table: Table, label: str, cells: Iterable[str]) -> None:
    """A row of plain text; the label may be anything."""
    table.add_row(Text(visible(label, CELL_CHARS)), *map(Text, cells))


def accuracy(evaluation: Evaluation) -> str:
    """In percent; offline figures say so."""
    return f"{100 * evaluation.accuracy:.1f}" + (" offline" if evaluation.offline else "")


def interval(bounds: Interval, digits: int = 1) -> str:
    """Of a share, in percent."""
    return f"{100 * bounds.low:.{digits}f}–{100 * bounds.high:.{digits}f}"


def percent(share: float | None) -> str:
    """A share in percent, or a dash."""
    return "–" if share is None else f"{100 * share:.1f}"


def p_value(p: float) -> str:
    """Three places; smaller than they can show is said so."""
    return f"{p:.3f}" if p >= 0.0005 else "<0.001"


def tokens(evaluation: Evaluation) -> tuple[str, str]:
    """Tokens in and out per question; ~ where they were counted offline."""
    mark = "~" if any(cost.estimated for cost in metrics.cost_by_part(evaluation).values()) else ""
    tokens_in, tokens_out = metrics.tokens_per_question(evaluation)
    return f"{mark}{tokens_in:,.0f}", f"{mark}{tokens_out:,.1f}"


def _both(summary: Summary) -> str:
    return f"{summary.median:.3f} / {summary.p95:.3f}"


def _share(share: Share) -> dict[str, float]:
    bounds = share.interval
    return {"n": share.n, "count": share.count, "share": share.share, "low": bounds.low, "high": bounds.high}
