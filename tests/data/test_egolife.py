"""Import of EgoLifeQA: every trap in small, and the real files where they are."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.data.check import check
from harness.data.egolife import TargetTime, import_egolife, moments
from harness.data.egolife_text import clean, clock, digits, utterance
from harness.data.native import DataError, Dataset, load
from policies.contract import Utterance

DAY = 86_400


def ask(id_: str, **fields: Any) -> dict[str, Any]:
    return {
        "ID": id_,
        "query_time": {"date": "DAY1", "time": "11210217"},
        "type": "EntityLog",
        "type_chinese": "canary-type",
        "need_audio": False,
        "need_name": True,
        "last_time": False,
        "trigger": "canary-trigger",
        "trigger_chinese": "canary-trigger-chinese",
        "question": f"Who used the screwdriver {id_}?",
        "question_chinese": "canary-question-chinese",
        **{f"choice_{letter}": name for letter, name in zip("abcd", ("Tasha", "Alice", "Shure", "Lucia"), strict=True)},
        **{f"choice_{letter}_chinese": "canary-choice" for letter in "abcd"},
        "answer": "B",
        "target_time": {"date": "DAY1", "time": "11094308"},
        "keywords": "canary-keywords",
        "reason": "canary-reason",
        "reason_chinese": "canary-reason-chinese",
        **fields,
    }


def line(start: int, end: int, text: str, kind: str = "caption") -> dict[str, Any]:
    return {"start": start, "end": end, "text": text, "type": kind}


CLIPS = [
    {
        "video_file": "DAY1_A1_JAKE_11094208.mp4",
        "data": [
            line(110943, 110944, "I'm holding my phone."),
            line(110943, 110946, "Jake: Okay", "transcript"),
            line(110950, 110959, "其他人： 好啊\nline\ttwo\x1b[2J", "transcript"),
            line(110951, 110952, "哈哈哈", "transcript"),
            line(110952, 110953, "Shure，开始了。"),
        ],
    },
    {"video_file": "DAY1_A1_JAKE_11100000.mp4", "data": [line(111001, 111045, "A line that runs over.")]},
    {"video_file": "DAY1_A1_JAKE_11104510.mp4", "data": [line(111046, 111047, "I stop.")]},
]
NEXT_DAY = [
    {"video_file": "DAY2_A1_JAKE_09493300.mp4", "data": [line(94933, 94940, "I get up.")]},
    {"video_file": "DAY2_A1_JAKE_23595000.mp4", "data": [line(235955, 5, "I sleep."), line(120000, 120001, "A slip.")]},
]


def source(folder: Path, questions: list[dict[str, Any]], sync: bool = True) -> Path:
    (folder / "EgoLifeQA").mkdir(parents=True)
    (folder / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json").write_text(json.dumps(questions), "utf-8")
    if sync:
        (folder / "EgoLifeCap" / "Sync").mkdir(parents=True)
        for name, clips in (("DAY1_11000000", CLIPS), ("DAY2_09000000", NEXT_DAY)):
            text = json.dumps(clips, ensure_ascii=False)
            (folder / "EgoLifeCap" / "Sync" / f"A1_JAKE_{name}.json").write_text(text, "utf-8")
    return folder


def imported(tmp_path: Path, questions: list[dict[str, Any]]) -> Dataset:
    import_egolife(source(tmp_path / "source", questions), tmp_path / "out")
    return load(tmp_path / "out")


def test_times_are_seconds_on_one_axis() -> None:
    assert clock("11094208") == 11 * 3600 + 9 * 60 + 42 + 8 / 20
    assert digits(94933) == 9 * 3600 + 49 * 60 + 33
    assert digits(5) == 5


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ({"date": "DAY1", "time": "11152408"}, [40524.4]),
        ({"date": "DAY1", "time_list": ["13394908", "13512718"]}, [49189.4, 49887.9]),
        ({"date": "DAY1", "time": "11153417DAY1_11181201"}, [40534.85, 40692.05]),
        (
            {"date": "DAY1", "time": "11360904DAY2_10453312DAY3_11235811"},
            [41769.2, DAY + 38733.6, 2 * DAY + 41038.55],
        ),
        ({"date": "Day1", "time": "17160718"}, [62167.9]),
    ],
)
def test_the_five_shapes_of_target_time(target: dict[str, Any], expected: list[float]) -> None:
    assert list(moments(TargetTime.model_validate(target))) == pytest.approx(expected)


def test_lines_keep_their_text_and_lose_their_control_characters() -> None:
    assert clean(" a\n\nb\x00\x1b[31m c\u0085") == "a b [31m c"
    assert utterance("Jake: Hello: you") == Utterance("Jake", "Hello: you")
    assert utterance("其他人：好啊") == Utterance("其他人", "好啊")
    assert utterance("(Lyrics) I love them all") == Utterance("", "(Lyrics) I love them all")
    assert utterance("At 19:30 we go") == Utterance("", "At 19:30 we go")


def test_windows_end_with_the_clip_and_never_before_their_last_line(tmp_path: Path) -> None:
    data = imported(tmp_path, [ask("1")])
    windows = data.videos["A1_JAKE"].windows
    assert [(w.start, w.end) for w in windows] == [
        (40182.4, 40200.0),
        (40200.0, 40245.0),
        (40245.5, 40275.5),
        (DAY + 35373.0, DAY + 35403.0),
        (DAY + 86390.0, DAY + 86420.0),
    ]
    assert windows[0].captions == ("I'm holding my phone.", "Shure，开始了。")
    assert windows[0].transcript == (
        Utterance("Jake", "Okay"),
        Utterance("其他人", "好啊 line two [2J"),
        Utterance("", "哈哈哈"),
    )
    assert windows[4].captions == ("I sleep.",)
    assert not any(w.frames for w in windows)


def test_splits_go_by_query_day_and_days_without_captions_are_left_out(tmp_path: Path) -> None:
    days = [("1", "DAY1"), ("2", "day2"), ("3", "DAY3"), ("4", "DAY4"), ("7", "DAY7")]
    questions = [ask(id_, query_time={"date": day, "time": "11210217"}) for id_, day in days]
    written = import_egolife(source(tmp_path / "source", questions), tmp_path / "out")
    data = load(tmp_path / "out")
    assert data.splits == ("development",)
    assert [q.id for q in data.questions("development")] == ["A1_JAKE-1", "A1_JAKE-2"]
    assert any("3 questions of days without captions" in note for note in written.notes)
    assert any("a line at 120000 to 120001 is left out" in note for note in written.notes)


def test_later_days_are_validation_and_test(tmp_path: Path) -> None:
    folder = source(tmp_path / "source", [])
    questions = []
    for day in range(1, 8):
        clips = [{"video_file": f"DAY{day}_A1_JAKE_10000000.mp4", "data": [line(100001, 100002, "I wait.")]}]
        (folder / "EgoLifeCap" / "Sync" / f"A1_JAKE_DAY{day}_10000000.json").write_text(json.dumps(clips))
        questions.append(ask(str(day), query_time={"date": f"DAY{day}", "time": "11210217"}))
    (folder / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json").write_text(json.dumps(questions))
    import_egolife(folder, tmp_path / "out")
    data = load(tmp_path / "out")
    assert [[q.id[-1] for q in data.questions(split)] for split in data.splits] == [list("123"), list("45"), list("67")]


def test_what_must_not_be_seen_is_nowhere_but_in_gold(tmp_path: Path) -> None:
    questions = [ask("1", answer="C"), ask("2", target_time={"date": "DAY1", "time_list": ["11094308", "11094313"]})]
    data = imported(tmp_path, questions)
    for file in sorted(data.path.rglob("*")):
        if file.is_file():
            content = file.read_bytes()
            assert b"canary" not in content, file
            if file.parent.name != "gold":
                for hidden in (b"answer", b"oracle", b"target", b"11094308", b"40183.4", b"need_"):
                    assert hidden not in content, (file, hidden)
    assert dict(data.gold("development"))["A1_JAKE-1"].answer == "C"
    assert data.gold("development")["A1_JAKE-1"].oracle == ((40183.4, 40183.4),)


def test_identical_choices_are_kept_and_noted(tmp_path: Path) -> None:
    written = import_egolife(source(tmp_path / "source", [ask("7", choice_c="alice")]), tmp_path / "out")
    assert [note for note in written.notes if "question 7 has identical choices" in note]
    assert load(tmp_path / "out").questions("development")[0].choices["C"] == "alice"


def test_30_s_captions_and_srt_serve_where_sync_is_missing(tmp_path: Path) -> None:
    folder = source(
        tmp_path / "source", [ask("1"), ask("2", query_time={"date": "DAY2", "time": "11210217"})], sync=False
    )
    captions = [
        {
            "start_time": "11094300",
            "end_time": "11095800",
            "text": "I face the table.",
            "date": "DAY1",
            "video_path": "x",
        },
        {"start_time": "11100000", "end_time": "11103000", "text": "I get up.", "date": "DAY1", "video_path": "x"},
    ]
    cap = folder / "EgoLifeCap"
    (cap / "A1_JAKE").mkdir(parents=True)
    (cap / "A1_JAKE" / "A1_JAKE_30sec.json").write_text(json.dumps(captions))
    (cap / "Transcript" / "A1_JAKE" / "DAY1").mkdir(parents=True)
    (cap / "Transcript" / "A1_JAKE" / "DAY1" / "A1_JAKE_DAY1_11000000.srt").write_text(
        "\ufeff1\r\n00:09:47,100 --> 00:09:50,766\r\nJake: 好\r\nJake: Okay.\r\n\r\n"
        "2\r\n00:09:59,0 --> 00:10:01,000\r\nShure: Yes.\r\n\r\n3\r\nno time\r\n\r\n"
        "4\r\n00:45:10,000 --> 00:45:12,000\r\nJake: Late.\r\n",
        "utf-8",
    )
    (cap / "Transcript" / "A1_JAKE" / "DAY1" / "DAY1_A1_JAKE_12000000.mp4.srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nTasha: Noon.\n"
    )
    written = import_egolife(folder, tmp_path / "out")
    data = load(tmp_path / "out")
    assert len(data.questions("development")) == 1
    told = [(w.start, w.end, w.captions, [u.text for u in w.transcript]) for w in data.videos["A1_JAKE"].windows]
    assert told == [
        (40183, 40198, ("I face the table.",), ["Okay."]),
        (40200, 40230, ("I get up.",), ["Yes."]),
        (42300, 42330, (), ["Late."]),
        (43200, 43230, (), ["Noon."]),
    ]
    assert any("a cue without time or text" in note for note in written.notes)


@pytest.mark.parametrize(
    "broken",
    [
        {"query_time": {"date": "DAY1", "time": "112102"}},
        {"query_time": {"date": "DAY9", "time": "11210217"}},
        {"answer": "E"},
        {"ID": "../1"},
        {"question": None},
        {"target_time": {"date": "DAY1", "time": "soon"}},
        {"target_time": {"date": "DAY1"}},
    ],
)
def test_another_shape_is_one_clear_line(tmp_path: Path, broken: dict[str, Any]) -> None:
    with pytest.raises(DataError) as caught:
        import_egolife(source(tmp_path / "source", [ask("0"), ask("1", **broken)]), tmp_path / "out")
    assert "EgoLifeQA_A1_JAKE.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_missing_files_name_the_layout(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"EgoLifeQA/EgoLifeQA_A1_JAKE\.json and EgoLifeCap/Sync"):
        import_egolife(tmp_path, tmp_path / "out")
    folder = source(tmp_path / "source", [ask("1")], sync=False)
    with pytest.raises(DataError, match=r"EgoLifeCap/Sync/A1_JAKE_DAY1_11000000\.json"):
        import_egolife(folder, tmp_path / "out")
    with pytest.raises(DataError, match="subject"):
        import_egolife(folder, tmp_path / "out", "../A1")
    (folder / "EgoLifeCap" / "Sync").mkdir(parents=True)
    for content in (b"[{]", b"\xff\xfe", b"{}", b'[{"video_file":"x","data":[]}]'):
        (folder / "EgoLifeCap" / "Sync" / "A1_JAKE_DAY1_11000000.json").write_bytes(content)
        with pytest.raises(DataError, match=r"A1_JAKE_DAY1_11000000\.json"):
            import_egolife(folder, tmp_path / "out")


# ---------------------------------------------------------------- the real files


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Dataset]:
    default = Path(__file__).parents[2].parent / "shared"
    folder = Path(os.environ.get("LVMH_SHARED", default)) / "data" / "egolife"
    if not folder.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail(f"the EgoLife files are needed here and missing: {folder}")
        pytest.skip(f"no EgoLife files in {folder}; set LVMH_SHARED")
    out = tmp_path_factory.mktemp("egolife") / "data"
    import_egolife(folder, out)
    return folder, load(out)


@pytest.mark.egolife
def test_the_published_questions_and_windows(real: tuple[Path, Dataset]) -> None:
    _, data = real
    assert data.splits == ("development", "validation")
    assert [len(data.questions(split)) for split in data.splits] == [246, 159]
    windows = data.videos["A1_JAKE"].windows
    assert len(windows) == 4_455
    assert sum(len(w.captions) for w in windows) == 44_964
    assert sum(len(w.transcript) for w in windows) == 40_072
    assert Counter(u.speaker for w in windows for u in w.transcript)["Jake"] == 16_218
    assert all(0 < w.end - w.start <= 30 for w in windows)
    assert all(a.end <= b.start for a, b in pairwise(windows))
    assert (windows[0].start, windows[0].end) == (40182.4, 40200.0)


@pytest.mark.egolife
def test_every_question_has_evidence_in_a_clip_that_ends_before_it(real: tuple[Path, Dataset]) -> None:
    _, data = real
    windows = data.videos["A1_JAKE"].windows
    for split in data.splits:
        gold = data.gold(split)
        for question in data.questions(split):
            oracle = gold[question.id].oracle
            assert all(end <= question.time for _, end in oracle)
            assert any(w.start <= end and start <= w.end <= question.time for w in windows for start, end in oracle)


@pytest.mark.egolife
def test_the_check_finds_the_six_known_flaws_and_no_other(real: tuple[Path, Dataset]) -> None:
    assert [p.what for p in check(real[1].path)] == ["identical choices"] * 6


@pytest.mark.egolife
def test_windows_and_questions_do_not_depend_on_any_hidden_field(real: tuple[Path, Dataset], tmp_path: Path) -> None:
    folder, data = real
    changed = json.loads((folder / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json").read_text("utf-8"))
    for row in changed:
        for field in set(row) - {"ID", "query_time", "type", "question", *(f"choice_{letter}" for letter in "abcd")}:
            row[field] = f"canary-{field}-{row['ID']}"
        row["answer"] = "A"
        row["target_time"] = {"date": "DAY1", "time": "11110000"}
    (tmp_path / "EgoLifeQA").mkdir()
    (tmp_path / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json").write_text(json.dumps(changed), "utf-8")
    (tmp_path / "EgoLifeCap").symlink_to(folder / "EgoLifeCap")
    import_egolife(tmp_path, tmp_path / "out")
    names = ["windows/A1_JAKE.jsonl", "questions/development.jsonl", "questions/validation.jsonl"]
    assert all((tmp_path / "out" / name).read_bytes() == (data.path / name).read_bytes() for name in names)
    assert not [f for f in (tmp_path / "out").rglob("*") if f.is_file() and b"canary" in f.read_bytes()]
    assert data.digest != load(tmp_path / "out").digest
