"""The frontier: points, dominance, and the one promotion rule (by point estimate, and with tests)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TypeVar

from harness.errors import UserError
from harness.evaluation.metrics import Pairs, construction_per_question, lower_bound, mcnemar_better, pair
from harness.evaluation.outcomes import Evaluation

Name = TypeVar("Name", bound=Hashable)

LATENCY_EDGES = tuple(0.1 * 2**k for k in range(16))
"""Bucket edges in seconds per question: 0.1, 0.2, 0.4, ... 3,276.8. Bucket 0 is everything below 0.1 s: less than
any call of a model costs, so that what is left there is noise of the machine and cannot decide. Not given by
the source."""

_ROUNDING = 1e-9
"""Slack for comparisons of shares that are equal in exact arithmetic."""


@dataclass(frozen=True, slots=True)
class Point:
    """Where a policy stands. Accuracy up, tokens per question and latency bucket down."""

    accuracy: float
    tokens: float
    bucket: int


@dataclass(frozen=True, slots=True)
class PromotionRule:
    """The parameters of the one rule, as shares. None is given by the source; the configuration has the defaults."""

    eta: float
    """Least gain in accuracy."""
    alpha: float
    """Level of the one-sided paired test, and of the one-sided lower bound."""
    epsilon: float
    """Accuracy is "not worse" when it lies less than this below the best of the frontier."""
    saving: float
    """Least relative saving in tokens or seconds."""

    def __post_init__(self) -> None:
        if not 0 < self.alpha < 0.5:
            raise UserError(f"promotion.alpha is {self.alpha:g}; set it above 0 and below 0.5")
        if not (0 <= self.eta <= 1 and 0 <= self.epsilon <= 1 and 0 < self.saving <= 1):
            raise UserError(f"promotion.eta, epsilon and saving are shares from 0 to 1, saving above 0; got {self}")


@dataclass(frozen=True, slots=True)
class PromotionDecision:
    """Whether the rule is met, and why or why not, one line each."""

    accepted: bool
    reasons: tuple[str, ...]
    p_value: float | None = None
    """One-sided exact McNemar p against the incumbent; None at Develop, where point estimates decide."""
    lower_bound: float | None = None
    """Lower confidence bound of the difference to the frontier's best; None at Develop."""

    @property
    def reason(self) -> str:
        """All reasons in one line."""
        return "; ".join(self.reasons)


def bucket_of(evaluation: Evaluation) -> int:
    """Latency bucket of a measured policy. Offline it is 0: no model was called, the seconds are this machine's
    load alone, and a repeat must decide the same."""
    return 0 if evaluation.offline else latency_bucket(median_seconds(evaluation))


def latency_bucket(seconds: float) -> int:
    """Bucket of a median latency; 0 below the first edge, an edge belongs to the bucket above it."""
    return bisect_right(LATENCY_EDGES, seconds)


def median_seconds(evaluation: Evaluation) -> float:
    """Median seconds per question."""
    return median(item.seconds for item in evaluation.items) if evaluation.items else 0.0


def point(evaluation: Evaluation) -> Point:
    """The point of a measured policy."""
    return Point(evaluation.accuracy, evaluation.tokens_per_question, bucket_of(evaluation))


def dominates(a: Point, b: Point) -> bool:
    """Whether ``a`` is at least as good as ``b`` everywhere and better somewhere. Exact: a strict partial order."""
    return a != b and a.accuracy >= b.accuracy and a.tokens <= b.tokens and a.bucket <= b.bucket


def pareto(points: Mapping[Name, Point]) -> tuple[Name, ...]:
    """Names of the points that no other point dominates, in the order given. Equal points both stay."""
    return tuple(n for n, p in points.items() if not any(dominates(other, p) for other in points.values()))


# ---------------------------------------------------------------- the one rule


def develop_bar(
    candidate: Evaluation, incumbent: Evaluation, frontier: Sequence[Evaluation], rule: PromotionRule
) -> PromotionDecision:
    """The rule by point estimate, on the development split.

    ``incumbent`` is the policy the candidate was made from; ``frontier`` holds all policies of the frontier,
    the incumbent among them, measured on the same questions. Raises NotComparable.
    """
    return _decide(candidate, incumbent, frontier, rule, tested=False)


