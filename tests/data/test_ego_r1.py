"""Import of Ego-R1 Bench: small files in the published format, with every slip that its loaders report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.data.check import check
from harness.data.ego_r1 import import_ego_r1
from harness.data.native import Dataset, load
from harness.errors import UserError

DAY = 86_400
NOON = 12 * 3_600


def ask(id_: str, **fields: Any) -> dict[str, Any]:
    """A question with EgoLifeQA's 24 keys."""
    return {
        "ID": id_,
        "query_time": {"date": "DAY1", "time": "12010000"},
        "type": "EntityLog",
        "type_chinese": "canary",
        "need_audio": False,
        "need_name": True,
        "last_time": False,
        "trigger": "canary",
        "trigger_chinese": "canary",
        "question": f"Who used it {id_}?",
        "question_chinese": "canary",
        **{f"choice_{letter}": name for letter, name in zip("abcd", ("Tasha", "Alice", "Shure", "Lucia"), strict=True)},
        **{f"choice_{letter}_chinese": "canary" for letter in "abcd"},
        "answer": "B",
        "target_time": {"date": "DAY1", "time": "12000500"},
        "keywords": "canary",
        "reason": "canary",
        "reason_chinese": "canary",
        **fields,
    }


def captions(folder: Path, wearer: str, days: int = 1) -> None:
    cap = folder / "EgoLifeCap" / wearer
    cap.mkdir(parents=True)
    told = [
        {"start_time": start, "end_time": end, "text": f"I wait {start}.", "date": f"DAY{day}", "video_path": "x.mp4"}
        for day in range(1, days + 1)
        for start, end in (("12000000", "12003000"), ("12003000", "12010000"))
    ]
    (cap / f"{wearer}_30sec.json").write_text(json.dumps(told))


def bench(folder: Path, questions: dict[str, list[dict[str, Any]]], days: int = 1) -> Path:
    """``questions`` by "part/wearer"; captions for every wearer."""
    for name, rows in questions.items():
        part, wearer = name.split("/")
        file = folder / "Ego-R1-Bench" / f"{part}-benchmark" / f"{wearer}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(rows, ensure_ascii=False), "utf-8")
        if not (folder / "EgoLifeCap" / wearer).exists():
            captions(folder, wearer, days)
    return folder


def one(tmp_path: Path, days: int = 1, **fields: Any) -> tuple[Dataset, tuple[str, ...]]:
    source = bench(tmp_path / "source", {"manual/A1_JAKE": [ask("1", **fields)]}, days)
    written = import_ego_r1(source, tmp_path / "out")
    return load(tmp_path / "out"), written.notes


def test_ids_are_unique_inside_one_file_only(tmp_path: Path) -> None:
    source = bench(
        tmp_path / "source",
        {name: [ask("1"), ask("2")] for name in ("manual/A1_JAKE", "gemini/A1_JAKE", "manual/A2_ALICE")},
    )
    import_ego_r1(source, tmp_path / "out")
    assert {q.id for q in load(tmp_path / "out").questions("development")} == {
        "A1_JAKE-manual-1", "A1_JAKE-manual-2", "A1_JAKE-gemini-1", "A1_JAKE-gemini-2", "A2_ALICE-manual-1",
        "A2_ALICE-manual-2",
    }  # fmt: skip
    assert check(tmp_path / "out") == []


@pytest.mark.parametrize(
    ("query", "seconds"),
    [
        ({"date": "DAY1", "time": "12041900-12003000"}, NOON + 259),  # the later end, though it stands first
        ({"date": "DAY1", "time": "12003000-12041910"}, NOON + 259.5),
        ({"date": "day1", "time": "12041900"}, NOON + 259),
        ({"date": "DAY1", "time": "112041900"}, NOON + 259),  # nine digits: the day stands before the time
        ({"date": "DAY1", "time": "212041900"}, 21 * 3_600 + 20 * 60 + 41 + 90 / 20),  # the first eight are a time
        ({"date": "DAY1", "time": "912041900"}, NOON + 259),  # only the last eight are a time
    ],
)
def test_query_times(tmp_path: Path, query: dict[str, str], seconds: float) -> None:
    data, notes = one(tmp_path, query_time=query)
    assert data.questions("development")[0].time == seconds
    assert any("nine digits" in note for note in notes) == (len(query["time"]) == 9)


@pytest.mark.parametrize(
    ("target", "oracle"),
    [
        ({"date": "DAY1", "time": "12000500"}, [(5, 5)]),
        ({"date": "DAY1", "time": "12000500-12003000"}, [(5, 30)]),
        ({"date": "DAY1", "time": "12003000-12000500"}, [(5, 30)]),
        ({"date": "DAY1", "time_list": ["12000500", "12001000-12001500"]}, [(5, 5), (10, 15)]),
        ({"date": "DAY1", "time": "112000500"}, [(5, 5)]),
        ({"date": "day1", "time": "12000500DAY1_12010000"}, [(5, 5), (60, 60)]),
        ({"date": "DAY1", "time": "112000500DAY1_12010000"}, [(5, 5), (60, 60)]),
        ({"date": "Day1", "time": "12000500day1_12010000DAY1_12010500"}, [(5, 5), (60, 60), (65, 65)]),
        ({"date": "DAY1", "time_list": ["12000500DAY1_12010000"]}, [(5, 5), (60, 60)]),
    ],
)
def test_target_times(tmp_path: Path, target: dict[str, Any], oracle: list[tuple[float, float]]) -> None:
    data, _ = one(tmp_path, target_time=target)
    (gold,) = data.gold("development").values()
    assert list(gold.oracle) == [(NOON + start, NOON + end) for start, end in oracle]


