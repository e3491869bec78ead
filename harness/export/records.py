"""Every attempt of a run as one JSON value with stable field names (docs/export.md), for programs.

Figures are of whole splits and question types. No single answer, right or wrong, and no gold answer is in it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from harness import history
from harness.errors import UserError
from harness.evaluation.report import figures
from harness.export.values import dumped
from harness.outcomes import Measured
from harness.rounds import intakes, taken_in
from harness.state.folder import write_result
from harness.state.store import RunStore

FORMAT = "lvmh-attempt/1"
SPLITS = {"development": "develop", "validation": "validate"}


def export_records(store: RunStore, out: Path) -> int:
    """Write one line for each attempt into the file ``out``, which must not be there yet; returns how many.

    Raises UserError.
    """
    if out.exists() or out.is_symlink():
        raise UserError(f"{out} is there already; name a new file with --out")
    numbers = sorted({iteration for iteration, _ in store.stages()})
    standing = history.frontier(store)
    write_result(out, "".join(f"{dumped(record(store, k, k in standing))}\n" for k in numbers))
    return len(numbers)


def record(store: RunStore, k: int, on_frontier: bool) -> dict[str, Any]:
    """One attempt; what it never came to is null or empty."""
    attempt, taken = store.attempt(k), taken_in(store, k)
    measured = {split: store.stage(k, stage, Measured) for split, stage in SPLITS.items()}
    return {
        "format": FORMAT,
        "run": store.manifest.name,
        "number": k,
        "parent": attempt.parent if attempt else None,
        "title": history.title(store, k),
        "hypothesis": attempt.hypothesis if attempt else "",
        "why": attempt.why if attempt else "",
        "expected": dict(attempt.expected) if attempt else {},
        "outcome": attempt.outcome if attempt else "unfinished" if k else "start",
        "cause": attempt.cause if attempt else "",
        "rules": list(attempt.rules) if attempt else [],
        "on_frontier": on_frontier,
        "tree": taken.tree if taken else None,
        "commit": taken.commit if taken else None,
        "outcome_commit": store.refs().get(f"refs/heads/{taken.branch}") if taken and k else None,
        "branch": taken.branch if taken else None,
        "revisions": max(0, len(intakes(store, k)) - 1),
        "stages": [_stage(row) for row in history.reviews(store, k)],
        "figures": {split: figures(found.evaluation) if found else None for split, found in measured.items()},
        "dev_delta": attempt.dev_delta if attempt else None,
        "dev_delta_by_type": dict(attempt.dev_delta_by_type) if attempt else {},
        "validation_p": attempt.validation_p if attempt else None,
        "search_tokens": attempt.search_tokens if attempt else 0,
        "search_dollars": attempt.search_dollars if attempt else 0.0,
        "lesson": attempt.lesson if attempt else "",
        "lesson_by": attempt.lesson_by if attempt else "",
        "offline": store.manifest.profile == "offline",
    }


def _stage(row: dict[str, Any]) -> dict[str, Any]:
    """One stage's verdict; the attempt's number stands above it."""
    names = ("stage", "verdict", "decided_by", "rules", "reason", "cost")
    findings = [{name: f[name] for name in ("rule", "path", "line", "message", "text")} for f in row["findings"]]
    return {**{name: row[name] for name in names}, "findings": findings}
