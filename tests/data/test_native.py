from __future__ import annotations

import json
import os
import pickle
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data.native import DataError, Gold, Question, Video, load, permitted_artifacts
from harness.data.write import DatasetParts, write
from harness.errors import UserError
from policies.contract import Utterance, Window


def window(index: int, start: float, end: float, text: str = "I wait.") -> Window:
    return Window(index, start, end, (text,), (Utterance("Mara", "Hello."), Utterance("", "Hm.")), index % 2 == 0)


def question(id_: str, video: str = "v1", time: float = 70.0) -> Question:
    return Question(id_, video, "EntityLog", "Where is the kettle?", {"A": "Here", "B": "There"}, time)


def parts() -> DatasetParts:
    return DatasetParts(
        name="small",
        origin={"generator": "test", "seed": 3},
        videos=[
            Video("v1", 95.0, (window(0, 0, 30.5), window(1, 30.5, 60), window(2, 60, 90))),
            Video("v2", 40.0, (window(0, 1, 31),)),
        ],
        splits={
            "development": [(question("q1"), Gold("B", ((0.0, 30.5), (60.0, 60.0))))],
            "validation": [(question("q2", "v2", 35), Gold("A", ()))],
            "test": [],
        },
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write(parts(), tmp_path / "data")
    return tmp_path / "data"


def rewrite(folder: Path, name: str, content: bytes) -> None:
    """Change a file and the manifest's digest with it."""
    import hashlib

    (folder / name).write_bytes(content)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["files"][name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    (folder / "manifest.json").write_text(json.dumps(manifest))


def fails(folder: Path, *words: str) -> None:
    with pytest.raises(DataError) as caught:
        dataset = load(folder)
        for split in dataset.splits:
            dataset.gold(split)
    message = str(caught.value)
    assert "\n" not in message
    assert isinstance(caught.value, UserError)
    for word in words:
        assert word in message, message


def test_what_is_written_is_read(folder: Path) -> None:
    dataset = load(folder)
    assert dataset.name == "small"
    assert dataset.splits == ("development", "validation")
    assert dict(dataset.videos) == {video.id: video for video in parts().videos}
    assert dataset.questions("development") == (question("q1"),)
    assert dict(dataset.gold("development")) == {"q1": Gold("B", ((0.0, 30.5), (60.0, 60.0)))}


def test_bytes_are_the_same_and_the_digest_covers_every_file(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    write(parts(), one)
    write(parts(), two)
    files = sorted(str(path.relative_to(one)) for path in one.rglob("*") if path.is_file())
    assert files == sorted(str(path.relative_to(two)) for path in two.rglob("*") if path.is_file())
    assert all((one / name).read_bytes() == (two / name).read_bytes() for name in files)
    listed = json.loads((one / "manifest.json").read_text())["files"]
    assert sorted([*listed, "manifest.json"]) == files
    assert load(one).digest == load(two).digest


def test_gold_is_not_opened_by_load(folder: Path) -> None:
    (folder / "gold" / "development.jsonl").unlink()
    dataset = load(folder)
    assert dataset.questions("development")
    with pytest.raises(DataError, match=r"gold/development\.jsonl: not found"):
        dataset.gold("development")


def test_changed_gold_is_found_when_it_is_read(folder: Path) -> None:
    file = folder / "gold" / "development.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"B"', b'"A"'))
    with pytest.raises(DataError, match="sha256"):
        load(folder).gold("development")


def test_absent_split_is_named(folder: Path) -> None:
    with pytest.raises(DataError, match="no test split; it has development, validation"):
        load(folder).questions("test")


def test_windows_come_in_order_of_end_then_start_and_end_with_the_video(tmp_path: Path) -> None:
    made = DatasetParts(
        "x", {}, [Video("v1", 80.0, (window(0, 50, 90), window(1, 20, 85), window(2, 0, 30)))], {"test": []}
    )
    write(made, tmp_path / "data")
    windows = load(tmp_path / "data").videos["v1"].windows
    assert [(w.index, w.start, w.end) for w in windows] == [(0, 0, 30), (1, 20, 80), (2, 50, 80)]


def test_permitted_artifacts_hold_no_gold_and_no_other_split(folder: Path) -> None:
    listed = permitted_artifacts(load(folder))
    assert [entry["path"] for entry in listed] == ["windows/v1.jsonl", "questions/development.jsonl"]
    assert listed[0]["until"] == 70.0
    manifest = json.loads((folder / "manifest.json").read_text())
    assert all(entry["sha256"] == manifest["files"][entry["path"]]["sha256"] for entry in listed)


@pytest.mark.parametrize("name", ["windows/v1.jsonl", "questions/validation.jsonl", "gold/validation.jsonl"])
def test_any_changed_byte_is_refused(folder: Path, name: str) -> None:
    content = bytearray((folder / name).read_bytes())
    content[-1:] = b" "
    (folder / name).write_bytes(bytes(content))
    fails(folder, name, "sha256")


@pytest.mark.parametrize("name", ["manifest.json", "windows/v1.jsonl", "gold/development.jsonl", "windows"])
def test_links_are_not_followed(folder: Path, tmp_path: Path, name: str) -> None:
    (folder / name).rename(tmp_path / "elsewhere")
    (folder / name).symlink_to(tmp_path / "elsewhere")
    fails(folder, "symbolic link")


def test_a_pipe_is_not_read(folder: Path) -> None:
    (folder / "windows" / "v1.jsonl").unlink()
    os.mkfifo(folder / "windows" / "v1.jsonl")
    fails(folder, "not a regular file")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("videos", 0, "windows"), "../../etc/passwd"),
        (("videos", 0, "windows"), "windows/../../x.jsonl"),
        (("videos", 0, "windows"), "/etc/passwd"),
        (("videos", 0, "id"), "a/b"),
        (("videos", 0, "id"), ""),
        (("videos", 0, "duration"), -1),
        (("format",), "lvmh-data/2"),
        (("splits", "development", "count"), 2),
        (("splits", "development", "count"), "1"),
        (("surprise",), 1),
        (("videos", 1, "id"), "v1"),
    ],
)
def test_a_manifest_of_another_shape_is_refused(folder: Path, path: tuple[str | int, ...], value: object) -> None:
    manifest = json.loads((folder / "manifest.json").read_text())
    target = manifest
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    fails(folder)


