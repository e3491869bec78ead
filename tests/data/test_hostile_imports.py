"""Whatever stands in the published files: a data set that the check can read, or one clear line."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.data.check import check
from harness.data.ego_r1 import import_ego_r1
from harness.data.lvbench import import_lvbench
from harness.data.native import load
from harness.data.videomme import import_videomme
from harness.errors import UserError

SRT = "1\n00:00:01,000 --> 00:00:03,500\nHello there.\n"
ODD = st.one_of(
    st.none(),
    st.integers(-1, 10**12),
    st.floats(allow_nan=False),
    st.text(max_size=30),
    st.sampled_from(
        ["", "A", "DAY1", "DAY0", "day7", "12000000", "120000000-12000000", "99999999", "١٢٣٤٥٦٧٨", "../x", "\ud800"]
    ),
    st.lists(st.sampled_from(["A. x", "B. y", "", "reasoning", "12000000", 3, None]), max_size=4),
    st.dictionaries(
        st.sampled_from(["date", "time", "time_list"]), st.sampled_from(["DAY1", "12000000", "", 3, None]), max_size=3
    ),
)
QA: dict[str, Any] = {
    "ID": "1", "query_time": {"date": "DAY1", "time": "12003000"}, "type": "EntityLog", "question": "Who?",
    "choice_a": "w", "choice_b": "x", "choice_c": "y", "choice_d": "z", "answer": "B",
    "target_time": {"date": "DAY1", "time": "12000500"},
}  # fmt: skip
ROW: dict[str, Any] = {
    "video_id": "001", "duration": "long", "domain": "x", "sub_category": "y", "url": "z", "videoID": "v1",
    "question_id": "001-1", "task_type": "OCR", "question": "Which?", "options": ["A. a", "B. b"], "answer": "B",
}  # fmt: skip
ITEM: dict[str, Any] = {
    "uid": 1, "question": "Who?\n(A) a\n(B) b", "answer": "B", "question_type": ["reasoning"],
    "time_reference": "00:10-00:20",
}  # fmt: skip


def ego_r1(folder: Path, row: dict[str, Any]) -> None:
    (folder / "manual-benchmark").mkdir()
    (folder / "manual-benchmark" / "A1_JAKE.json").write_text(json.dumps([row]))
    told = [{"start_time": "12000000", "end_time": "12003000", "text": "I wait.", "date": "DAY1"}]
    (folder / "EgoLifeCap" / "A1_JAKE").mkdir(parents=True)
    (folder / "EgoLifeCap" / "A1_JAKE" / "A1_JAKE_30sec.json").write_text(json.dumps(told))
    import_ego_r1(folder, folder / "out")


def videomme(folder: Path, row: dict[str, Any]) -> None:
    (folder / "subtitle").mkdir()
    (folder / "subtitle" / "v1.srt").write_text(SRT)
    try:
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist([row]), folder / "test-0.parquet")
    except (pyarrow.ArrowException, UnicodeEncodeError, OverflowError):  # no file can hold it
        return
    import_videomme(folder, folder / "out")


def template(folder: Path, row: dict[str, Any]) -> None:
    (folder / "subtitle").mkdir()
    (folder / "subtitle" / "001.srt").write_text(SRT)
    video = {name: row.get(name) for name in ("video_id", "duration", "sub_category")}
    (folder / "x.json").write_text(json.dumps([{**video, "questions": [row]}]))
    import_videomme(folder / "x.json", folder / "out")


def lvbench(folder: Path, row: dict[str, Any]) -> None:
    (folder / "video_info.meta.jsonl").write_text(json.dumps({"key": "k1", "type": "tv", "qa": [row]}))
    (folder / "k1.srt").write_text(SRT)
    import_lvbench(folder, folder / "out", folder)


@pytest.mark.parametrize(("importer", "good"), [(ego_r1, QA), (videomme, ROW), (template, ROW), (lvbench, ITEM)])
@settings(deadline=None, max_examples=60)
@given(st.data())
def test_one_odd_field(
    importer: Callable[[Path, dict[str, Any]], None], good: dict[str, Any], data: st.DataObject
) -> None:
    row = {**good, data.draw(st.sampled_from(sorted(good))): data.draw(ODD)}
    folder = Path(tempfile.mkdtemp())
    try:
        importer(folder, row)
    except UserError as error:
        assert "\n" not in str(error)
    else:
        if (folder / "out").exists():
            assert load(folder / "out").splits
            assert all("bad JSON" not in problem.what for problem in check(folder / "out"))
    finally:
        shutil.rmtree(folder)
