"""Which files belong together, where pieces stand, and questions about them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.construction.questions import read_questions
from harness.construction.sources import Piece, by_video, pieces
from harness.errors import UserError


def files(folder: Path, *names: str) -> list[Path]:
    for name in names:
        (folder / name).write_text("x")
    return [folder / name for name in names]


def told(found: list[Piece]) -> list[tuple[Any, ...]]:
    names = [[path and path.name for path in (p.clip, p.captions, p.transcript)] for p in found]
    return [(p.name, p.start, *rest) for p, rest in zip(found, names, strict=True)]


def test_files_of_one_name_belong_together(tmp_path: Path) -> None:
    given = files(tmp_path, "a.srt", "a.mp4", "b_DAY2_110000.en.vtt", "b_DAY2_110000.MKV", "c.json", "a.b.txt")
    assert told(pieces(given)) == [
        ("a", None, "a.mp4", "a.b.txt", "a.srt"),
        ("b_DAY2_110000", 126_000.0, "b_DAY2_110000.MKV", None, "b_DAY2_110000.en.vtt"),
        ("c", None, None, "c.json", None),
    ]


def test_one_of_each_kind_belongs_together_whatever_the_names(tmp_path: Path) -> None:
    assert told(pieces(files(tmp_path, "said.srt", "walk.mp4"))) == [("walk", None, "walk.mp4", None, "said.srt")]


def test_a_folder_gives_its_files_in_order(tmp_path: Path) -> None:
    files(tmp_path, "b.mp4", "a.mp4", "notes.pdf")
    assert [p.name for p in pieces([tmp_path])] == ["a", "b"]


def test_videos_and_their_starts() -> None:
    one, two = Piece("a b", None), Piece("c_DAY1_000100", 60.0)
    assert {name: [p.start for p in found] for name, found in by_video([one, two], None, 5.0).items()} == {
        "a-b": [5.0], "c_DAY1_000100": [60.0],
    }  # fmt: skip
    assert list(by_video([Piece("小明", None), Piece("小红", None)], None, None)) == ["video-1", "video-2"]
    assert [p.start for p in by_video([one, Piece("d", None)], "day", 5.0)["day"]] == [5.0, None]
    assert [p.name for p in by_video([two, Piece("z_DAY1_000000", 0.0)], "day", None)["day"]] == [
        "z_DAY1_000000", "c_DAY1_000100",
    ]  # fmt: skip


def test_what_does_not_fit_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no such file"):
        pieces([tmp_path / "none.mp4"])
    with pytest.raises(UserError, match=r"is no video, captions or transcript; known are \.avi"):
        pieces(files(tmp_path, "a.pdf"))
    with pytest.raises(UserError, match="is the transcript of the same piece already"):
        pieces(files(tmp_path, "a.srt", "a.vtt", "a.mp4"))
    with pytest.raises(UserError, match="is given twice"):
        pieces([tmp_path / "a.mp4", tmp_path / "a.mp4"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(UserError, match="holds no file that can be read"):
        pieces([tmp_path / "empty"])
    with pytest.raises(UserError, match="name all like clip_DAY1_11000000, or none"):
        by_video([Piece("a", None), Piece("c_DAY1_000100", 60.0)], "day", None)
    with pytest.raises(UserError, match="--start: the names of the files say"):
        by_video([Piece("c_DAY1_000100", 60.0)], None, 5.0)
    with pytest.raises(UserError, match="--video"):
        by_video([Piece("a", None)], "../day", None)


GOOD = {"question": "Where is the key?", "choices": ["shelf", "table", "car"], "answer": "B", "time": "01:30"}


def ask(tmp_path: Path, *items: Any, beginnings: dict[str, float] | None = None) -> tuple[Any, list[str]]:
    (tmp_path / "q.json").write_text(json.dumps(items))
    notes: list[str] = []
    return read_questions(tmp_path / "q.json", beginnings or {"day": 100.0}, None, notes), notes


def test_questions(tmp_path: Path) -> None:
    splits, notes = ask(
        tmp_path,
        {**GOOD, "oracle": [["00:10", 20], ["DAY1T00:00:05", "DAY1T00:00:06"]]},
        {**GOOD, "id": "x", "type": "EntityLog", "split": "development", "choices": {"B": "yes", "A": " Yes"}},
        {**GOOD, "choices": list("abcde"), "answer": "E", "time": "DAY1T00:02:00"},
    )
    question, gold = splits["test"][0]
    assert (question.id, question.video, question.type, question.time) == ("q00001", "day", "Question", 190.0)
    assert dict(question.choices) == {"A": "shelf", "B": "table", "C": "car"}
    assert gold.answer == "B" and gold.oracle == ((110.0, 120.0), (5.0, 6.0))
    assert dict(splits["development"][0][0].choices) == {"A": "Yes", "B": "yes"}
    assert splits["test"][1][0].time == 120.0 and len(splits["test"][1][0].choices) == 5
    assert notes == [f"{tmp_path}/q.json: question 2: two of the choices are equal; kept as they are"]


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"answer": "D"}, "the answer D is not among the choices"),
        ({"answer": "b"}, "answer"),
        ({"choices": ["one"]}, "1 choices; give from 2 to 10"),
        ({"choices": list("abcdefghijk")}, "11 choices"),
        ({"time": "noon"}, "a time is none"),
        ({"video": "night"}, "video night; the data has day"),
        ({"anwser": "B"}, "anwser"),
        ({"question": 5}, "question"),
        ({"oracle": [["00:10"]]}, "oracle"),
    ],
)
def test_questions_that_cannot_be_used_are_one_line(tmp_path: Path, change: Any, says: str) -> None:
    with pytest.raises(UserError) as caught:
        ask(tmp_path, GOOD, {**GOOD, **change})
    assert says in str(caught.value) and "q.json: question 2" in str(caught.value) and "\n" not in str(caught.value)


def test_questions_of_several_videos_name_theirs(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"question 1: video is missing; the data has a, b"):
        ask(tmp_path, GOOD, beginnings={"a": 0.0, "b": 0.0})
    with pytest.raises(UserError, match="question 2: id x is used twice"):
        ask(tmp_path, {**GOOD, "id": "x"}, {**GOOD, "id": "x"})
    with pytest.raises(UserError, match="holds no question"):
        ask(tmp_path)
