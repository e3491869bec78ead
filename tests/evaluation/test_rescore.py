"""Saved outcomes are scored again from the data's gold, and only with the data that they were measured on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.native import Dataset
from harness.errors import UserError
from harness.evaluation.executor import WHOLE, gold_of, questions_of
from harness.evaluation.metrics import pair
from harness.evaluation.outcomes import Evaluation, Item
from harness.evaluation.report import figures
from harness.evaluation.rescore import pool, read, rescore, save
from harness.evaluation.sampling import Sample, sampled
from sandbox.interface import Verdict

MakeItem = Callable[..., Item]
Make = Callable[..., Evaluation]


@pytest.fixture
def measured(dataset: Dataset, item: MakeItem, evaluation: Make) -> Callable[..., Evaluation]:
    """An evaluation of the tiny data: A everywhere, with the first window as evidence; marked right by hand."""

    def make(split: str = "development", **changes: object) -> Evaluation:
        gold = gold_of(dataset, split)
        items = [
            item(0, gold[q.id].answer == "A", question=q.id, video=q.video, type=q.type, choice="A", hit=False)
            for q in questions_of(dataset, split)
        ]
        return evaluation(items, split=split, data=dataset.digest, **changes)

    return make


@pytest.mark.parametrize("split", ["development", "validation", WHOLE])
def test_figures_come_out_the_same(
    split: str, dataset: Dataset, measured: Callable[..., Evaluation], tmp_path: Path
) -> None:
    found = {"one": measured(split), "other": measured(split, reader="m", observe_seconds=2.5)}
    save(tmp_path / "o.json", dataset.name, found)
    again, changed = rescore(read(tmp_path / "o.json"), dataset)
    assert changed == 0
    assert {name: figures(e) for name, e in again.items()} == {name: figures(e) for name, e in found.items()}
    assert len(again["one"].items) == {"development": 12, "validation": 4, WHOLE: 16}[split]
    assert list(tmp_path.iterdir()) == [tmp_path / "o.json"]


def test_a_sample_is_rescored_as_the_same_sample(
    dataset: Dataset, measured: Callable[..., Evaluation], tmp_path: Path
) -> None:
    sample, whole = Sample(size=5, seed=3), measured()
    wanted = {question.id for question in sampled(dataset, "development", sample)}
    part = whole.model_copy(update={"items": tuple(item for item in whole.items if item.question in wanted)})
    save(tmp_path / "o.json", dataset.name, {"x": part}, sample)
    assert rescore(read(tmp_path / "o.json"), dataset)[0]["x"] == part
    save(tmp_path / "o.json", dataset.name, {"x": part}, Sample(size=5, seed=4))
    with pytest.raises(UserError, match="5 questions"):
        rescore(read(tmp_path / "o.json"), dataset)


def test_marks_come_from_the_gold_and_not_from_the_file(
    dataset: Dataset, measured: Callable[..., Evaluation], tmp_path: Path
) -> None:
    gold = gold_of(dataset, "development")
    honest = measured()
    flattered = [i.model_copy(update={"correct": True, "hit": True, "type": "Easy"}) for i in honest.items]
    save(tmp_path / "o.json", dataset.name, {"x": honest.model_copy(update={"items": tuple(flattered)})})
    again, changed = rescore(read(tmp_path / "o.json"), dataset)
    assert again["x"] == honest
    assert changed == 12  # no evidence hits, though some answers are right
    assert sum(i.correct for i in again["x"].items) == sum(g.answer == "A" for g in gold.values()) == 3
    broken = [i.model_copy(update={"choice": "Z"}) for i in honest.items[:6]]
    failed = [i.model_copy(update={"verdict": Verdict.CRASH}) for i in honest.items[6:]]
    save(tmp_path / "o.json", dataset.name, {"x": honest.model_copy(update={"items": (*broken, *failed)})})
    assert rescore(read(tmp_path / "o.json"), dataset)[0]["x"].accuracy == 0


def test_other_data_and_other_questions_are_refused(
    dataset: Dataset, measured: Callable[..., Evaluation], tmp_path: Path
) -> None:
    honest = measured()
    twice = (honest.items[0], *honest.items[:-1])
    for changes, word in (
        ({"data": "f" * 64}, "ffffffffffff"),
        ({"items": honest.items[1:]}, "12 questions"),
        ({"items": twice}, "12 questions"),
        ({"split": "test"}, "no test split"),
    ):
        save(tmp_path / "o.json", dataset.name, {"x": honest.model_copy(update=changes)})
        with pytest.raises(UserError, match=word):
            rescore(read(tmp_path / "o.json"), dataset)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"format": "lvmh-outcomes/2", "data_name": "x", "evaluations": {}}',
        b"\xff\xfe",
        b'{"a": NaN}',
    ],
)
def test_what_is_no_file_of_outcomes(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "o.json").write_bytes(content)
    with pytest.raises(UserError, match=r"o\.json: .*--out") as error:
        read(tmp_path / "o.json")
    assert "\n" not in str(error.value)


def test_a_file_that_is_not_there_or_cannot_be_written(
    dataset: Dataset, measured: Callable[..., Evaluation], tmp_path: Path
) -> None:
    for path in (tmp_path / "nowhere.json", tmp_path):
        with pytest.raises(UserError, match="--out"):
            read(path)
    with pytest.raises(UserError, match="cannot be written"):
        save(tmp_path / "nowhere" / "o.json", dataset.name, {"x": measured()})


def test_no_text_of_the_data_is_saved(dataset: Dataset, measured: Callable[..., Evaluation], tmp_path: Path) -> None:
    save(tmp_path / "o.json", dataset.name, {"x": measured()})
    text = (tmp_path / "o.json").read_text()
    assert "thing" not in text and "What was used" not in text
    assert json.loads(text)["format"] == "lvmh-outcomes/1"


def test_several_data_sets_are_pooled_question_by_question(evaluation: Make) -> None:
    one = {"x": evaluation("1100", data="a" * 64), "y": evaluation("1010", data="a" * 64)}
    two = {"x": evaluation("1110", data="b" * 64), "y": evaluation("0000", data="b" * 64)}
    assert pool([one]) == one
    both = pool([one, two])
    assert both["x"].accuracy == 5 / 8 and both["y"].accuracy == 2 / 8
    pairs = pair(both["x"], both["y"])  # the same question of the two data sets is two questions
    assert (pairs.both, pairs.candidate_only, pairs.other_only, pairs.neither) == (1, 4, 1, 2)
    for other, word in (
        ({"x": two["x"]}, "same policies"),
        ({**two, "y": one["y"]}, "same data"),
        ({**two, "y": evaluation("0000", data="b" * 64, reader="m")}, "another reader"),
        ({**two, "y": evaluation("0000", data="b" * 64, policy="q" * 64)}, "another policy"),
    ):
        with pytest.raises(UserError, match=word):
            pool([one, other])
