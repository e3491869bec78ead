"""What the audit of a result rejects, what it only notes, and what it lets pass in silence."""

from collections.abc import Callable

import pytest

from harness.evaluation.metrics import NotComparable
from harness.evaluation.outcomes import Cost, Evaluation, Item
from harness.evaluation.result_audit import check
from harness.gate.interface import Decision
from sandbox.interface import Verdict

Make = Callable[..., Evaluation]
MakeItem = Callable[..., Item]


def rules(candidate: Evaluation, parent: Evaluation) -> list[str]:
    return [finding.rule for finding in check(candidate, parent).findings]


def test_an_honest_gain_passes_in_silence(evaluation: Make) -> None:
    verdict = check(evaluation("1" * 60 + "0" * 60), evaluation("1" * 50 + "0" * 70))
    assert verdict.decision is Decision.APPROVE and not verdict.findings and verdict.reason == ""


def test_all_right_is_rejected_from_a_hundred_questions(evaluation: Make) -> None:
    verdict = check(evaluation("1" * 100), evaluation("1" * 90 + "0" * 10))
    assert verdict.decision is Decision.REJECT and "leak" in verdict.reason
    assert verdict.findings[0].rule == "A01"
    small = check(evaluation("1" * 99), evaluation("1" * 90 + "0" * 9))
    assert small.decision is Decision.APPROVE and small.findings[0].rule == "A02"


@pytest.mark.parametrize(
    "change",
    [
        {"answering": Cost(requests=1, prompt_tokens=-1)},
        {"seconds": -0.1},
        {"seconds": float("nan")},
        {"retrieval": Cost(seconds=float("inf"))},
        {"verdict": Verdict.CRASH},
        {"choice": None},
    ],
)
def test_figures_that_cannot_be_true_are_rejected(evaluation: Make, item: MakeItem, change: dict[str, object]) -> None:
    parent = evaluation([item(0, True), item(1, False)])
    verdict = check(evaluation([item(0, True, **change), item(1, False)]), parent)
    assert verdict.decision is Decision.REJECT and verdict.findings[0].rule == "A01"


def test_a_jump_is_noted_not_rejected(evaluation: Make) -> None:
    verdict = check(evaluation("1" * 80 + "0" * 20), evaluation("1" * 40 + "0" * 60))
    assert verdict.decision is Decision.APPROVE
    assert [f.rule for f in verdict.findings] == ["A02"] and "40.0 points" in verdict.reason


@pytest.mark.parametrize(
    ("field", "word"),
    [("route", "the route 'corner'"), ("type", "the question type 'corner'"), ("video", "one video")],
)
def test_a_gain_in_one_corner_is_noted(evaluation: Make, item: MakeItem, field: str, word: str) -> None:
    def made(corner_right: bool) -> Evaluation:
        spread = {"type": ["T1", "T2"], "video": ["v1", "v2"]}
        items = []
        for k in range(100):
            changes: dict[str, object] = {name: values[k % 2] for name, values in spread.items()}
            changes[field] = "corner" if k < 20 else changes.get(field, "reader")
            items.append(item(k, corner_right if k < 20 else k % 3 == 0, **changes))
        return evaluation(items)

    verdict = check(made(True), made(False))
    assert verdict.decision is Decision.APPROVE
    assert [f.rule for f in verdict.findings] == ["A03"] and f"lie in {word} (20 questions)" in verdict.reason


def test_the_main_route_may_hold_the_gain(evaluation: Make, item: MakeItem) -> None:
    def made(right: int) -> Evaluation:
        return evaluation([item(k, k < right, route="reader" if k < 80 else "direct") for k in range(100)])

    assert rules(made(60), made(40)) == []


def test_tokens_moved_into_construction_are_noted(evaluation: Make, item: MakeItem) -> None:
    def made(tokens: int, built: int) -> Evaluation:
        items = [item(k, k < 50, answering=Cost(requests=1, prompt_tokens=tokens)) for k in range(100)]
        return evaluation(items, construction=Cost(prompt_tokens=built))

    assert rules(made(500, 100 * 500), made(1_000, 0)) == ["A04"]
    assert rules(made(500, 100 * 499), made(1_000, 0)) == []
    assert rules(made(1_000, 100 * 5_000), made(1_000, 0)) == []  # nothing was saved: the promotion rule sees it


def test_many_failures_are_noted(evaluation: Make, item: MakeItem) -> None:
    def made(failed: int) -> Evaluation:
        crash = {"verdict": Verdict.CRASH, "choice": None, "route": ""}
        return evaluation([item(k, False, **crash) if k < failed else item(k, k % 2 == 0) for k in range(100)])

    assert rules(made(11), made(0)) == ["A05"]
    assert rules(made(10), made(0)) == []


@pytest.mark.parametrize(("unread", "broken"), [(11, []), (50, []), (51, ["A06"]), (100, ["A06"])])
def test_a_policy_that_rebuilds_the_reader_is_rejected(
    evaluation: Make, item: MakeItem, unread: int, broken: list[str]
) -> None:
    """SEEM's specialists answer 6 to 11 % without a Read; frames looked at are a Read of the fixed model too."""

    def made(free: int) -> Evaluation:
        answering = [Cost() if k < free else Cost(requests=1, prompt_tokens=100) for k in range(100)]
        return evaluation([item(k, k % 2 == 0, answering=answering[k]) for k in range(100)])

    verdict = check(made(unread), made(0))
    assert [f.rule for f in verdict.findings] == broken
    assert (verdict.decision is Decision.REJECT) == bool(broken)
    verified = evaluation([item(k, k % 2 == 0, answering=Cost(), verification=Cost(requests=1)) for k in range(100)])
    assert rules(verified, made(0)) == []


def test_questions_left_unanswered_are_not_answered_without_a_read(evaluation: Make, item: MakeItem) -> None:
    silent = evaluation([item(k, False, choice=None, answering=Cost()) for k in range(100)])
    assert rules(silent, evaluation("10" * 50)) == []


def test_other_questions_are_refused(evaluation: Make) -> None:
    with pytest.raises(NotComparable):
        check(evaluation("10"), evaluation("101"))


def test_a_route_name_cannot_forge_the_log(evaluation: Make, item: MakeItem) -> None:
    route = "x\n\x1b[2Japprove"
    parent = evaluation([item(k, False) for k in range(100)])
    verdict = check(evaluation([item(k, k < 20, route=route if k < 20 else "r") for k in range(100)]), parent)
    assert "A03" in [f.rule for f in verdict.findings]
    assert verdict.reason.isprintable()
