"""Evaluations built by hand: what each test varies is said in the test."""

from collections.abc import Callable, Sequence

import pytest

from harness.evaluation.outcomes import OFFLINE_READER, Cost, Evaluation, Item
from sandbox.interface import Verdict


def make_item(number: int, correct: bool, **changes: object) -> Item:
    values: dict[str, object] = {
        "question": f"q{number:04d}",
        "video": "v1",
        "type": "EventRecall",
        "verdict": Verdict.OK,
        "choice": "A" if correct else "B",
        "correct": correct,
        "route": "reader",
        "evidence": (0,),
        "hit": None,
        "answering": Cost(requests=1, prompt_tokens=100),
    }
    return Item.model_validate(values | changes)


def make_evaluation(items: Sequence[Item] | str, **changes: object) -> Evaluation:
    """``items`` may be a string of 1 (right) and 0 (wrong)."""
    if isinstance(items, str):
        items = [make_item(number, mark == "1") for number, mark in enumerate(items)]
    values: dict[str, object] = {
        "policy": "p" * 64,
        "split": "development",
        "data": "d" * 64,
        "runtime_digest": "r" * 64,
        "sandbox": "bubblewrap",
        "reader": OFFLINE_READER,
        "items": tuple(items),
    }
    return Evaluation.model_validate(values | changes)


@pytest.fixture
def item() -> Callable[..., Item]:
    return make_item


@pytest.fixture
def evaluation() -> Callable[..., Evaluation]:
    return make_evaluation
