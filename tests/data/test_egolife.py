"""Import of EgoLifeQA: every trap in small, and the real files where they are."""

from __future__ import annotations

import json
import os
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.data.check import check
from harness.data.clip_times import clock, digits
from harness.data.egolife import import_egolife
from harness.data.egolife_rows import TargetTime, intervals
from harness.data.egolife_text import clean, utterance
from harness.data.native import Dataset, load
from harness.errors import UserError
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
    found = intervals(TargetTime.model_validate(target), "here", [])
    assert [start for start, _ in found] == [end for _, end in found] == pytest.approx(expected)


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
    with pytest.raises(UserError) as caught:
        import_egolife(source(tmp_path / "source", [ask("0"), ask("1", **broken)]), tmp_path / "out")
    assert "EgoLifeQA_A1_JAKE.json" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_missing_files_name_the_layout(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"EgoLifeQA/EgoLifeQA_A1_JAKE\.json and EgoLifeCap/Sync"):
        import_egolife(tmp_path, tmp_path / "out")
    folder = source(tmp_path / "source", [ask("1")], sync=False)
    with pytest.raises(UserError, match=r"EgoLifeCap/Sync/A1_JAKE_DAY1_11000000\.json"):
        import_egolife(folder, tmp_path / "out")
    with pytest.raises(UserError, match="subject"):
        import_egolife(folder, tmp_path / "out", "../A1")
    (folder / "EgoLifeCap" / "Sync").mkdir(parents=True)
    for content in (b"[{]", b"\xff\xfe", b"{}", b'[{"video_file":"x","data":[]}]'):
        (folder / "EgoLifeCap" / "Sync" / "A1_JAKE_DAY1_11000000.json").write_bytes(content)
        with pytest.raises(UserError, match=r"A1_JAKE_DAY1_11000000\.json"):
            import_egolife(folder, tmp_path / "out")


def srt(*cues: tuple[str, str]) -> str:
    return "".join(f"{n}\n{times}\n{text}\n\n" for n, (times, text) in enumerate(cues, 1))


def dense(folder: Path, name: str, text: str, kind: str = "DenseCaption", day: str = "DAY1") -> None:
    place = folder / "EgoLifeCap" / kind / "A1_JAKE" / day
    place.mkdir(parents=True, exist_ok=True)
    (place / name).write_text(text, "utf-8")


def test_dense_captions_as_published_are_chinese_and_that_is_said(tmp_path: Path) -> None:
    folder = source(tmp_path / "source", [ask("1")], sync=False)
    dense(folder, "A1_JAKE_DAY1_11000000.srt", srt(
        ("00:09:30,966 --> 00:09:33,533", "我甩手我拿起另一个餐具"), ("00:09:58,000 --> 00:10:02,000", "我和Tasha说话"),
    ))  # fmt: skip
    dense(
        folder, "A1_JAKE_DAY1_11000000.srt", srt(("00:09:40,0 --> 00:09:41,0", "Jake: 好\nJake: Okay.")), "Transcript"
    )
    written = import_egolife(folder, tmp_path / "out")
    windows = load(tmp_path / "out").videos["A1_JAKE"].windows
    assert [(w.start, w.end, w.captions, [u.text for u in w.transcript]) for w in windows] == [
        (40_170, 40_200, ("我甩手我拿起另一个餐具",), ["Okay."]),
        (40_200, 40_230, ("我和Tasha说话",), []),  # a line is told when it has ended
    ]
    assert "1 of 3 lines hold no word in Latin letters or digits" in "\n".join(written.notes)
    assert not [problem for problem in check(tmp_path / "out") if "hold no word" in problem.what]  # one of two only
    dense(folder, "A1_JAKE_DAY1_11000000.srt", srt(("00:09:30,966 --> 00:09:33,533", "我甩手")))
    (folder / "EgoLifeCap" / "Transcript" / "A1_JAKE" / "DAY1" / "A1_JAKE_DAY1_11000000.srt").unlink()
    import_egolife(folder, tmp_path / "other")
    assert any(p.what.startswith("1 of 1 windows hold no word in Latin letters") for p in check(tmp_path / "other"))


