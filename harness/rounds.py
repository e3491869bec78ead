"""Rounds of a candidate: revised on the gate's demand, it goes through intake and gate again.

The stages of a round bear its number: ``static`` is the first one's, ``static-1`` that of the first revision.
"""

from __future__ import annotations

from typing import TypeVar

from harness.errors import UserError
from harness.outcomes import STAGES, Gated, Outcome, TakenIn
from harness.state.intake import IntakeRejected
from harness.state.store import RunStore
from sandbox.bundle import BundleError, make_bundle
from sandbox.interface import Bundle

T = TypeVar("T", bound=Outcome)


def named(stage: str, turn: int) -> str:
    """The name under which a stage of a round is committed."""
    return f"{stage}-{turn}" if turn else stage


def base(name: str) -> str:
    """The stage of which ``name`` is a round; a name that is none stays as it is."""
    stage, _, turn = name.rpartition("-")
    return stage if stage in STAGES and turn.isdecimal() else name


def reached(store: RunStore, k: int) -> dict[str, type[Outcome]]:
    """The committed stages of an iteration in order, each with the outcome that it committed."""
    mine = [name for iteration, name in store.stages() if iteration == k]
    return {name: STAGES[base(name)] for name in mine if base(name) in STAGES}


def intakes(store: RunStore, k: int) -> list[TakenIn]:
    """The candidate of an iteration as it was handed in, round by round; the last may have been refused."""
    found: list[TakenIn] = []
    while (taken := store.stage(k, named("intake", len(found)), TakenIn)) is not None:
        found.append(taken)
    return found


def taken_in(store: RunStore, k: int) -> TakenIn | None:
    """The candidate of an iteration as it was taken in last; None where it never was."""
    return next((taken for taken in reversed(intakes(store, k)) if taken.tree), None)


def bundle(store: RunStore, taken: TakenIn) -> Bundle:
    """The bytes that were reviewed and run: those of the recorded tree, re-read and re-hashed. Raises UserError."""
    why = ""
    try:
        made = make_bundle(store.lineage.read(taken.tree))
        if made.digest == taken.bundle:
            return made
    except (IntakeRejected, BundleError) as error:
        why = f" ({error})"
    name = taken.branch or taken.tree
    raise UserError(f"{name} is not what was taken in; the run's repository was changed, restore a copy{why}")


def gated(store: RunStore, k: int) -> dict[str, Gated]:
    """The verdicts of the gate on an iteration's candidate, all rounds, in order, by the stages' names."""
    names = [name for name, kind in reached(store, k).items() if kind is Gated]
    return {name: verdict for name in names if (verdict := store.stage(k, name, Gated)) is not None}
