from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.data.check import MOST, check
from harness.data.native import DataError, load

WINDOWS: list[Any] = [
    {"start": 0, "end": 30, "captions": ["I wait."], "transcript": [], "frames": False},
    {"start": 30, "end": 60, "captions": [], "transcript": [{"speaker": "Mara", "text": "Hello."}], "frames": False},
    {"start": 70, "end": 99, "captions": ["I go."], "transcript": [], "frames": False},
]
QUESTIONS: list[Any] = [
    {"id": "q1", "video": "v", "type": "T", "question": "Who?", "choices": {"A": "Bo", "B": "Mara"}, "time": 65},
    {"id": "q2", "video": "v", "type": "T", "question": "Who?", "choices": {"A": "Bo", "B": "Mara"}, "time": 99},
]
GOLD: list[Any] = [{"id": "q1", "answer": "B", "oracle": [[30, 60]]}, {"id": "q2", "answer": "A", "oracle": []}]
NAMES = ("windows/v.jsonl", "questions/test.jsonl", "gold/test.jsonl")


def build(folder: Path, windows: list[Any] = WINDOWS, questions: list[Any] = QUESTIONS, gold: list[Any] = GOLD) -> Path:
    for name, rows in zip(NAMES, (windows, questions, gold), strict=True):
        put(folder, name, "".join(json.dumps(row) + "\n" for row in rows).encode())
    seal(folder, len(questions))
    return folder


def put(folder: Path, name: str, content: bytes) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def seal(folder: Path, count: int) -> None:
    """Write a manifest that fits the files as they are."""
    files = {}
    for name in NAMES:
        content = (folder / name).read_bytes()
        files[name] = {"sha256": hashlib.sha256(content).hexdigest(), "bytes": len(content)}
    manifest = {
        "format": "lvmh-data/1",
        "name": "small",
        "origin": {},
        "videos": [{"id": "v", "duration": 100, "windows": NAMES[0]}],
        "splits": {"test": {"questions": NAMES[1], "gold": NAMES[2], "count": count}},
        "files": files,
    }
    (folder / "manifest.json").write_text(json.dumps(manifest))


def test_good_data_has_no_problem(tmp_path: Path) -> None:
    assert check(build(tmp_path)) == []
    assert load(tmp_path).gold("test")


def changed(rows: list[Any], number: int, **fields: Any) -> list[Any]:
    return [{**row, **fields} if index == number else row for index, row in enumerate(rows)]


@pytest.mark.parametrize(
    ("windows", "line", "words"),
    [
        ([WINDOWS[1], WINDOWS[0], WINDOWS[2]], 2, "out of order"),
        (changed(WINDOWS, 1, start=25), 2, "overlaps the window above by 5 s"),
        (changed(WINDOWS, 1, end=30), 2, "not after its start"),
        (changed(WINDOWS, 2, start=100, end=130), 3, "after the video's 100 s"),
        (changed(WINDOWS, 0, captions=[]), 1, "neither captions nor transcript"),
        (changed(WINDOWS, 0, captions=["\x1b[2J"]), 1, "control characters"),
        (changed(WINDOWS, 0, captions=["\x00"]), 1, "control characters"),
        (changed(WINDOWS, 0, end=float("nan")), 1, "NaN"),
        (changed(WINDOWS, 0, end=float("inf")), 1, "Infinity"),
        (changed(WINDOWS, 0, start="0"), 1, "start"),
        (changed(WINDOWS, 0, captions="text"), 1, "captions"),
        (changed(WINDOWS, 0, gold="B"), 1, "gold"),
        ([*WINDOWS, []], 4, ""),
        (changed(WINDOWS, 0, captions=["x" * 1_100_000]), 1, "1048576"),
        (changed(WINDOWS, 0, captions=["\ud800"]), 1, ""),
    ],
)
def test_windows(tmp_path: Path, windows: list[Any], line: int, words: str) -> None:
    expect(build(tmp_path, windows=windows), NAMES[0], line, words)


@pytest.mark.parametrize(
    ("questions", "line", "words"),
    [
        (changed(QUESTIONS, 1, time=101), 2, "after the video's 100 s"),
        (changed(QUESTIONS, 0, time=29), 1, "before any window has ended"),
        (changed(QUESTIONS, 1, id="q1"), 2, "questions/test.jsonl:1"),
        (changed(QUESTIONS, 0, choices={"A": "Bo", "B": " bo"}), 1, "identical choices"),
        (changed(QUESTIONS, 0, choices={"A": "", "B": "Bo"}), 1, "empty choice"),
        (changed(QUESTIONS, 0, choices={"B": "Bo", "A": "Mara"}), 1, "in this order"),
        (changed(QUESTIONS, 0, choices={"A": "Bo", "B": "Mara", "D": "Ines"}), 1, "in this order"),
        (changed(QUESTIONS, 0, choices={"A": "Bo"}), 1, "choices"),
        (changed(QUESTIONS, 0, video="w"), 1, "video w"),
        (changed(QUESTIONS, 0, id="../../gold"), 1, "id"),
        (changed(QUESTIONS, 0, question=" "), 1, "empty"),
    ],
)
def test_questions(tmp_path: Path, questions: list[Any], line: int, words: str) -> None:
    expect(build(tmp_path, questions=questions), NAMES[1], line, words)


@pytest.mark.parametrize(
    ("gold", "line", "words"),
    [
        (changed(GOLD, 0, answer="C"), 1, "not among the choices"),
        (changed(GOLD, 0, answer="b"), 1, "answer"),
        (changed(GOLD, 1, id="q1"), 2, "stands above"),
        (changed(GOLD, 1, id="q9"), 2, "no question"),
        (GOLD[:1], 0, "no gold for question q2"),
        (changed(GOLD, 0, oracle=[[60, 30]]), 1, "ends before it starts"),
        (changed(GOLD, 0, oracle=[[66, 67]]), 1, "after the question"),
    ],
)
def test_gold(tmp_path: Path, gold: list[Any], line: int, words: str) -> None:
    expect(build(tmp_path, gold=gold), NAMES[2], line, words)