def test_translated_dense_captions(tmp_path: Path) -> None:
    folder = source(tmp_path / "source", [ask("1")], sync=False)
    dense(folder, "A1_JAKE_DAY1_11000000.srt", srt(("00:09:30,0 --> 00:09:33,0", "我甩手")))
    place = folder / "EgoLifeCap" / "DenseCaption" / "translated"
    place.mkdir()
    rows = [
        {"custom_id": "1-A1_JAKE-DAY1-110943-110944", "translated_text": "I wave."},
        {"custom_id": "2-A1_JAKE-DAY1-235958-000001", "translated_text": "I sleep."},
    ]
    (place / "A1_JAKE_DAY1_11000000.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    import_egolife(folder, tmp_path / "out")
    windows = load(tmp_path / "out").videos["A1_JAKE"].windows
    assert [(w.start, w.end, w.captions) for w in windows] == [
        (40_170, 40_200, ("I wave.",)), (DAY, DAY + 30, ("I sleep.",)),
    ]  # fmt: skip
    (place / "A1_JAKE_DAY1_11000000.jsonl").write_text('{"custom_id": "x", "translated_text": "y"}\n')
    with pytest.raises(UserError, match=r"11000000\.jsonl: not the published format"):
        import_egolife(folder, tmp_path / "other")


def test_odd_names_of_transcripts(tmp_path: Path) -> None:
    folder = tmp_path / "source"
    source(folder, [], sync=False)
    (folder / "EgoLifeQA" / "EgoLifeQA_A4_LUCIA.json").write_text(
        json.dumps([ask("1", query_time={"date": "DAY6", "time": "23000000"})])
    )
    names = ("A4_LUCIA_DAY6_20000000.mp4.srt", "DAY6_A4_LUCIA_21000000.mp4.srt", "A4_LUCIA_DAY6_22000000.srt", "x.srt")
    place = folder / "EgoLifeCap" / "Transcript" / "A4_LUCIA" / "DAY6"
    place.mkdir(parents=True)
    for name in names:
        (place / name).write_text(srt(("00:00:01,000 --> 00:00:02,000", "其他人：你好")), "utf-8")
    written = import_egolife(folder, tmp_path / "out", "A4_LUCIA")
    windows = load(tmp_path / "out").videos["A4_LUCIA"].windows
    assert [w.start for w in windows] == [5 * DAY + hour * 3_600 for hour in (20, 21, 22)]
    assert windows[0].transcript == (Utterance("其他人", "你好"),)
    assert any("x.srt: left out" in note for note in written.notes)


def test_no_question_of_a_day_with_captions_is_an_error(tmp_path: Path) -> None:
    for number, questions in enumerate(([], [ask("1", query_time={"date": "DAY7", "time": "11210217"})])):
        with pytest.raises(UserError, match="no question can be asked"):
            import_egolife(source(tmp_path / str(number), questions), tmp_path / "out")


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-le", "gb18030"])
def test_other_encodings_are_read(tmp_path: Path, encoding: str) -> None:
    folder = source(tmp_path / "source", [ask("1", choice_a="他莎")])
    for file in folder.rglob("*.json"):
        text = json.dumps(json.loads(file.read_text("utf-8")), ensure_ascii=False, indent=1)
        file.write_bytes(text.encode(encoding))
    import_egolife(folder, tmp_path / "out")
    data = load(tmp_path / "out")
    assert data.questions("development")[0].choices["A"] == "他莎"
    assert data.videos["A1_JAKE"].windows[0].captions[1] == "Shure，开始了。"


def test_the_command_ends_with_2_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = source(tmp_path / "source", [ask("1")])
    file = folder / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json"
    for content in (b"[{", b"\x00\x01\x02", b"caf\xe9 {", b"[" * 100_000, json.dumps([ask("1")]).encode("utf-16")[:-1]):
        file.write_bytes(content)
        monkeypatch.setattr(
            "sys.argv", ["harness", "data", "import", "egolife", str(folder), "--out", str(tmp_path / "o")]
        )
        with pytest.raises(SystemExit) as ended:
            main()
        assert ended.value.code == 2
        told = capsys.readouterr()
        assert "EgoLifeQA_A1_JAKE.json" in told.err and len(told.err.strip().splitlines()) == 1, told.err
        assert not told.out


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
