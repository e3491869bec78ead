"""One attempt in full: hypothesis, expected against measured, difference to the parent, verdicts, lesson."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from harness.agents.interface import Hypothesis, Proposal
from harness.evaluation import metrics
from harness.evaluation.outcomes import Evaluation
from harness.gate.interface import Decision
from harness.outcomes import Audited, Gated, Measured, Outcome, Proposed, Remembered, TakenIn
from harness.report.safe import CODE_CHARS, shown
from harness.report.story import RUNNING, START, Figures, Row
from harness.rounds import reached, taken_in
from harness.state.store import RunStore
from principles.h0 import H0Error, load_h0

Developed = Callable[[int], Evaluation | None]
WITHOUT_CANDIDATE = ("malformed", "intake", RUNNING, START)
"""Outcomes of attempts that have nothing to measure, or not yet."""
RAW_CHARS = 4_000
"""Of an answer in which there was no usable proposal."""
SOURCE_CHARS = 300
"""Of the line of code that a finding points at."""


def rule_titles(store: RunStore) -> Mapping[str, str]:
    """What each rule of the run's constitution is called; empty where the run's copy cannot be read."""
    try:
        return {rule.id: rule.title for rule in load_h0(store.folder / "h0").constitution.rule}
    except H0Error:
        return {}


def detail(
    store: RunStore, row: Row, parent: Row | None, titles: Mapping[str, str], developed: Developed
) -> dict[str, Any]:
    """Everything on an attempt's page but its questions, as JSON values with texts not yet made safe.

    ``developed`` gives an attempt on the development split.
    """
    k = row.iteration
    proposed = store.stage(k, "propose", Proposed)
    taken = taken_in(store, k)
    proposal = proposed.proposal if proposed else None
    malformed = proposed.malformed if proposed else None
    attempt = store.attempt(k)
    difference, note = _difference(store, row, taken)
    return {
        "hypothesis": _hypothesis(proposal.hypothesis, titles) if proposal else [],
        "author": proposal.author if proposal else malformed.author if malformed else "",
        "malformed": malformed.raw[:RAW_CHARS] if malformed else "",
        "effect": _effect(developed, row, parent, proposal.hypothesis if proposal else None),
        "figures": _figures(row),
        "types": _types(row.developed, parent.developed if parent else None),
        "stages": _stages(store, k, titles),
        "diff": difference,
        "diff_note": note,
        "lesson": attempt.lesson if attempt else "",
        "places": [["branch", taken.branch], ["tree", taken.tree], ["bundle", taken.bundle]] if taken else [],
    }


def _hypothesis(hypothesis: Hypothesis, titles: Mapping[str, str]) -> list[list[str]]:
    at_risk = hypothesis.rule_at_risk
    risk = f"{at_risk}: {titles[at_risk]}" if at_risk in titles else at_risk
    parts = [("what", hypothesis.what), ("why", hypothesis.why), ("rule at risk", risk)]
    return [[name, text] for name, text in parts if text]


# ---------------------------------------------------------------- expected against measured


def _effect(developed: Developed, row: Row, parent: Row | None, hypothesis: Hypothesis | None) -> list[list[str]]:
    """Rows of (what, expected, measured)."""
    mine, theirs = row.developed, parent.developed if parent else None
    if hypothesis is None and mine is None:
        return []
    measured = {"accuracy": "not measured", "tokens": "not measured", "latency": "not measured"}
    if mine is None and row.outcome not in WITHOUT_CANDIDATE:
        measured["accuracy"] += f"; what it would have been: harness replay {row.iteration} --stage develop"
    if mine is not None:
        measured["accuracy"] = f"{percent(mine.right.share)} %{_interval(mine)}"
        measured["tokens"] = f"{mine.tokens:,.0f} a question"
        measured["latency"] = f"{mine.seconds:.3f} s a question (median)"
        if theirs is not None:
            measured["accuracy"] += f"; {_against(developed, row)}"
            measured["tokens"] += f"; parent {theirs.tokens:,.0f}{_ratio(mine.tokens, theirs.tokens)}"
            measured["latency"] += f"; parent {theirs.seconds:.3f} s{_ratio(mine.seconds, theirs.seconds)}"
        if mine.offline:
            measured["tokens"] += "; counted offline"
            measured["latency"] += "; offline: this machine's load alone"
    expected = {
        "accuracy": hypothesis.expected_accuracy if hypothesis else "",
        "tokens": hypothesis.expected_tokens if hypothesis else "",
        "latency": hypothesis.expected_latency if hypothesis else "",
    }
    return [[name, expected[name] or "nothing said", measured[name]] for name in measured]


def _against(developed: Developed, row: Row) -> str:
    """The paired difference to the parent with its interval."""
    mine, theirs = developed(row.iteration), developed(row.iteration if row.parent is None else row.parent)
    if mine is None or theirs is None:
        return "the parent was not measured"
    try:
        pairs = metrics.pair(mine, theirs)
    except metrics.NotComparable:
        return "not comparable with the parent"
    bounds = metrics.difference_interval(pairs)
    low, high = f"{100 * bounds.low:+.1f}", f"{100 * bounds.high:+.1f}"
    return f"{100 * pairs.difference:+.1f} points against the parent (95 %: {low} to {high}, paired)"


def _ratio(mine: float, theirs: float) -> str:
    return f" ({100 * (mine / theirs - 1):+.0f} %)" if theirs > 0 else ""


def _interval(measured: Figures) -> str:
    bounds = measured.right.interval
    return f" (95 %: {percent(bounds.low)}–{percent(bounds.high)}, n = {measured.right.n})"


def percent(share: float) -> str:
    """A share in percent, one decimal."""
    return f"{100 * share:.1f}"


def _figures(row: Row) -> list[list[str]]:
    """Rows of (figure, development, validation)."""
    if row.developed is None:
        return []
    return [
        [name, told(row.developed), told(row.validated) if row.validated else "–"] for name, told in FIGURES.items()
    ]


def _hit_rate(measured: Figures) -> str:
    return "no oracle times" if measured.hit_rate is None else percent(measured.hit_rate)


def _per_question(part: str) -> Callable[[Figures], str]:
    return lambda f: f"{f.parts[part].tokens / max(f.right.n, 1):,.0f}"


FIGURES: dict[str, Callable[[Figures], str]] = {
    "right %": lambda f: percent(f.right.share),
    "95 %": lambda f: f"{percent(f.right.interval.low)}–{percent(f.right.interval.high)}",
    "questions": lambda f: str(f.right.n),
    "not answered": lambda f: str(len(f.failures)),
    "unparsed %": lambda f: percent(f.unparsed),
    "answered directly %": lambda f: percent(f.direct),
    "evidence hits %": _hit_rate,
    "seconds, median": lambda f: f"{f.seconds:.3f}",
    "latency bucket": lambda f: str(f.bucket),
    "tokens a question": lambda f: f"{f.tokens:,.0f}",
    "of them retrieval": _per_question("retrieval"),
    "of them answering": _per_question("answering"),
    "of them verification": _per_question("verification"),
    "construction, a question": _per_question("construction"),
}
"""What an attempt's page says of each split; docs/figures.md has the meanings."""


