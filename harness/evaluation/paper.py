"""The lineage of the policies and the figures that the papers report, beside what was measured here.

``paper_figures.json`` holds published numbers as they were printed, or derived from printed ones where it says so.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from rich.table import Table
from rich.text import Text

from harness.data.native import Dataset
from harness.evaluation import metrics
from harness.evaluation.outcomes import Evaluation
from harness.evaluation.report import accuracy, add_row, interval, measured_here, p_value, percent, table_of, tokens
from policies import library

FINAL = "v49"
"""The version that the paper calls SEEM."""
BENCHMARKS = {"egolife": "EgoLifeQA", "ego-r1": "Ego-R1 Bench", "lvbench": "LVBench"}
"""The papers' name of a benchmark, by the importer that a data set's manifest names."""
LONG_VIDEOS = "VideoMME_L"
"""Video-MME, of which the papers report the long videos alone."""
DIRECT = {"EgoLifeQA": "6–11 (derived)", "Ego-R1 Bench": "6–11 (derived)", LONG_VIDEOS: "0 (derived)"}
"""Share of questions answered without a model call: 1 − requests + gated, from 0.94 and 0.96 requests a question and
a 95th percentile that leaves room for few gated ones; on long videos 1.25 requests with 225 of 900 gated leave none
(LVMH, Table 8)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A published figure, and the same figure measured here."""

    name: str
    reported: str
    source: str
    """Model, paper and table."""
    here: str


@cache
def published() -> Mapping[str, Any]:
    """The published figures, by paper."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("paper_figures.json").read_text("utf-8"))
    return found


def benchmark(data: Sequence[Dataset]) -> str:
    """The papers' name of the data; empty where they report nothing of it."""
    names = {_benchmark(one.manifest.origin) for one in data}
    return names.pop() if len(names) == 1 else ""


def _benchmark(origin: Mapping[str, Any]) -> str:
    if origin.get("importer") == "videomme":
        return LONG_VIDEOS if origin.get("length") == "long" else ""
    return BENCHMARKS.get(str(origin.get("importer", "")), "")


# ---------------------------------------------------------------- tables


def lineage_tables(found: Mapping[str, Evaluation], data: Sequence[Dataset]) -> Iterator[Table]:
    """What was measured of each version; what the papers report; and SEEM beside its published costs."""
    yield changes(found)
    yield lineage(found, data)
    if rows := _published_rows(benchmark(data)):
        yield beside(found, benchmark(data), rows)
    if FINAL in found:
        yield targets_table(found[FINAL], benchmark(data))


def changes(found: Mapping[str, Evaluation]) -> Table:
    """What each version changed, and what the paper says of it."""
    table = table_of("version", {}, "The lineage: what each version changes, and what its paper reports of it")
    for name in ("parent", "changes", "reported"):
        table.add_column(name, no_wrap=name == "parent")
    for name, version in library.lineage().items():
        if name in found:
            add_row(table, name, [version.parent or "–", version.change, version.reported or "–"])
    return table


def lineage(found: Mapping[str, Evaluation], data: Sequence[Dataset]) -> Table:
    """Figures of each version and baseline, with the change against its parent."""
    first = next(iter(found.values()))
    names = " and ".join(sorted({one.name for one in data})) + (f" ({len(data)} data sets)" if len(data) > 1 else "")
    title = f"{names}, {first.split}, {len(first.items)} questions, {measured_here(found.values())}"
    table = table_of("Policy", found, title)
    columns = (
        "accuracy %",
        "95 %",
        "vs parent",
        "p",
        "hit %",
        "in",
        "out",
        "requests",
        "gate %",
        "verified %",
        "direct %",
    )
    for name in columns:
        table.add_column(name, justify="right")
    versions = library.lineage()
    for name, e in found.items():
        parent = versions[name].parent if name in versions else ""
        pairs = metrics.pair(e, found[parent]) if parent in found else None
        gate = metrics.gate_open(e)
        cells = [
            percent(e.accuracy),
            interval(metrics.accuracy_interval(e)),
            "–" if pairs is None else f"{100 * pairs.difference:+.1f} ({parent})",
            "–" if pairs is None else p_value(metrics.mcnemar_differs(pairs)),
            percent(metrics.hit_rate(e)),
            *tokens(e),
            f"{metrics.requests_per_question(e):.2f}",
            percent(gate.share if gate else None),
            percent(metrics.verified(e).share),
            percent(metrics.direct(e).share),
        ]
        add_row(table, name, cells)
    return table


def _published_rows(name: str) -> dict[str, dict[str, float]]:
    """Accuracy in percent by system and question type on a benchmark; ``all`` over all questions."""
    merit = published()["merit"]
    if name == "EgoLifeQA":
        return {row: {**cells, "all": cells["Avg"]} for row, cells in merit["egolifeqa"].items()}
    rows = merit["lvbench_videomme_long"]
    return {row: {"all": cells[name]} for row, cells in rows.items() if cells.get(name) is not None}


