"""Buckets, dominance and the one promotion rule."""

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness import frontier
from harness.errors import UserError
from harness.evaluation.metrics import NotComparable
from harness.evaluation.outcomes import Cost, Evaluation, Item
from harness.frontier import Point, PromotionRule, develop_bar, dominates, pareto, validate_bar

Make = Callable[..., Evaluation]
MakeItem = Callable[..., Item]
RULE = PromotionRule(eta=0.02, alpha=0.05, epsilon=0.02, saving=0.10)

# Few distinct values, so that ties and equal points come up often.
points = st.builds(Point, st.sampled_from([0.4, 0.5, 0.6]), st.sampled_from([0.0, 100.0, 200.0]), st.integers(0, 2))


@pytest.mark.parametrize(
    ("seconds", "bucket"),
    [(0.0, 0), (0.0999, 0), (0.1, 1), (0.19, 1), (0.2, 2), (0.4, 3), (1.6, 5), (2.22, 5), (1e9, 16)],
)
def test_latency_buckets(seconds: float, bucket: int) -> None:
    assert frontier.latency_bucket(seconds) == bucket


def test_bucket_edges_double() -> None:
    assert all(b == 2 * a for a, b in zip(frontier.LATENCY_EDGES, frontier.LATENCY_EDGES[1:], strict=False))


@given(points, points, points)
def test_dominance_is_a_strict_partial_order(a: Point, b: Point, c: Point) -> None:
    assert not dominates(a, a)
    assert not (dominates(a, b) and dominates(b, a))
    assert not (dominates(a, b) and dominates(b, c)) or dominates(a, c)


@given(st.lists(points, max_size=9), st.randoms())
def test_the_frontier_does_not_depend_on_order(drawn: list[Point], random: object) -> None:
    named = dict(enumerate(drawn))
    shuffled = list(named.items())
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    whole = set(pareto(named))
    assert set(pareto(dict(shuffled))) == whole
    # One after the other gives the same set as all at once.
    kept: dict[int, Point] = {}
    for name, point in shuffled:
        kept[name] = point
        kept = {n: kept[n] for n in pareto(kept)}
    assert set(kept) == whole
    assert not drawn or whole


def test_point_takes_the_median(evaluation: Make, item: MakeItem) -> None:
    items = [item(0, True, seconds=0.01), item(1, True, seconds=0.3), item(2, False, seconds=90.0)]
    assert frontier.point(evaluation(items, reader="some model")) == Point(2 / 3, 100.0, 2)


def test_offline_seconds_decide_nothing(evaluation: Make, item: MakeItem) -> None:
    slow, fast = (evaluation([item(k, k < 200, seconds=s) for k in range(400)]) for s in (3.0, 0.01))
    assert frontier.point(slow) == frontier.point(fast)
    assert not develop_bar(fast, slow, [slow], RULE).accepted


# ---------------------------------------------------------------- the rule


def marks(right: int, n: int = 400) -> str:
    """The first ``right`` answers right: more right means the same ones and some more."""
    return "1" * right + "0" * (n - right)


def with_tokens(make: Make, item: MakeItem, right: str, tokens: int, **changes: object) -> Evaluation:
    cost = Cost(requests=1, prompt_tokens=tokens)
    return make([item(k, mark == "1", answering=cost) for k, mark in enumerate(right)], **changes)


def test_more_accurate_is_promoted(evaluation: Make) -> None:
    parent, child = evaluation(marks(200)), evaluation(marks(216))
    assert develop_bar(child, parent, [parent], RULE).accepted
    tested = validate_bar(child, parent, [parent], RULE)
    assert tested.accepted and tested.p_value == 2**-16


def test_a_gain_that_may_be_chance_is_not_promoted(evaluation: Make) -> None:
    parent = evaluation("10" * 200)
    # 60 won, 50 lost: 2.5 points more, one-sided exact p = 0.195
    child = evaluation(("01" * 50) + ("11" * 10) + ("10" * 140))
    assert develop_bar(child, parent, [parent], RULE).accepted
    tested = validate_bar(child, parent, [parent], RULE)
    assert not tested.accepted
    assert tested.p_value == pytest.approx(0.1953, abs=5e-4)
    assert "p = 0.19" in tested.reason


def test_eta_is_reached_exactly(evaluation: Make) -> None:
    parent = evaluation(marks(200))
    assert develop_bar(evaluation(marks(208)), parent, [parent], RULE).accepted  # 8 of 400 are 2 points
    assert not develop_bar(evaluation(marks(207)), parent, [parent], RULE).accepted


def test_no_gain_is_no_gain_even_with_eta_zero(evaluation: Make) -> None:
    parent = evaluation(marks(200))
    rule = PromotionRule(eta=0.0, alpha=0.05, epsilon=0.02, saving=0.1)
    assert not develop_bar(evaluation(marks(200)), parent, [parent], rule).accepted


def test_cheaper_and_not_worse_is_promoted(evaluation: Make, item: MakeItem) -> None:
    parent = with_tokens(evaluation, item, marks(200), 1_000)
    child = with_tokens(evaluation, item, marks(200), 900)
    assert develop_bar(child, parent, [parent], RULE).accepted
    assert validate_bar(child, parent, [parent], RULE).accepted
    dearer = with_tokens(evaluation, item, marks(200), 901)
    assert not develop_bar(dearer, parent, [parent], RULE).accepted


