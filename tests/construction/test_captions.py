"""Caption files in their three shapes, and times in all of theirs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.construction import axis
from harness.construction.captions import read_captions
from harness.construction.lines import Line
from harness.errors import UserError


def read(tmp_path: Path, name: str, text: str, beginning: float = 0.0) -> list[tuple[Any, ...]]:
    (tmp_path / name).write_text(text, encoding="utf-8")
    lines = read_captions(tmp_path / name, beginning).lines
    return [(line.start, line.end, line.text, line.speaker if line.spoken else None) for line in lines]


ENTRIES = [
    {"start": 0, "end": 4.5, "text": "I open the fridge"},
    {"start": "00:10", "end": "0:00:12.5", "caption": "I take milk\nout", "confidence": 0.4},
    {"start": "DAY1T00:00:20", "text": ["I pour it", "", "I drink"]},
    {"start": 21, "end": 22, "text": "你好", "speaker": "小明"},
    {"start": 30.25, "text": "I leave"},
    {"start": 100, "end": 101, "text": "mumbling", "speaker": ""},
]
WANTED = [
    (0.0, 4.5, "I open the fridge", None),
    (10.0, 12.5, "I take milk out", None),
    (20.0, 21.0, "I pour it", None),
    (20.0, 21.0, "I drink", None),
    (21.0, 22.0, "你好", "小明"),
    (30.25, 60.25, "I leave", None),
    (100.0, 101.0, "mumbling", ""),
]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(ENTRIES)),
        ("a.json", json.dumps({"video": "x", "captions": ENTRIES}, ensure_ascii=False)),
        ("a.jsonl", "\n".join(json.dumps(entry) for entry in reversed(ENTRIES)) + "\n\n"),
    ],
)
def test_json_and_json_lines(tmp_path: Path, name: str, text: str) -> None:
    assert read(tmp_path, name, text) == WANTED


def test_plain_text(tmp_path: Path) -> None:
    text = (
        "00:00 I open the fridge\nand look\n\n[10.5] I take milk\n[20 - 22.5]: 12 people\n0:00:30-0:00:35: I leave\n"
        "DAY1T00:01:00 | outside\n00:01:10 --> 00:01:12 a dog"
    )
    assert read(tmp_path, "a.txt", text) == [
        (0.0, 10.5, "I open the fridge and look", None),
        (10.5, 20.0, "I take milk", None),
        (20.0, 22.5, "12 people", None),
        (30.0, 35.0, "I leave", None),
        (60.0, 70.0, "outside", None),
        (70.0, 72.0, "a dog", None),
    ]


def test_times_count_from_the_beginning_unless_they_name_a_day(tmp_path: Path) -> None:
    text = "00:10 one\nDAY2T11:00:00 two\n"
    assert [line[0] for line in read(tmp_path, "a.txt", text, beginning=3_600.0)] == [3_610.0, 86_400.0 + 39_600.0]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("a.json", "", "is empty"),
        ("a.json", "[]", "holds no captions"),
        ("a.json", "{}", "neither a list of captions"),
        ("a.json", '{"start": 1}', "neither a list of captions"),
        ("a.json", "[{]", "is not JSON"),
        ("a.json", "[" * 100_000, "is not JSON"),
        ("a.json", '[{"start": 1, "text": "a"}, 5]', "caption 2:"),
        ("a.json", '[{"start": 1}]', "caption 1: text: Field required"),
        ("a.json", '[{"start": NaN, "text": "a"}]', "caption 1:"),
        ("a.json", '[{"start": 1e400, "text": "a"}]', "caption 1:"),
        ("a.json", f'[{{"start": 1{"0" * 400}, "text": "a"}}]', "caption 1:"),
        ("a.json", '[{"start": -1, "text": "a"}]', "caption 1:"),
        ("a.json", '[{"start": true, "text": "a"}]', "caption 1:"),
        ("a.json", '[{"start": "noon", "text": "a"}]', "caption 1: a time is none; write seconds"),
        ("a.json", '[{"start": 5, "end": 4, "text": "a"}]', "caption 1: ends at 4.0, before its start"),
        ("a.json", '[{"start": 5, "text": " "}, {"start": 6, "text": []}]', "all of its 2 captions are empty"),
        ("a.json", json.dumps([{"start": 5, "text": "a" * 20_001}]), "20001 characters"),
        ("a.jsonl", '{"start": 1, "text": "a"}\nhello\n', "a.jsonl:2: is not JSON"),
        ("a.txt", "A title\n00:01 a\n", "a.txt:1: begins with no time"),
        ("a.txt", "00:01\n00:02 \n", "all of its 2 captions are empty"),
        ("a.txt", "00:99 a\n", "a.txt:1: a time is none"),
    ],
)
def test_what_cannot_be_read_is_one_line(tmp_path: Path, name: str, text: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        read(tmp_path, name, text)
    assert says in str(caught.value) and name in str(caught.value) and "\n" not in str(caught.value)


def test_empty_captions_among_others_are_told_of(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"start": 1, "end": 2, "text": "a"}, {"start": 3, "text": ""}]')
    done = read_captions(tmp_path / "a.json", 0.0)
    assert done.lines == (Line(1.0, 2.0, "a", False),)
    assert "1 empty caption(s) are left out" in done.notes[0]


@pytest.mark.parametrize(
    ("value", "at"),
    [
        (90.5, 190.5), ("90.5", 190.5), ("01:30", 190.0), ("1:00:00,5", 3_700.5), ("DAY1T00:00", 0.0),
        ("day3 23:59:59.5", 3 * 86_400 - 0.5), ("", None), ("DAY0T00:00", None), ("DAY1T24:00", None), ("1:60", None),
        ("-5", None), ("1e3", None), ("9" * 11, None), ("٣", None),
    ],
)  # fmt: skip
def test_times(value: Any, at: float | None) -> None:
    assert axis.seconds(value, 100.0) == at


@pytest.mark.parametrize(
    ("stem", "at"),
    [
        ("DAY1_A1_JAKE_11093010", 40_170.5), ("A1_JAKE_DAY1_11093005", 40_170.25), ("DAY2_110000", 126_000.0),
        ("walk-DAY2T11-00-05", 126_005.0), ("day2t110005.cut", 126_005.0), ("holiday1_110000", None),
        ("DAY1_250000", None), ("DAY1_1100", None), ("DAY1_11093020", None), ("walk", None),
    ],
)  # fmt: skip
def test_times_in_names(stem: str, at: float | None) -> None:
    assert axis.named(stem) == at


def test_shown() -> None:
    assert axis.shown(126_005.9) == "DAY2T11:00:05"
