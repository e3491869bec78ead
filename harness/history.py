"""What a run's store tells, as plain values for tables and for JSON. Reading changes nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.evaluation.outcomes import Evaluation
from harness.evaluation.report import figures
from harness.frontier import point
from harness.gate.interface import Finding, StageVerdict
from harness.models.interface import Usage
from harness.models.replies import REPLIES, read_booked, read_calls, read_learned
from harness.outcomes import (
    Audited,
    Closed,
    Gated,
    Inherited,
    Measured,
    Outcome,
    Promoted,
    Proposed,
    Recalled,
    Remembered,
    TakenIn,
)
from harness.rounds import base, reached
from harness.state.store import RunStore

OFFLINE = "offline profile: no language model was called; these are not language-model results"
"""Stands beside the figures of a run without models."""


def frontier(store: RunStore) -> tuple[int, ...]:
    """Iterations on the frontier now."""
    found: tuple[int, ...] = (0,)
    for iteration, stage in store.stages():
        if stage == "promote":
            promoted = store.stage(iteration, stage, Promoted)
            found = promoted.frontier if promoted else found
    return found


def status(store: RunStore) -> dict[str, Any]:
    """Where the run stands."""
    attempts = store.attempts()
    outcomes: dict[str, int] = {}
    for attempt in attempts:
        outcomes[attempt.outcome] = outcomes.get(attempt.outcome, 0) + 1
    stages = store.stages()
    run = store.manifest
    inherited = store.stage(0, "inherit", Inherited)
    last = store.stage(attempts[-1].iteration, "remember", Remembered) if attempts else None
    closed = closing(store)
    return {
        "run": run.name,
        "created": run.created,
        "profile": run.profile,
        "offline": run.profile == "offline",
        "data": run.data.name,
        "data_path": run.data.path,
        "data_digest": run.data.digest,
        "seed": run.seed,
        "parent": run.parent,
        "remembers": inherited.summary if inherited else "",
        "sandbox": run.sandbox,
        "runtime_digest": run.runtime_digest,
        "iterations_closed": len(attempts),
        "iterations_asked": run.iterations,
        "last_stage": f"{stages[-1][0]:04d} {stages[-1][1]}" if stages else "",
        "outcomes": outcomes,
        "frontier": list(frontier(store)),
        "validations": sum(stage == "validate" for _, stage in stages),
        "test_uses": sum(stage == "closing" for _, stage in stages),
        "test_accuracy": {name: e.accuracy for name, e in closed.evaluations.items()} if closed else {},
        "search_tokens": last.spent_tokens if last else 0,
        "search_dollars": last.spent_dollars if last else 0.0,
        "spent": spent(store),
        "learned": [
            {"endpoint": endpoint, "model": model, "parameter": fact.parameter, "remedy": fact.remedy}
            for (endpoint, model), fact in read_learned(store.folder / REPLIES)
        ],
    }


def spent(store: RunStore) -> dict[str, dict[str, Any]]:
    """Everything booked in the run so far by role, calls lost in flight at their reservation."""
    return {
        role.value: {
            "requests": usage.requests,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "dollars": usage.dollars,
            "estimated": usage.estimated,
        }
        for role, (usage, _) in read_booked(store.folder / REPLIES).items()
    }


def log(store: RunStore) -> list[dict[str, Any]]:
    """One row an attempt."""
    start = store.stage(0, "validate", Measured)
    held_out = {a.iteration: a.validation_accuracy for a in store.attempts()}
    held_out[0] = start.evaluation.accuracy if start else None
    return [
        {
            "iteration": a.iteration,
            "parent": a.parent,
            "title": a.title,
            "outcome": a.outcome,
            "cause": a.cause,
            "rules": list(a.rules),
            "dev_accuracy": a.dev_accuracy,
            "dev_delta": a.dev_delta,
            "validation_accuracy": a.validation_accuracy,
            "validation_delta": _difference(a.validation_accuracy, held_out.get(a.parent)),
            "validation_p": a.validation_p,
            "tokens_per_question": a.tokens_per_question,
        }
        for a in store.attempts()
    ]


def _difference(mine: float | None, other: float | None) -> float | None:
    return None if mine is None or other is None else mine - other


def descent(store: RunStore, k: int) -> list[int]:
    """The iterations that an attempt was made from, its parent first, down to the starting policy."""
    found: list[int] = []
    while k:
        recalled = store.stage(k, "recall", Recalled)
        if recalled is None:
            break
        k = recalled.parent
        found.append(k)
    return found


def attempt(store: RunStore, k: int) -> dict[str, Any]:
    """Everything that is recorded of one iteration, stage by stage, evaluations as figures."""
    made_from = [{"iteration": ancestor, "title": title(store, ancestor)} for ancestor in descent(store, k)]
    found: dict[str, Any] = {"iteration": k, "title": title(store, k), "made_from": made_from, "stages": {}}
    for name, kind in reached(store, k).items():
        outcome = store.stage(k, name, kind)
        if outcome is None:
            continue
        row = outcome.model_dump(mode="json", exclude={"evaluation", "taken"})
        if isinstance(outcome, Measured):
            row["figures"] = figures(outcome.evaluation)
        found["stages"][name] = row
    remembered = store.attempt(k)
    if remembered is not None:
        found["attempt"] = remembered.model_dump(mode="json", exclude={"change"})
    return found


def reviews(store: RunStore, k: int) -> list[dict[str, Any]]:
    """What was decided on an attempt, stage by stage: verdict, findings with the lines they name, cost, who decided.

    Seconds are measured; tokens and dollars are those of the stage's calls.
    """
    files: Mapping[str, bytes] = {}
    rows = []
    for stage, kind in reached(store, k).items():
        outcome = store.stage(k, stage, kind)
        if isinstance(outcome, TakenIn) and outcome.tree:
            files = store.lineage.read(outcome.tree)
        if outcome is None or stage in ("recall", "remember") or (k == 0 and stage == "intake"):
            continue
        verdict = outcome.verdict if isinstance(outcome, Gated | Audited) else None
        asks = isinstance(outcome, Gated) and outcome.asks
        findings = verdict.findings if verdict else ()
        rows.append(
            {
                "iteration": k,
                "stage": stage,
                "verdict": "rejected" if outcome.rejected else "revise" if asks else "passed",
                "decided_by": _who(stage, verdict),
                "rules": [finding.rule for finding in findings],
                "findings": [{**finding.model_dump(), "text": _text(files, finding)} for finding in findings],
                "reason": verdict.reason if verdict else _reason(outcome),
                "cost": _cost(store, k, stage, outcome),
            }
        )
    return rows


def _who(stage: str, verdict: StageVerdict | None) -> str:
    if verdict is None:
        return "loop"
    if verdict.decided_by != "rules":
        return f"model {verdict.decided_by}"
    return "dynamic tests" if base(stage) == "dynamic" else "rules"


def _reason(outcome: Outcome) -> str:
    if isinstance(outcome, Measured) and outcome.reasons:
        return "; ".join(outcome.reasons)
    return outcome.summary


def _text(files: Mapping[str, bytes], finding: Finding) -> str:
    """The candidate's own line that a finding names; empty where it names none."""
    lines = files.get(finding.path, b"").decode("utf-8", "replace").split("\n")
    return lines[finding.line - 1].strip() if 0 < finding.line <= len(lines) else ""


