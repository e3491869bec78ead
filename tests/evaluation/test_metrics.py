"""Figures against published values, hand calculations and the properties they must have."""

import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.evaluation import metrics
from harness.evaluation.metrics import Interval, NotComparable, Pairs
from harness.evaluation.outcomes import Cost, Evaluation, Item
from sandbox.interface import Verdict

Make = Callable[..., Evaluation]
MakeItem = Callable[..., Item]


# ---------------------------------------------------------------- intervals and tests


@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [  # Newcombe 1998, Statistics in Medicine 17:857, table I, method 3
        (81, 263, 0.2553, 0.3662),
        (15, 148, 0.0624, 0.1605),
        (0, 20, 0.0, 0.1611),
        (1, 29, 0.0061, 0.1718),
    ],
)
def test_wilson_published(successes: int, n: int, low: float, high: float) -> None:
    interval = metrics.wilson(successes, n)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


def test_wilson_of_nothing_says_nothing() -> None:
    assert metrics.wilson(0, 0) == Interval(0.0, 1.0)
    assert metrics.wilson(7, 7).high == 1.0
    with pytest.raises(ValueError):
        metrics.wilson(3, 2)


@given(st.integers(0, 300), st.integers(0, 300))
def test_wilson_is_symmetric_and_holds_the_estimate(right: int, wrong: int) -> None:
    n = right + wrong
    interval, mirrored = metrics.wilson(right, n), metrics.wilson(wrong, n)
    assert interval.low == pytest.approx(1 - mirrored.high) and interval.high == pytest.approx(1 - mirrored.low)
    assert n == 0 or interval.low <= right / n <= interval.high
    assert 0 <= interval.low <= interval.high <= 1


def test_mcnemar_by_hand() -> None:
    # 7 against 1 of 8: (C(8,7) + C(8,8)) / 256 = 9/256 one-sided; Fagerland et al. 2013 give p = 0.070 two-sided.
    assert metrics.mcnemar_better(Pairs(1, 7, 1, 12)) == 9 / 256
    assert metrics.mcnemar_better(Pairs(1, 1, 7, 12)) == 255 / 256
    assert metrics.mcnemar_differs(Pairs(1, 1, 7, 12)) == 18 / 256
    assert metrics.mcnemar_better(Pairs(5, 0, 0, 5)) == 1.0
    assert metrics.mcnemar_differs(Pairs(0, 4, 4, 0)) == 1.0
    # 10 against 0: 2^-10
    assert metrics.mcnemar_better(Pairs(0, 10, 0, 0)) == 2**-10


@given(st.integers(0, 60), st.integers(0, 60), st.integers(0, 60), st.integers(0, 60))
def test_mcnemar_properties(both: int, mine: int, theirs: int, neither: int) -> None:
    pairs, turned = Pairs(both, mine, theirs, neither), Pairs(both, theirs, mine, neither)
    assert metrics.mcnemar_differs(pairs) == metrics.mcnemar_differs(turned)
    # P(X >= b) + P(X >= c) = 1 + P(X = b), since P(X >= c) = P(X <= b).
    n = mine + theirs
    total = metrics.mcnemar_better(pairs) + metrics.mcnemar_better(turned)
    assert total == pytest.approx(1 + math.comb(n, mine) / 2**n)
    assert metrics.mcnemar_better(Pairs(both + 7, mine, theirs, neither + 3)) == metrics.mcnemar_better(pairs)


def test_mcnemar_of_many_questions_is_finite() -> None:
    assert 0 <= metrics.mcnemar_better(Pairs(0, 6_000, 4_000, 0)) < 1e-80


@pytest.mark.parametrize(
    ("pairs", "low", "high"),
    [
        # Newcombe 1998, Statistics in Medicine 17:2635, method 10
        (Pairs(36, 12, 2, 0), 0.0569, 0.3404),
        # Fagerland, Lydersen, Laake 2014 (Bentur et al.), Newcombe square-and-add: -0.507 to -0.026
        (Pairs(1, 1, 7, 12), -0.5069, -0.0256),
    ],
)
def test_paired_difference_published(pairs: Pairs, low: float, high: float) -> None:
    interval = metrics.difference_interval(pairs)
    assert (round(interval.low, 4), round(interval.high, 4)) == (low, high)


@given(st.integers(0, 80), st.integers(0, 80), st.integers(0, 80), st.integers(0, 80))
def test_paired_difference_properties(both: int, mine: int, theirs: int, neither: int) -> None:
    pairs, turned = Pairs(both, mine, theirs, neither), Pairs(both, theirs, mine, neither)
    interval, mirrored = metrics.difference_interval(pairs), metrics.difference_interval(turned)
    assert interval.low == pytest.approx(-mirrored.high) and interval.high == pytest.approx(-mirrored.low)
    assert -1 <= interval.low <= pairs.difference <= interval.high <= 1
    assert metrics.lower_bound(pairs, 0.05) >= interval.low - 1e-12


