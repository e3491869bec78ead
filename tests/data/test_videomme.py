"""Import of Video-MME: small files in the published formats."""

from __future__ import annotations

import json
import sys
import zipfile
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest

from harness.data.check import check
from harness.data.lifelog import make_lifelog
from harness.data.native import FrameFile, Video, load
from harness.data.videomme import import_videomme
from harness.data.write import DatasetParts, write
from harness.errors import UserError
from policies.contract import Window

SRT = "1\n00:00:01,000 --> 00:00:03,500\nHello there.\n\n2\n00:01:10,000 --> 00:01:12,000\nTwo birds.\n"
PNG_HEAD = b"\x89PNG\r\n\x1a\n"
PARQUET = Path("videomme/test-00000-of-00001.parquet")


def row(video: int, number: int = 1, **fields: Any) -> dict[str, Any]:
    return {
        "video_id": f"{video:03d}",
        "duration": ("short", "medium", "long")[video % 3],
        "domain": "canary-domain",
        "sub_category": ("canary-history", "canary-sports")[video % 2],
        "url": "https://canary.example/watch",
        "videoID": f"-yt_{video}",
        "question_id": f"{video:03d}-{number}",
        "task_type": "Counting Problem",
        "question": "How many birds are there?",
        "options": ["A. One.", "B. Two.", "C. Three.", "D. A. Smith's."],
        "answer": "B",
        **fields,
    }


def source(folder: Path, rows: list[dict[str, Any]], subtitles: dict[str, str] | None = None) -> Path:
    (folder / "videomme").mkdir(parents=True)
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), folder / PARQUET)
    (folder / "subtitle").mkdir()
    for name in {row["videoID"] for row in rows}:
        (folder / "subtitle" / f"{name}.srt").write_text((subtitles or {}).get(name, SRT))
    return folder


def test_questions_and_subtitles(tmp_path: Path) -> None:
    import_videomme(source(tmp_path / "source", [row(1, n) for n in (1, 2, 3)]), tmp_path / "out")
    data = load(tmp_path / "out")
    first, *_ = data.questions("development")
    assert dict(first.choices) == {"A": "One.", "B": "Two.", "C": "Three.", "D": "A. Smith's."}
    assert (first.id, first.video, first.type) == ("q-001-1", "v-001", "Counting Problem")
    assert {question.time for question in data.questions("development")} == {72.0}
    assert {gold.answer for gold in data.gold("development").values()} == {"B"}
    told = [(w.start, w.end, [line.text for line in w.transcript]) for w in data.videos["v-001"].windows]
    assert told == [(0, 30, ["Hello there."]), (60, 72, ["Two birds."])]
    assert check(tmp_path / "out") == []


def test_splits_are_by_video_stratified_and_seeded(tmp_path: Path) -> None:
    rows = [row(video, n) for video in range(60) for n in (1, 2, 3)]
    folder = source(tmp_path / "source", rows)
    kinds = {f"v-{row['video_id']}": (row["duration"], row["sub_category"]) for row in rows}
    digests = []
    for name, seed in (("a", 0), ("b", 0), ("c", 5)):
        import_videomme(folder, tmp_path / name, seed=seed)
        data = load(tmp_path / name)
        held = {split: {q.video for q in data.questions(split)} for split in data.splits}
        assert {split: len(videos) for split, videos in held.items()} == {
            "development": 36,
            "validation": 12,
            "test": 12,
        }
        assert not held["development"] & held["validation"] and not held["test"] & set.union(
            held["development"], held["validation"]
        )
        for kind in set(kinds.values()):
            assert [sum(kinds[video] == kind for video in held[split]) for split in data.splits] == [6, 2, 2]
        digests.append(data.digest)
    assert digests[0] == digests[1] != digests[2]


def test_one_length_of_videos(tmp_path: Path) -> None:
    folder = source(tmp_path / "source", [row(video) for video in range(6)])
    import_videomme(folder, tmp_path / "out", length="long")
    assert sorted(load(tmp_path / "out").videos) == ["v-002", "v-005"]


