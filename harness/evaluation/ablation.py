"""The component ablation of SEEM: what is switched off, against what, and what that costs.

A variant is the released version with another ``settings.json`` in its bundle, so what is measured is the code that is
released. The regressions of the lineage (V15, V44) are compared with their parents in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from harness.evaluation import metrics, paper
from harness.evaluation.metrics import Interval, Pairs
from harness.evaluation.outcomes import Evaluation
from harness.evaluation.report import add_row, measured_here, p_value, percent, table_of, tokens
from policies import library
from sandbox.bundle import make_bundle
from sandbox.interface import Bundle

JUDGE = "gate: LLM judge"
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "without structured memory": {"structured_memory": False},
    "without co-occurrence bonus": {"co_occurrence_bonus": False},
    "without gated visual verification": {"gate": "never"},
    "without specialists": {"specialists": False},
    JUDGE: {"gate": "llm-judge"},
    "gate: always": {"gate": "always"},
}
"""Variants of the final version by label. Its own gate is the rule; a gate that never opens is the third row."""
REPORTED = {
    "without structured memory": "structured_memory",
    "without co-occurrence bonus": "cooccurrence_bonus",
    "without gated visual verification": "gated_visual",
    "without specialists": "specialists",
}
"""The paper's name of each drop (LVMH, Table 5.2)."""
REGRESSIONS = ("v15", "v44")
"""Versions that the paper calls regressions (LVMH, Figure 6)."""


@dataclass(frozen=True, slots=True)
class Drop:
    """One variant against its reference, on the same questions."""

    variant: str
    reference: str
    pairs: Pairs
    """The reference is the candidate of the pairs: a positive difference is what the variant loses."""
    reported: float | None
    """Points, as the paper has it."""

    @property
    def points(self) -> float:
        """What the variant loses, in points of accuracy."""
        return 100 * self.pairs.difference

    @property
    def interval(self) -> Interval:
        """Newcombe's interval of the loss, as a share."""
        return metrics.difference_interval(self.pairs)

    @property
    def p(self) -> float:
        """Exact two-sided McNemar test; not corrected for the number of rows."""
        return metrics.mcnemar_differs(self.pairs)


def bundles() -> dict[str, Bundle]:
    """Everything that is measured, by label: the final version, its variants, the regressions and their parents."""
    found = {paper.FINAL: make_bundle(library.load(paper.FINAL))}
    found |= {label: make_bundle(library.load(paper.FINAL, settings=settings)) for label, settings in SETTINGS.items()}
    for name in REGRESSIONS:
        for wanted in (library.lineage()[name].parent, name):
            found.setdefault(wanted, make_bundle(library.load(wanted)))
    return found


def drops(found: Mapping[str, Evaluation]) -> Iterator[Drop]:
    """A row for each variant whose reference was measured too. Raises NotComparable."""
    references = dict.fromkeys(SETTINGS, paper.FINAL) | {name: library.lineage()[name].parent for name in REGRESSIONS}
    for label, reference in references.items():
        if label in found and reference in found:
            pairs = metrics.pair(found[reference], found[label])
            yield Drop(label, reference, pairs, paper.reported_drop(REPORTED.get(label, "")))


def notes(found: Mapping[str, Evaluation]) -> list[str]:
    """What has to be said of these figures, one line each."""
    said = []
    judged = found.get(JUDGE)
    if judged is not None and judged.offline:
        said.append("the LLM judge needs a model: without one its row is the rule's")
    gated = [e for label, e in found.items() if label == paper.FINAL or "gate" in SETTINGS.get(label, {})]
    if gated and not any(metrics.verified(e).count for e in gated):
        said.append("no frame was served, so that no gate could change an answer")
    return said


def components(found: Mapping[str, Evaluation]) -> Table:
    """Accuracy and cost of each variant, and its loss against its reference beside the paper's."""
    table = table_of("Variant", found, f"Ablation, {measured_here(found.values())}")
    table.add_column("against")
    for name in ("accuracy %", "lost", "95 %", "won/lost", "p", "hit %", "in", "requests", "direct %", "verified"):
        table.add_column(name, justify="right")
    table.add_column("lost, reported", justify="right")
    rows = {drop.variant: drop for drop in drops(found)}
    for label, e in found.items():
        add_row(table, label, [*_compared(rows.get(label), e), *_costs(e), _reported(rows.get(label))])
    return table


def gates(found: Mapping[str, Evaluation]) -> Table:
    """The four gates: how often they opened, what they called, what came of it."""
    calls = paper.published()["lvmh"]["gate_calls"]
    table = table_of("Gate", found, f"Gates of {paper.FINAL}, {measured_here(found.values())}")
    for name in ("accuracy %", "opened", "verification calls", "all requests", "frames"):
        table.add_column(name, justify="right")
    table.add_column(Text("calls, reported (three benchmarks)"), justify="right")
    named = {
        "rule": (paper.FINAL, str(calls["rule"])),
        "LLM judge": (JUDGE, str(calls["llm_judge"])),
        "always": ("gate: always", "–"),
        "never": ("without gated visual verification", "–"),
    }
    for gate, (label, reported) in named.items():
        if label not in found:
            continue
        e = found[label]
        opened = metrics.gate_open(e)
        cells = [
            percent(e.accuracy),
            "–" if opened is None else str(opened.count),
            f"{metrics.verified(e).count}",
            f"{sum(item.requests for item in e.items):,}",
            f"{sum(item.frames for item in e.items):,}",
            reported,
        ]
        add_row(table, gate, cells)
    return table


def as_json(found: Mapping[str, Evaluation]) -> list[dict[str, Any]]:
    """The rows as JSON values, losses in points."""
    return [
        {
            "variant": drop.variant,
            "against": drop.reference,
            "lost_points": drop.points,
            "low": 100 * drop.interval.low,
            "high": 100 * drop.interval.high,
            "reference_only": drop.pairs.candidate_only,
            "variant_only": drop.pairs.other_only,
            "p": drop.p,
            "reported_points": drop.reported,
            "measured": measured_here([found[drop.variant]]),
        }
        for drop in drops(found)
    ]


def _compared(drop: Drop | None, evaluation: Evaluation) -> tuple[str, ...]:
    if drop is None:
        return "–", percent(evaluation.accuracy), "–", "–", "–", "–"
    bounds = drop.interval
    return (
        drop.reference,
        percent(evaluation.accuracy),
        f"{drop.points:+.1f}",
        f"{100 * bounds.low:+.1f} to {100 * bounds.high:+.1f}",
        f"{drop.pairs.other_only}/{drop.pairs.candidate_only}",
        p_value(drop.p),
    )


def _costs(evaluation: Evaluation) -> tuple[str, ...]:
    return (
        percent(metrics.hit_rate(evaluation)),
        tokens(evaluation)[0],
        f"{metrics.requests_per_question(evaluation):.2f}",
        percent(metrics.direct(evaluation).share),
        str(metrics.verified(evaluation).count),
    )


def _reported(drop: Drop | None) -> str:
    if drop is None:
        return ""
    if drop.reported is not None:
        return f"{drop.reported:+.1f}"
    return "regression" if drop.variant in REGRESSIONS else "–"