def beside(found: Mapping[str, Evaluation], name: str, rows: Mapping[str, Mapping[str, float]]) -> Table:
    """The published rows of a benchmark, each with its model, then those measured here."""
    merit = published()["merit"]
    counts = merit["egolifeqa_type_counts"] if name == "EgoLifeQA" else {}
    asked = f" over {sum(counts.values())} questions" if counts else ""
    sizes = "/".join(map(str, sorted({len(e.items) for e in found.values()})))
    title = f"{name}, accuracy %: reported{asked} (MERIT, project page), measured here over {sizes}"
    table = table_of("system", found, title)
    for column in ("model", "", *counts, "all"):
        table.add_column(column, justify="right" if column in counts or column == "all" else "left")
    for row, shares in rows.items():
        system, _, model = row.removesuffix(")").partition(" (")
        if model == "uniform":
            system, model = "uniform frames", system
        mark = "*" if counts and row in merit["egolifeqa_inconsistent_rows"] else ""
        add_row(
            table, system, [model, "reported", *(f"{shares[kind]:.1f}" for kind in counts), f"{shares['all']}{mark}"]
        )
    table.add_section()
    for label, e in found.items():
        by_type = metrics.by_type(e)
        model = "lexical reader, no language model" if e.offline else e.reader
        add_row(
            table,
            label,
            [model, "measured here", *(percent(by_type.get(kind)) for kind in counts), percent(e.accuracy)],
        )
    if counts:
        note = "* as printed: not the mean of the row's cells by their counts"
        table.caption = Text(f"{table.caption or ''}\n{note}".strip())
    return table


def targets_table(final: Evaluation, name: str) -> Table:
    """SEEM's published costs beside those of the version that is it."""
    table = table_of("figure", {FINAL: final}, f"SEEM ({FINAL}) beside its published figures")
    for column in ("reported", "of"):
        table.add_column(column)
    table.add_column(Text(measured_here([final])), justify="right")
    for target in targets(final, name):
        add_row(table, target.name, [target.reported, target.source, target.here])
    return table


def targets(final: Evaluation, name: str) -> list[Target]:
    """The published costs of SEEM on the benchmark ``name``; where it has none, those on EgoLifeQA."""
    lvmh = published()["lvmh"]
    table8 = lvmh["table8"]
    on = name if name in DIRECT else "EgoLifeQA"
    p95 = f"{table8['videomme_l']['p95_s']}" if on == LONG_VIDEOS else f"about {table8['p95_s_other_benchmarks_about']}"
    served = f"{on}, Qwen3-VL-8B; LVMH, Table 8"
    seconds = metrics.seconds_by_part(final)
    model_share = seconds["model"].mean / seconds["all"].mean if seconds["all"].mean else 0.0
    token_ratio, time_ratio = (_ratio(table8[key][on]) for key in ("seem_to_direct_tokens", "seem_to_direct_time"))
    least, most = table8["model_call_share_pct"]
    gate = metrics.gate_open(final)
    opened = "–" if gate is None else f"{gate.count} of {gate.n}"
    overall = lvmh["gpt5mini_overall"]
    return [
        Target(
            "accuracy %",
            f"{overall['SEEM']}",
            "mean of three benchmarks, GPT-5 mini; LVMH, Table 1",
            f"{accuracy(final)} (this data alone)",
        ),
        Target(
            "requests per question",
            str(_number(table8["requests_per_question"][on])),
            served,
            f"{metrics.requests_per_question(final):.2f}",
        ),
        Target("direct answers %", DIRECT[on], served, percent(metrics.direct(final).share)),
        Target(
            "tokens per question",
            f"{table8['direct_tokens'][on] * token_ratio:,.0f} (derived)",
            served,
            f"{final.tokens_per_question:,.0f}",
        ),
        Target(
            "seconds per question, mean",
            f"{table8['direct_seconds'][on] * time_ratio:.2f} (derived)",
            served,
            f"{seconds['all'].mean:.3f}",
        ),
        Target(
            "seconds per question, p95",
            p95,
            served,
            f"{seconds['all'].p95:.3f}",
        ),
        Target("model call, share of seconds %", f"{least}–{most}", served, percent(model_share)),
        Target(
            "gate opened",
            f"{lvmh['gate_calls']['rule']} (rule)",
            "three benchmarks together; LVMH, Table 7",
            f"{opened}, {metrics.verified(final).count} with frames",
        ),
    ]


def as_json(found: Mapping[str, Evaluation], data: Sequence[Dataset]) -> dict[str, Any]:
    """The same as JSON values: the lineage, SEEM's targets, and the published figures themselves."""
    rows = {}
    for name, version in library.lineage().items():
        if name not in found:
            continue
        row: dict[str, Any] = {"parent": version.parent, "change": version.change, "reported": version.reported}
        if version.parent in found:
            pairs = metrics.pair(found[name], found[version.parent])
            row |= {"against_parent": pairs.difference, "p": metrics.mcnemar_differs(pairs)}
        rows[name] = row
    targeted = targets(found[FINAL], benchmark(data)) if FINAL in found else []
    return {
        "measured_label": measured_here(found.values()),
        "lineage": rows,
        "targets": [{"figure": t.name, "reported": t.reported, "of": t.source, "here": t.here} for t in targeted],
        "reported": published(),
    }


def reported_drop(component: str) -> float | None:
    """Points that the paper's ablation lost without a component (LVMH, Table 5.2); None where it has no such row."""
    drop = published()["lvmh"]["ablation_drop"].get(component)
    return None if drop is None else float(drop)


def _number(value: Any) -> float:
    return float(value["value"]) if isinstance(value, dict) else float(value)


def _ratio(value: Any) -> float:
    """``1/2.1`` or a number."""
    if isinstance(value, str):
        over, _, under = value.partition("/")
        return float(over) / float(under)
    return float(value)
