"""Whether a run is what it says: beyond the chain, that what was measured is what was reviewed and paid for.

The chain (``harness.state.verify``) shows that nothing was edited. This shows that what it tells fits together: trees
and bundles, the gate before each measurement, the fixed texts, the replies and what was spent on them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from harness import stages
from harness.display import visible
from harness.errors import UserError
from harness.models.replies import REPLIES, checked_calls
from harness.outcomes import Audited, Gated, Measured, Promoted, Remembered, TakenIn
from harness.rounds import named, taken_in
from harness.state.intake import IntakeRejected
from harness.state.store import RunStore
from harness.state.verify import ChainReport, verify_chain
from principles.h0 import H0Error, verify
from sandbox.bundle import make_bundle

CENT = 1e-6
"""US dollars by which sums of the same floats may differ."""


def verify_run(folder: Path) -> ChainReport:
    """Check a run, chain and all, without changing it. Never raises for what it finds; each problem is one line."""
    report = verify_chain(folder)
    found = list(report.problems)
    try:
        with RunStore.open(folder, write=False) as store:
            found += _fixed_texts(store)
            for k in sorted({iteration for iteration, _ in store.stages()}):
                try:
                    found += _attempt(store, k)
                except UserError as error:
                    found.append(f"attempt {k}: {error}")
            found += _replies(store)
    except UserError as error:
        found.append(str(error))
    return replace(report, problems=tuple(dict.fromkeys(found)))


def _fixed_texts(store: RunStore) -> Iterator[str]:
    try:
        verify(store.folder, store.manifest.h0)
    except H0Error as error:
        yield str(error)


# ---------------------------------------------------------------- what ran is what was reviewed


def _attempt(store: RunStore, k: int) -> Iterator[str]:
    taken = taken_in(store, k)
    if taken is not None:
        yield from _tree(store, k, taken)
    for name in ("develop", "validate"):
        measured = store.stage(k, name, Measured)
        if measured is not None:
            yield from _measured(store, k, name, measured, taken)
    if k and store.stage(k, "promote", Promoted) is not None:
        validated = store.stage(k, "validate", Measured)
        if validated is None or validated.rejected:
            yield f"attempt {k}: was promoted, and no validation accepted it"


def _tree(store: RunStore, k: int, taken: TakenIn) -> Iterator[str]:
    """The tree that was taken in holds the bytes that were reviewed, and every commit of the attempt has that tree."""
    try:
        digest = make_bundle(store.lineage.read(taken.tree)).digest
    except IntakeRejected as error:
        yield f"attempt {k}: tree {taken.tree} is damaged: {error}"
        return
    if digest != taken.bundle:
        yield f"attempt {k}: tree {taken.tree} is not the bundle {taken.bundle[:12]} that was taken in"
    promoted = store.stage(k, "promote", Promoted)
    commits = {taken.commit, *([promoted.commit] if promoted else [])}
    tip = store.refs().get(f"refs/heads/{taken.branch}")
    for oid in sorted(commits | ({tip} if tip and taken.branch != "main" else set())):
        if store.lineage.commit_of(oid).tree != taken.tree:
            yield f"attempt {k}: commit {oid} does not hold the tree {taken.tree} that was reviewed"


def _measured(store: RunStore, k: int, name: str, measured: Measured, taken: TakenIn | None) -> Iterator[str]:
    """A measurement is of the reviewed bytes, on the run's data and runtime, and after every check before it."""
    run, e = store.manifest, measured.evaluation
    for what, found, wanted in (
        ("bundle", e.policy, taken.bundle if taken else "none"),
        ("data", e.data, run.data.digest),
        ("runtime", e.runtime_digest, run.runtime_digest),
    ):
        if found != wanted:
            yield f"attempt {k}: {name} was measured on {what} {found[:12]}, reviewed or recorded is {wanted[:12]}"
    if k == 0:
        return  # the starting policy is given, not proposed: nothing reviews it
    checks = stages.gate(store.manifest.config.get("gate", {}).get("checks", "all"))
    for check in (named(check.__name__, taken.turn if taken else 0) for check in checks):
        gated = store.stage(k, check, Gated)
        if gated is None or gated.rejected or gated.verdict.decision != "approve" or not _before(store, k, check, name):
            yield f"attempt {k}: {name} was measured without an approval by {check} before it"
    if name == "validate":
        developed, audited = store.stage(k, "develop", Measured), store.stage(k, "audit", Audited)
        if developed is None or developed.rejected or not _before(store, k, "develop", name):
            yield f"attempt {k}: a validation was spent although develop had not accepted it"
        if audited is None or audited.rejected or not _before(store, k, "audit", name):
            yield f"attempt {k}: a validation was spent without an approval by the audit of the result"


def _before(store: RunStore, k: int, first: str, then: str) -> bool:
    order = [stage for iteration, stage in store.stages() if iteration == k]
    return order.index(first) < order.index(then)


# ---------------------------------------------------------------- replies and spend


def _replies(store: RunStore) -> Iterator[str]:
    """Every request is the one that its key names, and what each iteration says was spent is what its calls cost."""
    path = store.folder / REPLIES
    sums: list[tuple[int, float]] = [(0, 0.0)]
    try:
        for usage, problem in checked_calls(path):
            if problem:
                yield f"{path}: {visible(problem, 300)}"
            tokens, dollars = sums[-1]
            sums.append((tokens + usage.prompt_tokens + usage.completion_tokens, dollars + usage.dollars))
    except UserError as error:
        yield str(error)
        return
    at, tokens, dollars = 0, 0, 0.0
    for attempt in store.attempts():
        remembered = store.stage(attempt.iteration, "remember", Remembered)
        if remembered is None:
            continue
        k, spent = attempt.iteration, (remembered.spent_tokens, remembered.spent_dollars)
        place = next((n for n, total in enumerate(sums[at:], at) if _equal(total, spent)), None)
        if place is None:
            yield (
                f"{path}: its calls never come to the {spent[0]} tokens and {spent[1]:.4f} dollars that attempt {k} "
                f"records (they come to {sums[-1][0]} and {sums[-1][1]:.4f} in all)"
            )
        at = at if place is None else place
        if not _equal((attempt.search_tokens, attempt.search_dollars), (spent[0] - tokens, spent[1] - dollars)):
            yield f"attempt {k}: remembers {attempt.search_tokens} tokens, its stages record {spent[0] - tokens}"
        tokens, dollars = spent


def _equal(a: tuple[int, float], b: tuple[int, float]) -> bool:
    return a[0] == b[0] and abs(a[1] - b[1]) < CENT * max(1.0, abs(b[1]))
