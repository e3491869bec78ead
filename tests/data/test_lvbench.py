"""Import of LVBench: small files in the published format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.data.check import check
from harness.data.lvbench import import_lvbench
from harness.data.native import load
from harness.errors import UserError


def qa(uid: str | int, **fields: Any) -> dict[str, Any]:
    return {
        "uid": uid,
        "question": "What year appears in the opening?\n(A) 1636\n(B) 1366 (about)\n(C) 1363\n(D) 1633",
        "answer": "D",
        "question_type": ["key information retrieval"],
        "time_reference": "00:15-00:19",
        **fields,
    }


def line(key: str, items: list[dict[str, Any]], kind: str = "sport") -> dict[str, Any]:
    info = {"duration_minutes": 61, "fps": 25.0, "canary": 1}
    return {"key": key, "type": kind, "video_info": info, "qa": items}


def source(folder: Path, lines: list[dict[str, Any]], captions: bool = True) -> Path:
    folder.mkdir(parents=True)
    (folder / "video_info.meta.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in lines))
    (folder / "captions").mkdir()
    for entry in lines if captions else []:
        told = [
            {"start_time": f"00{n:02d}0000", "end_time": f"00{n:02d}3000", "text": f"Minute {n}."} for n in range(60)
        ]
        (folder / "captions" / f"{entry['key']}.json").write_text(json.dumps(told))
    return folder


def read(tmp_path: Path, *items: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    folder = source(tmp_path / "source", [line("-ab_C1", list(items))])
    written = import_lvbench(folder, tmp_path / "out", folder / "captions")
    return load(tmp_path / "out"), written.notes


def test_options_are_cut_out_of_the_question(tmp_path: Path) -> None:
    data, notes = read(
        tmp_path, qa(7), qa("8b", question="Which? (A or B)\n (A)  left\n(B) right\nside ", answer="(b)")
    )
    first, second = data.questions("development")
    assert (first.id, first.video, first.question) == ("q-7", "v--ab_C1", "What year appears in the opening?")
    assert dict(first.choices) == {"A": "1636", "B": "1366 (about)", "C": "1363", "D": "1633"}
    assert (second.question, dict(second.choices)) == ("Which? (A or B)", {"A": "left", "B": "right side"})
    assert {q.time for q in (first, second)} == {59 * 60 + 30}
    assert [gold.answer for gold in data.gold("development").values()] == ["D", "B"]
    assert notes == () and check(data.path) == []


@pytest.mark.parametrize(
    ("reference", "oracle"),
    [
        ("00:15-00:19", (15, 19)),
        ("75:15-76:00", (4_515, 4_560)),
        ("00:05:15-01:02:03", (315, 3_723)),
        ("05:15-00:06:00", (315, 360)),
        (" 00:15 - 00:19 ", (15, 19)),
        ("00:19-00:15", (15, 19)),
        ("", None),
        ("later", None),
    ],
)
def test_time_references(tmp_path: Path, reference: str, oracle: tuple[float, float] | None) -> None:
    data, notes = read(tmp_path, qa(1, time_reference=reference))
    (gold,) = data.gold("development").values()
    assert gold.oracle == (() if oracle is None else (oracle,))
    assert bool(notes) == (reference in ("later", "00:19-00:15"))


@pytest.mark.parametrize(
    ("types", "label"),
    [
        (["reasoning"], "reasoning"),
        (["key information retrieval"], "key information"),
        (["reasoning", "entity recognition"], "entity recognition & reasoning"),
        (["entity recognition", "reasoning"], "entity recognition & reasoning"),
        (
            ["summarization", "temporal grounding", "key information retrieval", "event understanding",
             "entity recognition", "reasoning"],
            "entity recognition & event understanding & key information",
        ),
        ([], "other"),
        (["Something new"], "other"),
    ],
)  # fmt: skip
def test_a_question_of_several_types_has_one_label(tmp_path: Path, types: list[str], label: str) -> None:
    data, _ = read(tmp_path, qa(1, question_type=types))
    assert data.questions("development")[0].type == label


def test_what_cannot_be_read_is_left_out_and_named(tmp_path: Path) -> None:
    bad = ("no options", "x\n(A) only", "x\n(A) a\n(C) c", "x\n(B) b\n(A) a", "\n(A) a\n(B) b")
    items = [qa(100 + number, question=text, answer="A") for number, text in enumerate(bad)]
    data, notes = read(tmp_path, qa(1), qa(2, answer="E"), *items)
    assert [q.id for q in data.questions("development")] == ["q-1"]
    assert all(any(f"question {uid}:" in note for note in notes) for uid in (2, 100, 101, 102, 103, 104))


def test_splits_are_by_video_and_stratified(tmp_path: Path) -> None:
    lines = [line(f"key{n}", [qa(10 * n), qa(10 * n + 1)], ("tv", "live")[n % 2]) for n in range(20)]
    folder = source(tmp_path / "source", lines)
    import_lvbench(folder / "video_info.meta.jsonl", tmp_path / "out", folder / "captions")
    data = load(tmp_path / "out")
    held = [{q.video for q in data.questions(split)} for split in data.splits]
    assert [len(videos) for videos in held] == [12, 4, 4] and len(set.union(*held)) == 20
    assert [sum(int(video[5:]) % 2 for video in videos) for videos in held] == [6, 2, 2]


def test_nothing_hidden_reaches_windows_or_questions(tmp_path: Path) -> None:
    data, _ = read(tmp_path, qa(1, time_reference="00:17:00-00:17:39", answer="C"))
    for file in (file for file in data.path.rglob("*") if file.is_file() and file.parent.name != "gold"):
        content = file.read_bytes()
        assert not any(word in content for word in (b"canary", b"sport", b"1059", b"17:39", b"duration_minutes")), file
        assert b"answer" not in content


def test_one_clear_line(tmp_path: Path) -> None:
    def refused(folder: Path, words: str, captions: Path | None = None) -> None:
        with pytest.raises(UserError) as caught:
            import_lvbench(folder, tmp_path / "out", captions)
        assert words in str(caught.value) and "\n" not in str(caught.value), str(caught.value)
        assert not (tmp_path / "out").exists()

    refused(tmp_path, "video_info.meta.jsonl: not found")
    bare = source(tmp_path / "a", [line("k1", [qa(1)])], captions=False)
    refused(bare, "LVBench publishes neither captions nor subtitles")
    refused(bare, "harness memory build", bare / "captions")
    refused(source(tmp_path / "b", [line("k1", [qa(1), qa(1)])]), "q-1 is there twice", tmp_path / "b" / "captions")
    refused(source(tmp_path / "c", [line("k1", []), line("k1", [])]), "a video is there twice")
    refused(source(tmp_path / "d", [line("../k", [qa(1)])]), "jsonl:1: not the published format: key")
    refused(source(tmp_path / "e", [line("k1", [qa(1, question="x")])]), "no question can be read")
    (bare / "video_info.meta.jsonl").write_text(json.dumps(line("k1", [qa(1)])) + '\n{"key": "k2", "ty')
    refused(bare, "video_info.meta.jsonl:2: not the published format")
    (bare / "video_info.meta.jsonl").write_bytes(b"\x89PNG\0\0\0\1\xff\xff\xff")
    refused(bare, "video_info.meta.jsonl")
