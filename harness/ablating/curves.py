"""What a search reached after each attempt, and what it had spent by then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from harness import history
from harness.evaluation.outcomes import Evaluation
from harness.outcomes import Measured, Promoted, Remembered
from harness.state.store import RunStore

Count = Annotated[int, Field(ge=0, le=10**15)]
Gain = Annotated[float, Field(ge=-1, le=1)]
Name = Annotated[str, Field(max_length=60)]


class Point(BaseModel):
    """One line of the table: a run after one attempt. Gains are shares, against the policy it started from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: Name
    profile: Name = ""
    """Which models were used; ``offline`` is none. Empty in a table of before this was recorded."""
    seed: int
    attempt: Count
    search_tokens: Count
    """Of author, reviewer and analyst, cumulative. 0 with the offline author, which calls no model."""
    answer_tokens: Count
    """Read by the answer model (offline: counted for the lexical reader) on both splits, cumulative."""
    validations: Count
    """Evaluations on the validation split, cumulative."""
    repeats: Count
    """Attempts refused as a repeat, or with the very files of an earlier one; cumulative."""
    promotions: Count
    dev_gain: Gain
    """Of the frontier's best policy by development accuracy."""
    transfer_gain: Gain
    """The same policy on the validation split."""


class Summary(BaseModel):
    """A variant at the end of its searches: medians over the seeds. Gains are shares."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    variant: str
    seeds: int
    dev_gain: float
    transfer_gain: float
    test_gain: float | None
    """Final policy against first on the test split; None where a run has no closing evaluation."""
    search_tokens: float
    answer_tokens: float
    validations: float
    repeats: float
    promotions: float


def curve(store: RunStore, variant: str) -> list[Point]:
    """One point for each closed attempt of a run, point 0 for its start."""
    seed, profile, measured = store.manifest.seed, store.manifest.profile, _measured(store, 0)
    answered = sum(map(_tokens, measured))
    start = _shares(measured)
    points = [
        Point(
            variant=variant,
            profile=profile,
            seed=seed,
            attempt=0,
            search_tokens=0,
            answer_tokens=answered,
            validations=0,
            repeats=0,
            promotions=0,
            dev_gain=0.0,
            transfer_gain=0.0,
        )
    ]
    standing = {0: start}
    trees: set[str] = set()
    for attempt in store.attempts():
        k, before = attempt.iteration, points[-1]
        repeated = bool(REPEAT & set(attempt.rules)) or attempt.tree in trees
        trees |= {attempt.tree} - {""}
        measured = _measured(store, k)
        answered += sum(map(_tokens, measured))
        promoted = store.stage(k, "promote", Promoted)
        if promoted is not None:
            known = {**standing, k: _shares(measured)}
            standing = {f: known[f] for f in promoted.frontier}
        closed = store.stage(k, "remember", Remembered)
        developed, validated = standing[max(standing, key=lambda f: (standing[f][0], -f))]
        points.append(
            Point(
                variant=variant,
                profile=profile,
                seed=seed,
                attempt=k,
                search_tokens=closed.spent_tokens if closed else before.search_tokens,
                answer_tokens=answered,
                validations=before.validations + (len(measured) == 2),
                repeats=before.repeats + repeated,
                promotions=before.promotions + (promoted is not None),
                dev_gain=developed - start[0],
                transfer_gain=validated - start[1],
            )
        )
    return points


def _measured(store: RunStore, k: int) -> list[Evaluation]:
    """An attempt on the development split and on the validation split, as far as it came."""
    found = (store.stage(k, name, Measured) for name in ("develop", "validate"))
    return [measured.evaluation for measured in found if measured is not None]


def _shares(measured: Sequence[Evaluation]) -> tuple[float, float]:
    """Accuracy on both splits."""
    developed, validated = measured
    return developed.accuracy, validated.accuracy


REPEAT = frozenset({"D01", "D02", "D03", "D04"})
"""Rules that tell a repeat, at whatever stage it was seen."""


def summary(points: Sequence[Point], tests: Iterable[float | None]) -> Summary:
    """The last points of one variant's runs, together; ``tests`` are the runs' gains on the test split."""
    last = list({point.seed: point for point in points}.values())
    gained = [gain for gain in tests if gain is not None]
    return Summary(
        variant=last[0].variant,
        seeds=len(last),
        dev_gain=median(p.dev_gain for p in last),
        transfer_gain=median(p.transfer_gain for p in last),
        test_gain=median(gained) if gained else None,
        search_tokens=median(p.search_tokens for p in last),
        answer_tokens=median(p.answer_tokens for p in last),
        validations=median(p.validations for p in last),
        repeats=median(p.repeats for p in last),
        promotions=median(p.promotions for p in last),
    )


def gain_on_test(store: RunStore) -> float | None:
    """Final policy against first on the test split, as the run's closing evaluation measured it."""
    closed = history.closing(store)
    return closed.evaluations["final"].accuracy - closed.evaluations["first"].accuracy if closed else None


def _tokens(evaluation: Evaluation) -> int:
    return round(evaluation.tokens_per_question * len(evaluation.items))