# ---------------------------------------------------------------- pairing


def test_pairs_are_by_question_not_by_position(evaluation: Make, item: MakeItem) -> None:
    mine = evaluation([item(0, True), item(1, False), item(2, True), item(3, False)])
    theirs = evaluation([item(3, False), item(2, False), item(1, True), item(0, True)])
    assert metrics.pair(mine, theirs) == Pairs(both=1, candidate_only=1, other_only=1, neither=1)


@pytest.mark.parametrize("field", ["data", "split", "runtime_digest", "reader"])
def test_figures_of_different_ground_are_not_compared(evaluation: Make, field: str) -> None:
    with pytest.raises(NotComparable, match=field):
        metrics.pair(evaluation("10"), evaluation("10", **{field: "other"}))


def test_different_questions_are_not_compared(evaluation: Make, item: MakeItem) -> None:
    with pytest.raises(NotComparable, match="questions"):
        metrics.pair(evaluation("10"), evaluation("101"))
    with pytest.raises(NotComparable, match="questions"):
        metrics.pair(evaluation([item(0, True), item(0, True)]), evaluation([item(0, True)]))


@given(st.lists(st.tuples(st.booleans(), st.booleans())), st.randoms())
def test_order_of_questions_is_nothing(pairs: list[tuple[bool, bool]], random: object) -> None:
    shuffled = list(pairs)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert metrics.tabulate(pairs) == metrics.tabulate(shuffled)
    assert metrics.tabulate(pairs).n == len(pairs)


# ---------------------------------------------------------------- figures of one evaluation


def test_figures_by_hand(evaluation: Make, item: MakeItem) -> None:
    e = evaluation(
        [
            item(0, True, hit=True, seconds=1.0, model_seconds=0.75, policy_seconds=0.25, route="direct"),
            item(1, False, hit=False, seconds=3.0, type="TaskMaster", unparsed=2, choice=None),
            item(
                2,
                False,
                verdict=Verdict.TIMEOUT,
                choice=None,
                route="",
                answering=Cost(),
                retrieval=Cost(requests=2, prompt_tokens=30, completion_tokens=20, frames=3),
                seconds=10.0,
            ),
            item(3, True, verification=Cost(requests=1, prompt_tokens=50), seconds=2.0),
        ],
        construction=Cost(requests=7, prompt_tokens=4_000),
    )
    assert e.accuracy == 0.5
    assert metrics.by_type(e) == {"EventRecall": 2 / 3, "TaskMaster": 0.0}
    assert metrics.hit_rate(e) == 0.5
    assert metrics.unparsed_share(e) == 0.25
    assert metrics.verdicts(e) == {"OK": 3, "TIMEOUT": 1}
    assert e.tokens_per_question == (100 + 100 + 50 + 150) / 4
    assert metrics.requests_per_question(e) == (1 + 1 + 2 + 2) / 4
    assert metrics.frames_per_question(e) == 0.75
    assert metrics.construction_per_question(e) == 1_000
    assert {name: cost.tokens for name, cost in metrics.cost_by_part(e).items()} == {
        "construction": 4_000,
        "retrieval": 50,
        "answering": 300,
        "verification": 50,
    }
    assert metrics.seconds_by_part(e)["all"] == metrics.Summary(4.0, 2.5, 10.0)
    assert metrics.seconds_by_part(e)["model"].p95 == 0.75
    routes = metrics.by_route(e)
    assert list(routes) == ["(none)", "direct", "reader"]
    assert routes["direct"].accuracy == 1.0 and routes["direct"].seconds.median == 1.0
    assert routes["reader"].questions == 2 and routes["reader"].tokens == 125


def test_an_empty_split_has_no_accuracy_to_boast_of(evaluation: Make) -> None:
    e = evaluation([])
    assert e.accuracy == 0.0 and metrics.hit_rate(e) is None and metrics.verdicts(e) == {}
    assert metrics.accuracy_interval(e) == Interval(0.0, 1.0)
    assert metrics.seconds_by_part(e)["all"] == metrics.Summary(0.0, 0.0, 0.0)


def test_nearest_rank_percentile() -> None:
    assert metrics.summarise(range(1, 101)).p95 == 95
    assert metrics.summarise(range(1, 21)).p95 == 19
    assert metrics.summarise([5.0]).p95 == 5.0


@given(st.lists(st.floats(0, 1e6), min_size=1), st.randoms())
def test_summary_is_order_independent(values: list[float], random: object) -> None:
    shuffled = list(values)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert metrics.summarise(values) == metrics.summarise(shuffled)
    assert sum(v <= metrics.summarise(values).p95 for v in values) >= 0.95 * len(values)