@pytest.mark.parametrize(
    ("change", "line", "words"),
    [
        (lambda content: b"\xef\xbb\xbf" + content, 1, "byte order mark"),
        (lambda content: content.replace(b"\n", b"\r\n", 1), 1, "carriage return"),
        (lambda content: content.replace(b"Hello", b"H\xffllo"), 2, "UTF-8"),
        (lambda content: content.replace(b"I go.", b"I g\xf4."), 3, "UTF-8"),
        (lambda content: content[:-20], 3, "no end"),
        (lambda content: content[:-20], 3, "bad JSON"),
        (lambda content: content.replace(b'"end"', b'"start"', 1), 1, "twice"),
        (lambda content: b"[" * 100_000 + b"\n" + content, 1, "bad JSON"),
        (lambda content: b"9" * 100_000 + b"\n" + content, 1, "bad JSON"),
        (lambda content: b"", 0, "no usable window"),
    ],
)
def test_bytes(tmp_path: Path, change: Callable[[bytes], bytes], line: int, words: str) -> None:
    build(tmp_path)
    put(tmp_path, NAMES[0], change((tmp_path / NAMES[0]).read_bytes()))
    seal(tmp_path, 2)
    expect(tmp_path, NAMES[0], line, words)


def expect(folder: Path, file: str, line: int, words: str) -> None:
    """One of the problems has this place and these words; all are one plain line that says what to do."""
    problems = check(folder)
    assert [p for p in problems if p.file == file and p.line == line and words in p.what + p.to_do], problems
    for problem in problems:
        assert problem.to_do
        assert str(problem).isascii()
        assert str(problem).isprintable()


def test_wrong_hash_missing_file_link_and_stray_entry(tmp_path: Path) -> None:
    build(tmp_path / "a")
    put(tmp_path / "a", NAMES[0], (tmp_path / "a" / NAMES[0]).read_bytes().replace(b"wait", b"WAIT"))
    expect(tmp_path / "a", NAMES[0], 0, "manifest")
    (build(tmp_path / "b") / NAMES[2]).unlink()
    expect(tmp_path / "b", NAMES[2], 0, "not found")
    (build(tmp_path / "c") / NAMES[1]).rename(tmp_path / "real.jsonl")
    (tmp_path / "c" / NAMES[1]).symlink_to(tmp_path / "real.jsonl")
    expect(tmp_path / "c", NAMES[1], 0, "symbolic link")
    manifest = json.loads((build(tmp_path / "d") / "manifest.json").read_text())
    manifest["files"]["gold/extra.jsonl"] = manifest["files"].pop(NAMES[0])
    (tmp_path / "d" / "manifest.json").write_text(json.dumps(manifest))
    expect(tmp_path / "d", "manifest.json", 0, "gold/extra.jsonl")
    expect(tmp_path / "d", "manifest.json", 0, "windows/v.jsonl is not listed")


def test_no_manifest_no_folder_and_a_manifest_that_is_none(tmp_path: Path) -> None:
    expect(tmp_path, "manifest.json", 0, "not found")
    expect(tmp_path / "absent", "manifest.json", 0, "not found")
    (tmp_path / "manifest.json").write_text('{"format": "lvmh-data/1", "videos": [{"id": "\\u001b[2J"}]}')
    expect(tmp_path, "manifest.json", 0, "videos.0.id")
    (tmp_path / "file").write_text("")
    assert check(tmp_path / "file")


def test_the_list_of_problems_is_bounded(tmp_path: Path) -> None:
    problems = check(build(tmp_path, windows=[{}] * (MOST * 2)))
    assert len(problems) == MOST + 1
    assert "more problems" in problems[-1].what


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
fields = (
    "id",
    "video",
    "type",
    "question",
    "choices",
    "time",
    "start",
    "end",
    "captions",
    "transcript",
    "answer",
    "oracle",
)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([*NAMES, "manifest.json"]), st.binary(max_size=200), st.booleans(), st.integers(0, 400))
def test_no_bytes_make_it_fail(tmp_path: Path, name: str, junk: bytes, splice: bool, place: int) -> None:
    build(tmp_path)
    good = (tmp_path / name).read_bytes()
    put(tmp_path, name, good[:place] + junk + good[place:] if splice else junk)
    if name != "manifest.json":
        seal(tmp_path, 2)
    agree(tmp_path)


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from([WINDOWS, QUESTIONS, GOLD]), st.integers(0, 1), st.sampled_from(fields), json_values)
def test_no_value_makes_it_fail(tmp_path: Path, rows: list[Any], row: int, field: str, value: Any) -> None:
    broken = [changed(rows, row, **{field: value}) if each is rows else each for each in (WINDOWS, QUESTIONS, GOLD)]
    agree(build(tmp_path, *broken))


def agree(folder: Path) -> None:
    """What ``check`` finds nothing wrong with can be loaded; what cannot be loaded has a problem."""
    problems = check(folder)
    assert all(problem.what and str(problem).isascii() for problem in problems)
    try:
        load(folder).gold("test")
    except DataError as error:
        assert problems, error
        assert "\n" not in str(error)


def test_reading_needs_no_permission_to_write(tmp_path: Path) -> None:
    build(tmp_path)
    for file in tmp_path.rglob("*"):
        file.chmod(0o555 if file.is_dir() else 0o444)
    assert check(tmp_path) == []
