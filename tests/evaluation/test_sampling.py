"""A sample is fixed by its seed and has every question type in its share."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.data.native import Dataset
from harness.errors import UserError
from harness.evaluation.executor import WHOLE, questions_of
from harness.evaluation.sampling import Sample, sampled


@given(size=st.integers(1, 16), seed=st.integers(0, 1_000))
def test_size_shares_and_order(dataset: Dataset, size: int, seed: int) -> None:
    whole = questions_of(dataset, WHOLE)  # 10 EventRecall, 6 TaskMaster
    chosen = sampled(dataset, WHOLE, Sample(size=size, seed=seed))
    assert chosen == sampled(dataset, WHOLE, Sample(size=size, seed=seed))
    assert len(chosen) == size and [q for q in whole if q in chosen] == list(chosen)
    kinds = Counter(q.type for q in chosen)
    assert abs(kinds["EventRecall"] - size * 10 / 16) < 1 and abs(kinds["TaskMaster"] - size * 6 / 16) < 1


def test_seeds_differ_and_the_whole_split_is_no_sample(dataset: Dataset) -> None:
    draws = {tuple(q.id for q in sampled(dataset, WHOLE, Sample(size=8, seed=seed))) for seed in range(20)}
    assert len(draws) > 15
    assert sampled(dataset, "development", None) == dataset.questions("development")
    assert sampled(dataset, "validation", Sample(size=4, seed=1)) == dataset.questions("validation")


@pytest.mark.parametrize("size", [0, -1, 5])
def test_sizes_that_cannot_be_had(dataset: Dataset, size: int) -> None:
    with pytest.raises(UserError, match="--sample"):
        sampled(dataset, "validation", Sample(size=size, seed=1))