def no_bar(
    candidate: Evaluation, incumbent: Evaluation, frontier: Sequence[Evaluation], rule: PromotionRule
) -> PromotionDecision:
    """Everything passes: the development split of a search whose gate is off (LVMH, Figure 5, "no gated review")."""
    return PromotionDecision(True, ("no bar: the gate is off",))


def validate_bar(
    candidate: Evaluation, incumbent: Evaluation, frontier: Sequence[Evaluation], rule: PromotionRule
) -> PromotionDecision:
    """The same rule with its tests, on the validation split. Raises NotComparable."""
    return _decide(candidate, incumbent, frontier, rule, tested=True)


def _decide(
    candidate: Evaluation, incumbent: Evaluation, frontier: Sequence[Evaluation], rule: PromotionRule, tested: bool
) -> PromotionDecision:
    """Better by eta (and beyond chance), or not worse than the best and cheaper; and not dominated."""
    against_incumbent = pair(candidate, incumbent)
    field = frontier or (incumbent,)
    # Of several equally accurate policies the one that leaves the lowest bound, so that order cannot decide.
    top = max(e.accuracy for e in field)
    against_best = [pair(candidate, e) for e in field if e.accuracy >= top - _ROUNDING]
    p_value = mcnemar_better(against_incumbent) if tested else None
    bound = min(lower_bound(p, rule.alpha) for p in against_best) if tested else None

    better, better_reason = _better(against_incumbent, p_value, rule)
    cheaper, cheaper_reason = _cheaper(candidate, incumbent, rule)
    not_worse, not_worse_reason = _not_worse(against_best[0].difference, bound, rule)
    dominated = any(dominates(point(e), point(candidate)) for e in field)

    reasons = [better_reason]
    if not better:
        reasons += [not_worse_reason, cheaper_reason]
    if dominated:
        reasons.append("a policy of the frontier is at least as accurate, as cheap and as fast")
    return PromotionDecision((better or (not_worse and cheaper)) and not dominated, tuple(reasons), p_value, bound)


def _better(pairs: Pairs, p_value: float | None, rule: PromotionRule) -> tuple[bool, str]:
    gain = f"accuracy {_points(pairs.difference)} against the incumbent (needs {_points(rule.eta)})"
    enough = pairs.difference >= rule.eta - _ROUNDING and pairs.difference > 0
    if p_value is None:
        return enough, gain
    return enough and p_value <= rule.alpha, f"{gain}, paired p = {p_value:.4f} (needs {rule.alpha:g} or less)"


def _not_worse(difference: float, bound: float | None, rule: PromotionRule) -> tuple[bool, str]:
    """At Develop the difference itself must lie above −epsilon, at Validate its lower bound."""
    value = difference if bound is None else bound
    word = "accuracy" if bound is None else "lower bound of accuracy"
    reason = f"{word} {_points(value)} against the frontier's best (needs more than {_points(-rule.epsilon)})"
    return value > -rule.epsilon + _ROUNDING, reason


def _cheaper(candidate: Evaluation, incumbent: Evaluation, rule: PromotionRule) -> tuple[bool, str]:
    """Tokens count as saved only if they did not move into construction; seconds only into a lower bucket."""
    mine, theirs = candidate.tokens_per_question, incumbent.tokens_per_question
    mine_all = mine + construction_per_question(candidate)
    theirs_all = theirs + construction_per_question(incumbent)
    tokens = mine <= theirs * (1 - rule.saving) + _ROUNDING and theirs > 0 and mine_all <= theirs_all
    fast, slow = bucket_of(candidate), bucket_of(incumbent)
    seconds = fast < slow and median_seconds(candidate) <= median_seconds(incumbent) * (1 - rule.saving)
    reason = (
        f"tokens per question {theirs:.0f} to {mine:.0f} (with construction {theirs_all:.0f} to {mine_all:.0f}), "
        f"latency bucket {slow} to {fast} (one must be down by {rule.saving:.0%})"
    )
    return tokens or seconds, reason


def _points(share: float) -> str:
    """A share as signed percentage points."""
    return f"{100 * share:+.1f} points"