def _types(mine: Figures | None, theirs: Figures | None) -> list[list[Any]]:
    """Rows of (type, questions, share, low, high, the parent's share or None)."""
    rows = []
    for name, right in mine.types.items() if mine else ():
        before = theirs.types.get(name) if theirs else None
        bounds = right.interval
        shares = [round(value, 4) for value in (right.share, bounds.low, bounds.high)]
        rows.append([name, right.n, *shares, round(before.share, 4) if before else None])
    return rows


# ---------------------------------------------------------------- verdicts


def _stages(store: RunStore, k: int, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    proposal: Proposal | None = None
    for name, kind in reached(store, k).items():
        outcome = store.stage(k, name, kind)
        if outcome is None:
            continue
        if isinstance(outcome, Proposed) and outcome.proposal:
            proposal = outcome.proposal
        told: dict[str, Any] = {
            "stage": name,
            "mark": _mark(name, outcome),
            "summary": _summary(outcome),
            "reasons": [],
        }
        if isinstance(outcome, Measured):
            told["reasons"] = list(outcome.reasons)
        if isinstance(outcome, Gated | Audited):
            verdict = outcome.verdict
            told |= {"by": verdict.decided_by, "seconds": round(verdict.seconds, 3)}
            told["findings"] = [
                {
                    "rule": finding.rule,
                    "title": titles.get(finding.rule, ""),
                    "where": f"{finding.path}:{finding.line}" if finding.path else "",
                    "message": finding.message,
                    "code": _line_of(proposal, finding.path, finding.line),
                }
                for finding in verdict.findings
            ]
        found.append(told)
    return found


def _mark(name: str, outcome: Outcome) -> str:
    if name in ("recall", "remember"):
        return "done"
    asked = isinstance(outcome, Gated) and outcome.verdict.decision is Decision.REVISE
    return "rejected" if outcome.rejected else "done" if asked else "passed"


def _summary(outcome: Outcome) -> str:
    if isinstance(outcome, Measured) and outcome.reasons:
        return outcome.summary.split("; ")[0]
    if isinstance(outcome, Remembered):
        return f"{outcome.spent_tokens:,} search tokens and ${outcome.spent_dollars:.4f} spent by the run up to here"
    return outcome.summary.removeprefix("rejected: ").removeprefix("passed: ")


def _line_of(proposal: Proposal | None, path: str, number: int) -> str:
    """The line of code that a finding points at; empty where there is none."""
    lines = proposal.files.get(path, "").split("\n") if proposal else []
    return lines[number - 1][:SOURCE_CHARS] if 0 < number <= len(lines) else ""


# ---------------------------------------------------------------- difference


def _difference(store: RunStore, row: Row, taken: TakenIn | None) -> tuple[str, str]:
    """The difference to the parent's package, and what is to be said of it."""
    if taken is None:
        return "", "no candidate was taken in"
    if row.parent is None:
        return "", "the policy that the run started from"
    parent = taken_in(store, row.parent)
    if parent is None:
        return "", "the parent has no tree"
    text = store.lineage.diff(parent.tree, taken.tree)
    note = "the same files as the parent" if not text else f"against its parent, {row.parent:04d}"
    if len(text) > CODE_CHARS:
        note += f"; the first {CODE_CHARS:,} of {len(text):,} characters"
    return shown(text, CODE_CHARS), note