def test_not_worse_needs_the_lower_bound(evaluation: Make, item: MakeItem) -> None:
    parent = with_tokens(evaluation, item, "10" * 200, 1_000)
    # 40 won and 40 lost: no difference, but it could well be 2 points worse
    child = with_tokens(evaluation, item, ("01" * 40) + ("10" * 160), 500)
    assert develop_bar(child, parent, [parent], RULE).accepted
    tested = validate_bar(child, parent, [parent], RULE)
    assert not tested.accepted and tested.lower_bound is not None and tested.lower_bound < -0.02


def test_small_losses_cannot_add_up(evaluation: Make, item: MakeItem) -> None:
    """Each step loses one point and saves a fifth. Measured against its parent alone every step would pass."""
    accepted = [with_tokens(evaluation, item, marks(240), 10_000)]
    for step in range(1, 12):
        child = with_tokens(evaluation, item, marks(240 - 4 * step), int(10_000 * 0.8**step))
        if not develop_bar(child, accepted[-1], accepted, RULE).accepted:
            break
        accepted.append(child)
    assert len(accepted) == 2  # 1 point below the best passes, 2 points do not
    assert min(e.accuracy for e in accepted) > 0.6 - RULE.epsilon


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.integers(-6, 6), st.sampled_from([0.7, 0.95, 1.1])), max_size=12))
def test_no_chain_of_savings_falls_far_below_the_best(
    evaluation: Make, item: MakeItem, steps: list[tuple[int, float]]
) -> None:
    """A random walk of children of the newest policy: what is accepted is better than its parent or near the best."""
    accepted = [with_tokens(evaluation, item, marks(50, 100), 1_000)]
    for change, factor in steps:
        parent = accepted[-1]
        right = sum(i.correct for i in parent.items) + change
        child = with_tokens(evaluation, item, marks(right, 100), round(parent.tokens_per_question * factor))
        if develop_bar(child, parent, accepted, RULE).accepted:
            best = max(e.accuracy for e in accepted)
            assert child.accuracy >= parent.accuracy + RULE.eta - 1e-9 or child.accuracy > best - RULE.epsilon
            accepted.append(child)
    assert min(e.accuracy for e in accepted) >= 0.5 - RULE.epsilon


def test_saved_tokens_that_moved_into_construction_are_not_saved(evaluation: Make, item: MakeItem) -> None:
    parent = with_tokens(evaluation, item, marks(200), 1_000)
    moved = with_tokens(evaluation, item, marks(200), 500, construction=Cost(prompt_tokens=400 * 501))
    assert not develop_bar(moved, parent, [parent], RULE).accepted
    kept = with_tokens(evaluation, item, marks(200), 500, construction=Cost(prompt_tokens=400 * 499))
    assert develop_bar(kept, parent, [parent], RULE).accepted


def test_faster_counts_in_buckets_only(evaluation: Make, item: MakeItem) -> None:
    def timed(seconds: float) -> Evaluation:
        return evaluation([item(k, k < 200, seconds=seconds) for k in range(400)], reader="some model")

    parent = timed(0.85)
    assert develop_bar(timed(0.5), parent, [parent], RULE).accepted  # 0.8 lies between
    assert not develop_bar(timed(0.79), parent, [parent], RULE).accepted  # across the edge, but by 7 % only
    parent = timed(0.79)
    assert not develop_bar(timed(0.41), parent, [parent], RULE).accepted  # same bucket
    parent = timed(0.09)
    assert not develop_bar(timed(0.0001), parent, [parent], RULE).accepted  # both below what a model call costs


def test_a_dominated_policy_is_not_promoted(evaluation: Make, item: MakeItem) -> None:
    best = with_tokens(evaluation, item, marks(240), 1_000)
    parent = with_tokens(evaluation, item, marks(200), 900)
    child = with_tokens(evaluation, item, marks(230), 1_200)
    assert develop_bar(child, parent, [parent], RULE).accepted
    decision = develop_bar(child, parent, [parent, best], RULE)
    assert not decision.accepted and "at least as accurate" in decision.reason


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(order=st.permutations(range(4)), right=st.integers(45, 56), tokens=st.sampled_from([500, 900, 1_000]))
def test_the_order_of_the_frontier_decides_nothing(
    evaluation: Make, item: MakeItem, order: list[int], right: int, tokens: int
) -> None:
    field = [with_tokens(evaluation, item, m, t) for m, t in [(marks(50, 100), 990), ("01" * 50, 995)]]
    field += [with_tokens(evaluation, item, m, t) for m, t in [("10" * 50, 1_000), (marks(40, 100), 400)]]
    child = with_tokens(evaluation, item, marks(right, 100), tokens)
    for bar in (develop_bar, validate_bar):
        assert bar(child, field[0], [field[k] for k in order], RULE) == bar(child, field[0], field, RULE)


def test_different_ground_is_refused(evaluation: Make) -> None:
    parent = evaluation(marks(200))
    with pytest.raises(NotComparable):
        develop_bar(evaluation(marks(200), runtime_digest="x"), parent, [parent], RULE)


@pytest.mark.parametrize("bad", [{"alpha": 0.0}, {"alpha": 0.5}, {"saving": 0.0}, {"eta": -0.1}, {"epsilon": 1.1}])
def test_a_rule_out_of_range_is_refused(bad: dict[str, float]) -> None:
    with pytest.raises(UserError):
        PromotionRule(**({"eta": 0.02, "alpha": 0.05, "epsilon": 0.02, "saving": 0.1} | bad))