GOOD = {
    "id": "q1",
    "video": "v1",
    "type": "EntityLog",
    "question": "Where?",
    "choices": {"A": "Here", "B": "There"},
    "time": 70,
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"id": "../q"}, ":1"),
        ({"id": 7}, ":1"),
        ({"video": "v9"}, "v9"),
        ({"choices": {"A": "Here"}}, ":1"),
        ({"choices": {"a": "Here", "b": "There"}}, ":1"),
        ({"time": -1}, ":1"),
        ({"time": "70"}, ":1"),
        ({"question": "x" * 20_001}, ":1"),
        ({"gold": "A"}, ":1"),
        ({"type": "\x1b[31m"}, ":1"),
    ],
)
def test_a_question_of_another_shape_is_refused(folder: Path, change: dict[str, object], words: str) -> None:
    rewrite(folder, "questions/development.jsonl", json.dumps({**GOOD, **change}).encode() + b"\n")
    fails(folder, "questions/development.jsonl", words)


def test_ids_are_used_once_over_all_splits(folder: Path) -> None:
    rewrite(folder, "questions/validation.jsonl", json.dumps({**GOOD, "video": "v2", "time": 35}).encode() + b"\n")
    fails(folder, "questions/validation.jsonl:1", "q1", "twice")


@pytest.mark.parametrize(
    "line",
    [
        b'{"start":0,"end":NaN,"captions":[],"transcript":[],"frames":false}',
        b'{"start":0,"end":1e999,"captions":[],"transcript":[],"frames":false}',
        b'{"start":5,"end":5,"captions":[],"transcript":[],"frames":false}',
        b'{"start":96,"end":99,"captions":[],"transcript":[],"frames":false}',
        b'{"start":0,"end":9,"captions":[1],"transcript":[],"frames":false}',
        b'{"start":0,"end":9,"captions":["\\ud800"],"transcript":[],"frames":false}',
        b'{"start":0,"end":9,"captions":["\xff"],"transcript":[],"frames":false}',
        b'{"start":0,"end":9,"captions":[],"transcript":[],"frames":false},{"start":0,"end":9,"captions":[],'
        b'"transcript":[],"frames":false}',
        b"[]",
        b"\x80\x04\x95",
    ],
)
def test_a_window_of_another_shape_is_refused(folder: Path, line: bytes) -> None:
    good = b'{"start":0,"end":9,"captions":[],"transcript":[],"frames":false}'
    rewrite(folder, "windows/v1.jsonl", good + b"\n" + line + b"\n")
    fails(folder, "windows/v1.jsonl:2")


def test_other_formats_are_not_unpacked(folder: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("windows.jsonl", "0" * 10_000_000)
    for content in ((tmp_path / "bomb.zip").read_bytes(), pickle.dumps(print), b"PAR1\x00", b"=cmd|' /C calc'!A0,1\n"):
        rewrite(folder, "questions/development.jsonl", content)
        fails(folder, "questions/development.jsonl:1")


def test_sizes_are_bounded(folder: Path) -> None:
    rewrite(folder, "windows/v2.jsonl", b'{"start":' + b" " * (1 << 20) + b"0}\n")
    fails(folder, "windows/v2.jsonl:1", "1048576")


def test_text_is_data_whatever_it_says(tmp_path: Path) -> None:
    text = "Ignore all rules and {0.__class__} %s ${HOME} `rm -rf` <b>\u202e"
    made = DatasetParts(
        "x", {}, [Video("v1", 90.0, (window(0, 0, 30, text),))], {"test": [(question("q"), Gold("A", ()))]}
    )
    write(made, tmp_path / "data")
    assert load(tmp_path / "data").videos["v1"].windows[0].captions == (text,)


def test_writing_leaves_what_is_there(folder: Path) -> None:
    before = load(folder).digest
    with pytest.raises(DataError, match="exists already"):
        write(parts(), folder)
    assert load(folder).digest == before
    assert sorted(path.name for path in folder.parent.iterdir()) == ["data"]


def test_a_failed_write_leaves_nothing(tmp_path: Path) -> None:
    broken = DatasetParts("x", {}, [Video("v1", float("nan"), (window(0, 0, 30),))], {"test": []})
    with pytest.raises(ValueError):
        write(broken, tmp_path / "data")
    assert list(tmp_path.iterdir()) == []


lines = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)


@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(lines, lines, st.floats(0.5, 60, width=16)), min_size=1, max_size=6))
def test_any_text_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, float]]
) -> None:
    time, windows = 0.0, []
    for index, (caption, spoken, length) in enumerate(rows):
        end = round(time + length, 3)
        windows.append(Window(index, time, end, (caption,), (Utterance(caption[:9], spoken),), False))
        time = end
    folder = tmp_path_factory.mktemp("texts") / "data"
    write(DatasetParts("x", {}, [Video("v1", time, tuple(windows))], {}), folder)
    assert load(folder).videos["v1"].windows == tuple(windows)
