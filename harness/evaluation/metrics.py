"""Figures of evaluations: pure functions of stored outcomes. ``docs/figures.md`` says what each one means."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from statistics import NormalDist, median

from harness.errors import UserError
from harness.evaluation.outcomes import Cost, Evaluation, Item

CONFIDENCE = 0.95
"""Of every printed interval (not given by the source)."""


class NotComparable(UserError):
    """Two evaluations of different data, runtimes, readers or questions; a difference would mean nothing."""


# ---------------------------------------------------------------- one proportion


@dataclass(frozen=True, slots=True)
class Interval:
    """A two-sided confidence interval."""

    low: float
    high: float


def wilson(successes: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's score interval for a proportion (Wilson 1927). ``n`` = 0 gives [0, 1]."""
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}")
    if n == 0:
        return Interval(0.0, 1.0)
    z = NormalDist().inv_cdf((1 + confidence) / 2)
    p = successes / n
    centre = p + z * z / (2 * n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == n else (centre + half) / scale
    return Interval(low, high)


def accuracy_interval(evaluation: Evaluation, confidence: float = CONFIDENCE) -> Interval:
    """Wilson's interval of the accuracy."""
    return wilson(sum(item.correct for item in evaluation.items), len(evaluation.items), confidence)


@dataclass(frozen=True, slots=True)
class Share:
    """How many of how many, and Wilson's interval."""

    count: int
    n: int

    @property
    def share(self) -> float:
        """0 to 1; 0 of nothing is 0."""
        return self.count / self.n if self.n else 0.0

    @property
    def interval(self) -> Interval:
        """Wilson's interval of the share."""
        return wilson(self.count, self.n)


def by_type(evaluation: Evaluation) -> dict[str, float]:
    """Accuracy by question type, types in alphabetical order."""
    return {name: right.share for name, right in right_by_type(evaluation).items()}


def right_by_type(evaluation: Evaluation) -> dict[str, Share]:
    """Right answers of each question type, types in alphabetical order."""
    return {
        name: Share(sum(i.correct for i in items), len(items)) for name, items in grouped(evaluation, _type).items()
    }


def grouped(evaluation: Evaluation, key: Callable[[Item], str]) -> dict[str, list[Item]]:
    """Items by a key, keys in alphabetical order."""
    groups: dict[str, list[Item]] = {}
    for item in evaluation.items:
        groups.setdefault(key(item), []).append(item)
    return dict(sorted(groups.items()))


def _type(item: Item) -> str:
    return item.type


def hit_rate(evaluation: Evaluation) -> float | None:
    """Share of the questions with oracle times whose evidence overlaps them; None where no question has one."""
    hits = [item.hit for item in evaluation.items if item.hit is not None]
    return sum(hits) / len(hits) if hits else None


def direct(evaluation: Evaluation) -> Share:
    """Questions whose text stage answered without asking the answer model: requests are 1 − direct + verified."""
    return Share(sum(item.direct for item in evaluation.items), len(evaluation.items))


def gate_open(evaluation: Evaluation) -> Share | None:
    """Questions at which the policy says that its visual gate opened; None where no answer says anything of a gate."""
    said = [item.gate for item in evaluation.items if item.gate is not None]
    return Share(sum(said), len(evaluation.items)) if said else None


def verified(evaluation: Evaluation) -> Share:
    """Questions with a verification call, as the host saw it: the gate opened and frames were there."""
    return Share(sum(item.verification.requests > 0 for item in evaluation.items), len(evaluation.items))


def unparsed_share(evaluation: Evaluation) -> float:
    """Share of the questions with at least one Read whose reply named no letter or several."""
    return sum(item.unparsed > 0 for item in evaluation.items) / len(evaluation.items) if evaluation.items else 0.0


def verdicts(evaluation: Evaluation) -> dict[str, int]:
    """Questions by verdict, only verdicts that occurred, in alphabetical order."""
    return dict(sorted(Counter(item.verdict.value for item in evaluation.items).items()))


# ---------------------------------------------------------------- cost and time


@dataclass(frozen=True, slots=True)
class Summary:
    """Mean, median and 95th percentile of a measured quantity; all 0 where there is none."""

    mean: float
    median: float
    p95: float


def summarise(values: Iterable[float]) -> Summary:
    """The percentile is the nearest rank: the smallest value that at least 95 % of the values do not exceed."""
    ordered = sorted(values)
    if not ordered:
        return Summary(0.0, 0.0, 0.0)
    rank = math.ceil(0.95 * len(ordered))
    return Summary(math.fsum(ordered) / len(ordered), median(ordered), ordered[rank - 1])


@dataclass(frozen=True, slots=True)
class RouteFigures:
    """One route: how often it answered, how well, how long it took."""

    questions: int
    accuracy: float
    tokens: float
    """Answer-time tokens per question of the route."""
    seconds: Summary


def by_route(evaluation: Evaluation) -> dict[str, RouteFigures]:
    """Figures by the route the policy named; questions without an answer stand under ``(none)``."""
    return {
        name: RouteFigures(
            questions=len(items),
            accuracy=sum(i.correct for i in items) / len(items),
            tokens=sum(i.tokens for i in items) / len(items),
            seconds=summarise(i.seconds for i in items),
        )
        for name, items in grouped(evaluation, lambda item: item.route or "(none)").items()
    }


def seconds_by_part(evaluation: Evaluation) -> dict[str, Summary]:
    """Seconds per question: the whole, and its parts."""
    parts: Mapping[str, Callable[[Item], float]] = {
        "all": lambda i: i.seconds,
        "retrieval": lambda i: i.policy_seconds,
        "frames": lambda i: i.frame_seconds,
        "embedding": lambda i: i.embed_seconds,
        "model": lambda i: i.model_seconds,
    }
    return {name: summarise(map(take, evaluation.items)) for name, take in parts.items()}


def cost_by_part(evaluation: Evaluation) -> dict[str, Cost]:
    """Total cost by part, construction included."""
    total = {"construction": evaluation.construction, "retrieval": Cost(), "answering": Cost(), "verification": Cost()}
    for item in evaluation.items:
        total["retrieval"] += item.retrieval
        total["answering"] += item.answering
        total["verification"] += item.verification
    return total


def tokens_per_question(evaluation: Evaluation) -> tuple[float, float]:
    """Answer-time tokens in (prompt) and out (completion) per question."""
    n = max(len(evaluation.items), 1)
    costs = [item.retrieval + item.answering + item.verification for item in evaluation.items]
    return sum(cost.prompt_tokens for cost in costs) / n, sum(cost.completion_tokens for cost in costs) / n


def requests_per_question(evaluation: Evaluation) -> float:
    """Answer-time requests to a model per question."""
    return sum(item.requests for item in evaluation.items) / len(evaluation.items) if evaluation.items else 0.0


def frames_per_question(evaluation: Evaluation) -> float:
    """Frames fetched per question."""
    return sum(item.frames for item in evaluation.items) / len(evaluation.items) if evaluation.items else 0.0


def construction_per_question(evaluation: Evaluation) -> float:
    """Construction tokens divided by the questions."""
    return evaluation.construction.tokens / len(evaluation.items) if evaluation.items else 0.0


# ---------------------------------------------------------------- two policies on the same questions


@dataclass(frozen=True, slots=True)
class Pairs:
    """The paired two-by-two table of a candidate and another policy."""

    both: int
    candidate_only: int
    other_only: int
    neither: int

    @property
    def n(self) -> int:
        """Number of questions."""
        return self.both + self.candidate_only + self.other_only + self.neither

    @property
    def difference(self) -> float:
        """Accuracy of the candidate minus accuracy of the other, −1 to 1."""
        return (self.candidate_only - self.other_only) / self.n if self.n else 0.0


def pair(candidate: Evaluation, other: Evaluation) -> Pairs:
    """Pair by question. Raises NotComparable where data, split, runtime, reader or questions differ."""
    for name in ("data", "split", "runtime_digest", "reader"):
        mine, theirs = getattr(candidate, name), getattr(other, name)
        if mine != theirs:
            raise NotComparable(
                f"figures of different {name} are not compared: {mine!r} and {theirs!r}; evaluate both alike"
            )
    theirs_by_id = {item.question: item.correct for item in other.items}
    mine_by_id = {item.question: item.correct for item in candidate.items}
    if (
        mine_by_id.keys() != theirs_by_id.keys()
        or len(mine_by_id) != len(candidate.items)
        or len(other.items) != len(theirs_by_id)
    ):
        raise NotComparable("figures over different questions are not compared; evaluate both on the same questions")
    return tabulate((right, theirs_by_id[question]) for question, right in mine_by_id.items())


def tabulate(pairs: Iterable[tuple[bool, bool]]) -> Pairs:
    """Count (candidate right, other right) pairs."""
    counts = Counter(pairs)
    return Pairs(counts[True, True], counts[True, False], counts[False, True], counts[False, False])


def mcnemar_better(pairs: Pairs) -> float:
    """Exact one-sided p: chance of at least so many pairs won by the candidate if both were equally good."""
    return _binomial_tail(pairs.candidate_only, pairs.candidate_only + pairs.other_only)


def mcnemar_differs(pairs: Pairs) -> float:
    """Exact two-sided p: twice the smaller tail, at most 1."""
    more = max(pairs.candidate_only, pairs.other_only)
    return min(1.0, 2 * _binomial_tail(more, pairs.candidate_only + pairs.other_only))


def _binomial_tail(k: int, n: int) -> float:
    """P(X ≥ k) for X binomial (n, ½), from exact integers."""
    term, total = math.comb(n, k), 0
    for i in range(k, n + 1):
        total += term
        term = term * (n - i) // (i + 1)
    return total / (1 << n)


def difference_interval(pairs: Pairs, confidence: float = CONFIDENCE) -> Interval:
    """Interval of the paired difference: square-and-add of Wilson intervals (Newcombe 1998, method 10).

    ``n`` = 0 gives [−1, 1].
    """
    n = pairs.n
    if n == 0:
        return Interval(-1.0, 1.0)
    right, other_right = pairs.both + pairs.candidate_only, pairs.both + pairs.other_only
    mine, theirs = wilson(right, n, confidence), wilson(other_right, n, confidence)
    p, q = right / n, other_right / n
    phi = _phi(pairs)
    below = _square_and_add(p - mine.low, theirs.high - q, phi)
    above = _square_and_add(mine.high - p, q - theirs.low, phi)
    return Interval(max(-1.0, pairs.difference - below), min(1.0, pairs.difference + above))


def _square_and_add(a: float, b: float, phi: float) -> float:
    return math.sqrt(max(0.0, a * a - 2 * phi * a * b + b * b))


def _phi(pairs: Pairs) -> float:
    """Correlation of the two policies' correctness, shrunk by n/2 where positive as method 10 has it."""
    right, other_right = pairs.both + pairs.candidate_only, pairs.both + pairs.other_only
    margins = right * (pairs.n - right) * other_right * (pairs.n - other_right)
    if margins == 0:
        return 0.0
    b = pairs.both * pairs.neither - pairs.candidate_only * pairs.other_only
    return (max(b - pairs.n / 2, 0.0) if b > 0 else b) / math.sqrt(margins)


def lower_bound(pairs: Pairs, alpha: float) -> float:
    """One-sided lower confidence bound of the difference at level 1 − ``alpha``."""
    return difference_interval(pairs, 1 - 2 * alpha).low