def _cost(store: RunStore, k: int, stage: str, outcome: Outcome) -> dict[str, float]:
    if isinstance(outcome, Measured):
        e = outcome.evaluation
        tokens = sum(item.tokens for item in e.items) + e.construction.tokens
        dollars = sum(c.dollars for i in e.items for c in (i.retrieval, i.answering, i.verification))
        return {"seconds": e.wall_seconds, "tokens": tokens, "dollars": dollars + e.construction.dollars}
    turn = stage.removeprefix(base(stage)).lstrip("-") or "0"
    scope = {"reviewer": f"review/{turn}", "propose": "propose/", "revise": f"revise/{turn}/"}.get(base(stage))
    calls = read_calls(store.folder / REPLIES, f"{k:04d}/{scope}") if scope else ()
    spent = sum((call.usage for call in calls), Usage())
    seconds = outcome.verdict.seconds if isinstance(outcome, Gated | Audited) else sum(c.seconds for c in calls)
    return {"seconds": seconds, "tokens": spent.prompt_tokens + spent.completion_tokens, "dollars": spent.dollars}


def standing(store: RunStore) -> list[dict[str, Any]]:
    """The frontier policies with their figures, best validation accuracy first."""
    rows = []
    for k in frontier(store):
        developed, validated = store.stage(k, "develop", Measured), store.stage(k, "validate", Measured)
        if developed is None or validated is None:
            continue
        at = point(validated.evaluation)
        rows.append(
            {
                "iteration": k,
                "title": title(store, k),
                "dev_accuracy": developed.evaluation.accuracy,
                "validation_accuracy": at.accuracy,
                "tokens_per_question": at.tokens,
                "latency_bucket": at.bucket,
                "reader": validated.evaluation.reader,
            }
        )
    return sorted(rows, key=lambda row: (-row["validation_accuracy"], row["iteration"]))


def title(store: RunStore, k: int) -> str:
    """What an iteration tried."""
    proposed = store.stage(k, "propose", Proposed)
    if k == 0 or proposed is None or proposed.proposal is None:
        return f"starting policy {store.manifest.parent}" if k == 0 else "no usable proposal"
    return proposed.proposal.hypothesis.title


def closing(store: RunStore) -> Closed | None:
    """The newest closing evaluation on the test split."""
    for iteration, stage in reversed(store.stages()):
        if stage == "closing":
            return store.stage(iteration, stage, Closed)
    return None


def references(store: RunStore, split: str) -> dict[str, Evaluation]:
    """The reference policies' evaluations on a split, by name."""
    found: dict[str, Evaluation] = {}
    for iteration, stage in store.stages():
        prefix, suffix = "reference-", f"-{split}"
        if iteration == 0 and stage.startswith(prefix) and stage.endswith(suffix):
            measured = store.stage(0, stage, Measured)
            if measured is not None:
                found[stage[len(prefix) : -len(suffix)]] = measured.evaluation
    return found