def test_a_video_without_subtitles_is_left_out_and_counted(tmp_path: Path) -> None:
    folder = source(tmp_path / "source", [row(1), row(2), row(2, 2)])
    (folder / "subtitle" / "-yt_2.srt").unlink()
    written = import_videomme(folder, tmp_path / "out")
    assert list(load(tmp_path / "out").videos) == ["v-001"]
    assert any("1 of 2 videos have neither captions nor subtitles (-yt_2" in note for note in written.notes)
    assert any("their 2 questions" in note for note in written.notes)


def test_broken_subtitles_are_left_out_and_named(tmp_path: Path) -> None:
    subtitles = {"-yt_2": "1\n00:xx:01,000 --> 00:00:03,500\nHello.\n", "-yt_3": "", "-yt_4": "\ufeff" + SRT}
    folder = source(tmp_path / "source", [row(video) for video in (1, 2, 3, 4)], subtitles)
    (folder / "subtitle" / "-yt_1.srt").write_bytes("1\n00:00:01,000 --> 00:00:03,500\n你好，世界\n".encode("gb18030"))
    written = import_videomme(folder, tmp_path / "out")
    data = load(tmp_path / "out")
    assert sorted(data.videos) == ["v-001", "v-004"]
    assert data.videos["v-001"].windows[0].transcript[0].text == "你好，世界"
    notes = "\n".join(written.notes)
    for words in ("-yt_2.srt:2", "-yt_3.srt: is empty", "GB18030", "1 of 3 lines hold no word in Latin letters"):
        assert words in notes


