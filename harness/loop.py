"""The loop: one iteration after the other, one line per stage. Read this file first.

Each stage is a function from typed input to a typed outcome (``harness/stages.py``), committed in one
transaction before the next begins. A stage that was committed is never run again: after a kill, calling
``run`` once more goes on where it stopped. A rejection is an outcome; the first one ends the attempt, and
``remember`` closes every iteration.
"""

from __future__ import annotations

from harness import remembering, stages
from harness.outcomes import Recalled, TakenIn
from harness.search import Search


def run(search: Search, iterations: int) -> None:
    """Search until ``iterations`` iterations are closed in total, then measure once on the test split.

    Raises ``search.Stopped`` between two stages when the user asked to stop or a cap was reached.
    """
    start(search)
    for k in range(1, iterations + 1):
        if not search.closed(k):
            iterate(search, k)
    remembering.close(search, iterations)


def start(search: Search) -> None:
    """Iteration 0: the policy that the search starts from, measured and put on the frontier."""
    stages.seed(search)
    stages.smoke_seed(search)
    stages.measure_seed(search, "development")
    stages.measure_seed(search, "validation")
    stages.references(search)
    remembering.inherit(search)


def iterate(search: Search, k: int) -> None:
    """One iteration."""
    attempt(search, k)
    remembering.remember(search, k)


def attempt(search: Search, k: int) -> None:
    """From recall to promotion; ends at the first rejection."""
    recalled = stages.recall(search, k)
    proposed = stages.propose(search, k, recalled)
    if proposed.rejected:
        return
    candidate = gated(search, k, recalled, stages.intake(search, k, recalled, proposed))
    if candidate is None:
        return
    developed = stages.develop(search, k, candidate)
    if developed.rejected or stages.audit_result(search, k, developed).rejected:
        return
    validated = stages.validate(search, k, candidate)
    if validated.rejected:
        return
    stages.promote(search, k, candidate, validated)


def gated(search: Search, k: int, recalled: Recalled, candidate: TakenIn) -> TakenIn | None:
    """Through the gate, and through all of it again after each revision; None at the first rejection."""
    while not candidate.rejected:
        for check in stages.gate(search.config.gate.checks):
            checked = check(search, k, candidate)
            if checked.rejected:
                return None
            if checked.asks:
                break
        else:
            return candidate
        revised = stages.revise(search, k, recalled, candidate)
        if revised.rejected:
            return None
        candidate = stages.intake(search, k, recalled, revised, candidate)
    return None