def test_a_lower_case_day(tmp_path: Path) -> None:
    data, _ = one(tmp_path, days=6, query_time={"date": "day6", "time": "12100000"})
    assert data.questions("test")[0].time == 5 * DAY + NOON + 600


def test_an_empty_choice_is_left_out_and_gold_moves_with_its_text(tmp_path: Path) -> None:
    for number, (empty, answer, expected) in enumerate(
        [("choice_d", "B", ("B", {"A": "Tasha", "B": "Alice", "C": "Shure"})),
         ("choice_b", "D", ("C", {"A": "Tasha", "B": "Shure", "C": "Lucia"}))]
    ):  # fmt: skip
        for value in ("", "  ", None):
            folder = tmp_path / f"{number}{value}"
            data, notes = one(folder, **{empty: value, "answer": answer})
            (question,), (gold,) = data.questions("development"), data.gold("development").values()
            assert (gold.answer, dict(question.choices)) == expected
            assert any("an empty choice is left out" in note for note in notes)


def test_a_question_whose_answer_is_empty_is_left_out(tmp_path: Path) -> None:
    source = bench(tmp_path / "source", {"manual/A1_JAKE": [ask("1", choice_b=""), ask("2")]})
    written = import_ego_r1(source, tmp_path / "out")
    assert [q.id for q in load(tmp_path / "out").questions("development")] == ["A1_JAKE-manual-2"]
    assert any("question 1 is left out" in note for note in written.notes)


def test_wearers_are_dealt_whole_and_the_same_way_every_time(tmp_path: Path) -> None:
    people = ["A1_JAKE", "A2_ALICE", "A3_TASHA", "A4_LUCIA", "A5_KATRINA", "A6_SHURE"]
    rows = [ask(str(number)) for number in range(25)]
    source = bench(tmp_path / "source", {f"{part}/{who}": rows for part in ("manual", "gemini") for who in people})
    digests = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        import_ego_r1(source, tmp_path / name, seed=seed)
        data = load(tmp_path / name)
        held = [{q.video for q in data.questions(split)} for split in data.splits]
        assert [len(part) for part in held] == [4, 1, 1] and len(set.union(*held)) == 6
        assert [len(data.questions(split)) for split in data.splits] == [200, 50, 50]
        digests.append(data.digest)
    assert digests[0] == digests[1] != digests[2]


def test_days_are_dealt_where_few_wearers_have_captions(tmp_path: Path) -> None:
    rows = [ask(str(day), query_time={"date": f"DAY{day}", "time": "12100000"}) for day in range(1, 8)]
    source = bench(tmp_path / "source", {"manual/A1_JAKE": rows}, days=6)
    (source / "Ego-R1-Bench" / "manual-benchmark" / "A6_SHURE.json").write_text(json.dumps(rows))
    written = import_ego_r1(source, tmp_path / "out")
    data = load(tmp_path / "out")
    assert [[q.id[-1] for q in data.questions(split)] for split in data.splits] == [list("123"), list("45"), ["6"]]
    assert any("no captions of A6_SHURE" in note for note in written.notes)
    assert any("1 questions of days without captions" in note for note in written.notes)


def test_what_must_not_be_seen_is_nowhere_but_in_gold(tmp_path: Path) -> None:
    data, _ = one(tmp_path, target_time={"date": "DAY1", "time": "12001700"})
    for file in (file for file in data.path.rglob("*") if file.is_file()):
        content = file.read_bytes()
        assert b"canary" not in content and b"trigger" not in content, file
        if file.parent.name != "gold":
            assert not any(word in content for word in (b"answer", b"oracle", b"12001700", b"43217")), file


def test_the_benchmark_s_own_logs_serve_as_captions(tmp_path: Path) -> None:
    """``A1_JAKE_10min.json``: numbers for day and times, the text under another name."""
    source = bench(tmp_path / "source", {"manual/A1_JAKE": [ask("1")]})
    logs = tmp_path / "logs"
    logs.mkdir()
    told = [
        {"date": 1, "start_time": 9493300, "end_time": 9594200, "generated_text": "I wait."},
        {"date": 1, "start_time": 12000000, "end_time": 12090000, "generated_text": "I eat."},
    ]
    (logs / "A1_JAKE_10min.json").write_text(json.dumps(told))
    import_ego_r1(source, tmp_path / "out", captions=logs)
    windows = load(tmp_path / "out").videos["A1_JAKE"].windows
    assert [(w.start, w.end, w.captions) for w in windows] == [
        (35_373, 35_982, ("I wait.",)), (NOON, NOON + 540, ("I eat.",)),
    ]  # fmt: skip


def test_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"manual-benchmark/A1_JAKE\.json"):
        import_ego_r1(tmp_path, tmp_path / "out")
    source = bench(tmp_path / "source", {"manual/A1_JAKE": [ask("1")]})
    with pytest.raises(UserError, match=r"give --captions DIR with EgoLife's EgoLifeCap"):
        import_ego_r1(source, tmp_path / "out", captions=source / "Ego-R1-Bench")
    with pytest.raises(UserError, match="not a folder"):
        import_ego_r1(source, tmp_path / "out", captions=tmp_path / "none")
    file = source / "Ego-R1-Bench" / "manual-benchmark" / "A1_JAKE.json"
    twice = json.dumps([ask("1"), ask("1")])
    for text in ("[{", "{}", twice, json.dumps([ask("1", query_time={"date": "DAY1", "time": "noon"})])):
        file.write_text(text)
        with pytest.raises(UserError) as caught:
            import_ego_r1(source, tmp_path / "out")
        assert "A1_JAKE.json" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()