def test_the_published_archive_of_subtitles(tmp_path: Path) -> None:
    folder = source(tmp_path / "source", [row(1)])
    with zipfile.ZipFile(folder / "subtitle.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.write(folder / "subtitle" / "-yt_1.srt", "subtitle/-yt_1.srt")
        archive.writestr("subtitle/../../evil.srt", SRT)
        archive.writestr("__MACOSX/subtitle/._-yt_1.srt", b"\0\1")
    (folder / "subtitle" / "-yt_1.srt").unlink()
    (folder / "subtitle").rmdir()
    import_videomme(folder, tmp_path / "out")
    assert list(load(tmp_path / "out").videos) == ["v-001"]
    assert not list(tmp_path.rglob("evil.srt"))
    (folder / "subtitle.zip").write_bytes((folder / "subtitle.zip").read_bytes()[:80])
    with pytest.raises(UserError, match=r"subtitle\.zip: cannot be unpacked"):
        import_videomme(folder, tmp_path / "other")


def test_given_captions_go_first_with_subtitles_beside_them(tmp_path: Path) -> None:
    """As WorldMM writes them: ``caption/VIDEO/30sec.json``."""
    folder = source(tmp_path / "source", [row(1)])
    given = tmp_path / "caption"
    (given / "-yt_1").mkdir(parents=True)
    told = [
        {"start_time": f"0000{n}000", "end_time": f"0000{n + 3}000", "text": text, "date": "DAY1", "video_path": "x"}
        for n, text in ((0, "A park."), (3, " "), (6, "Birds."))
    ]
    told[-1]["end_time"] = "00013000"
    (given / "-yt_1" / "30sec.json").write_text(json.dumps(told))
    (given / "-yt_1.srt").write_text(SRT)
    written = import_videomme(folder, tmp_path / "out", captions=given)
    windows = load(tmp_path / "out").videos["v-001"].windows
    assert [(w.start, w.end, w.captions, [line.text for line in w.transcript]) for w in windows] == [
        (0, 30, ("A park.",), ["Hello there."]),
        (60, 90, ("Birds.",), ["Two birds."]),
    ]
    assert any("1 empty caption(s)" in note for note in written.notes)
    (given / "-yt_1" / "30sec.json").write_text("[{")
    with pytest.raises(UserError, match=r"30sec\.json: is not JSON"):  # what is given must be right
        import_videomme(folder, tmp_path / "other", captions=given)


def test_a_built_data_set_serves_as_captions(tmp_path: Path) -> None:
    make_lifelog(tmp_path / "built" / "-yt_1", seed=0, scale=0.2)
    folder = source(tmp_path / "source", [row(1)])
    with pytest.raises(UserError, match="but several others"):
        import_videomme(folder, tmp_path / "out", captions=tmp_path / "built")
    manifest = tmp_path / "built" / "-yt_1" / "manifest.json"
    value = json.loads(manifest.read_text())
    value["videos"], value["splits"] = value["videos"][:1], {}
    manifest.write_text(json.dumps(value))
    import_videomme(folder, tmp_path / "out", captions=tmp_path / "built")
    video = load(tmp_path / "built" / "-yt_1").videos[value["videos"][0]["id"]]
    taken = load(tmp_path / "out").videos["v-001"]
    assert taken.windows == video.windows and taken.duration == video.duration


def test_frames_of_built_data_sets_come_along_under_names_of_their_own(tmp_path: Path) -> None:
    """One data set a video, whose files of frames have the same name."""
    pictures = {}
    for number in (1, 2):
        picture = PNG_HEAD + bytes([number])
        video = Video(
            "built", 30.0, (Window(0, 0.0, 30.0, ("A park.",), (), True),), (FrameFile(path="frames/x.png", start=3.0),)
        )
        parts = DatasetParts("built", {"made": "by hand"}, [video], {}, {"frames/x.png": picture})
        write(parts, tmp_path / "built" / f"-yt_{number}")
        pictures[f"frames/v-00{number}-x.png"] = picture
    folder = source(tmp_path / "source", [row(1), row(2)])
    import_videomme(folder, tmp_path / "out", captions=tmp_path / "built")
    whole = DatasetParts("all", {"made": "by hand"}, [Video("yt_1", 30.0, video.windows[:1])], {})  # of -yt_1.mp4
    write(whole, tmp_path / "whole")
    written = import_videomme(folder, tmp_path / "other", captions=tmp_path / "whole")
    assert written.windows == {"v-001": 1, "v-002": 2}  # the second from its subtitles
    data = load(tmp_path / "out")
    assert {file.path for video in data.videos.values() for file in video.frames} == set(pictures)
    assert all((data.path / name).read_bytes() == picture for name, picture in pictures.items())
    assert data.videos["v-001"].windows[0].frames


def test_the_result_template_with_its_trailing_commas(tmp_path: Path) -> None:
    text = """[{"video_id": "001", "duration": "short", "domain": "canary", "sub_category": "canary",
      "questions": [{"question_id": "001-1", "task_type": "OCR Problems", "question": "Which sign, ] or }?",
        "options": ["A. x,]", "B. y", "C. z", "D. w",], "answer": "A", "response": "canary C",},],},]"""
    (tmp_path / "output_test_template.json").write_text(text)
    (tmp_path / "subtitle").mkdir()
    (tmp_path / "subtitle" / "001.srt").write_text(SRT)
    import_videomme(tmp_path / "output_test_template.json", tmp_path / "out")
    data = load(tmp_path / "out")
    (question,) = data.questions("development")
    assert (question.question, question.choices["A"]) == ("Which sign, ] or }?", "x,]")
    assert not [f for f in data.path.rglob("*") if f.is_file() and b"canary" in f.read_bytes()]


def test_rows_rewritten_in_egolife_s_manner(tmp_path: Path) -> None:
    rows = [
        {
            "ID": "001-1", "query_time": {"date": "DAY1", "time": "23595999"}, "type": "OCR Problems",
            "video_id": "-yt_1", "duration": "long", "domain": "canary", "sub_category": "canary", "url": "canary",
            "question": "Which?", "choice_a": "x", "choice_b": "y", "choice_c": "z", "choice_d": "w", "answer": "C",
            "target_time": {"date": "DAY1", "time": "23595999"},
        }
    ]  # fmt: skip
    (tmp_path / "Video-MME.json").write_text(json.dumps(rows))
    (tmp_path / "subtitle").mkdir()
    (tmp_path / "subtitle" / "-yt_1.srt").write_text(SRT)
    import_videomme(tmp_path / "Video-MME.json", tmp_path / "out")
    data = load(tmp_path / "out")
    (question,), (gold,) = data.questions("development"), data.gold("development").values()
    assert (question.time, gold.answer, gold.oracle) == (72.0, "C", ())
    assert not [f for f in data.path.rglob("*") if f.is_file() and b"canary" in f.read_bytes()]


def test_nothing_but_the_question_reaches_it(tmp_path: Path) -> None:
    import_videomme(source(tmp_path / "source", [row(1, answer="C")]), tmp_path / "out")
    for file in (file for file in (tmp_path / "out").rglob("*") if file.is_file()):
        assert b"canary" not in file.read_bytes(), file
        assert file.parent.name == "gold" or b"answer" not in file.read_bytes(), file


def test_an_option_that_begins_like_another_letter_keeps_its_text(tmp_path: Path) -> None:
    options = ["(A) One", "C. Lee", "C、Three", "D) Four"]
    import_videomme(source(tmp_path / "source", [row(1, options=options)]), tmp_path / "out")
    choices = load(tmp_path / "out").questions("development")[0].choices
    assert list(choices.values()) == ["One", "C. Lee", "Three", "Four"]


@pytest.mark.parametrize("count", [2, 3, 5])
def test_other_numbers_of_options(tmp_path: Path, count: int) -> None:
    options = [f"{letter}. thing {letter}" for letter in "ABCDE"[:count]]
    import_videomme(source(tmp_path / "source", [row(1, options=options)]), tmp_path / "out")
    assert len(load(tmp_path / "out").questions("development")[0].choices) == count


def test_a_small_file_that_unpacks_to_a_large_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = source(tmp_path / "source", [row(1, n, question="x" * 10_000) for n in range(300)])
    assert (folder / PARQUET).stat().st_size < 200_000
    monkeypatch.setattr("harness.data.parquet.MAX_FILE", 1_000_000)
    with pytest.raises(UserError, match="bytes when unpacked"):
        import_videomme(folder, tmp_path / "out")


def test_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(folder: Path, words: str, **arguments: Any) -> None:
        with pytest.raises(UserError) as caught:
            import_videomme(folder, tmp_path / "out", **arguments)
        assert words in str(caught.value) and "\n" not in str(caught.value), str(caught.value)
        assert not (tmp_path / "out").exists()

    refused(tmp_path, "give the folder that holds videomme/test-00000-of-00001.parquet")
    refused(source(tmp_path / "a", [row(1, answer="E")]), "question 001-1: its answer is none of its options")
    refused(source(tmp_path / "b", [row(1), row(1)]), "question q-001-1 is there twice")
    refused(source(tmp_path / "c", [row(1, options=["A. one"])]), "not the published format: options")
    bare = source(tmp_path / "d", [row(1), row(2)])
    for file in (bare / "subtitle").iterdir():
        file.unlink()
    refused(bare, "Video-MME publishes subtitles and no captions")
    refused(source(tmp_path / "h", [row(1)]), "holds no questions about long videos", length="long")
    short = source(tmp_path / "e", [row(1)])
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist([{"video_id": "001"}]), short / PARQUET)
    refused(short, "has no column videoID")
    whole = source(tmp_path / "f", [row(1)])
    content = (whole / PARQUET).read_bytes()
    for broken in (b"", b"PAR1", content[:-9], content[: len(content) // 2], b"{}" + content[2:-8] + bytes(8)):
        (whole / PARQUET).write_bytes(broken)
        refused(whole, "test-00000-of-00001.parquet")
    (tmp_path / "x.json").write_bytes(b'[{"questions": ')
    refused(tmp_path / "x.json", "x.json: not the published format")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused(source(tmp_path / "g", [row(1)]), "pip install 'lvmh[parquet]'")
