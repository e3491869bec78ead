"""A driver that keeps the barrier rule in process, and a small reader of the published EgoLife files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from policies.contract import Answer, Query, Utterance, Window
from tests.endpoint import endpoint
from tests.policies.driving import Serve, drive

__all__ = ["endpoint"]

SHARED = Path(os.environ.get("LVMH_SHARED", Path(__file__).resolve().parents[3] / "shared"))
CLIP_SECONDS = 30.0

Run = Callable[..., dict[str, Answer]]


def _run(
    policy: Any, windows: Sequence[Window], queries: Sequence[Query], serve: Serve, batch: int = 64
) -> dict[str, Answer]:
    answers: dict[str, Answer] = {}
    seen = 0
    for query in sorted(queries, key=lambda q: (q.time, q.id)):
        while seen < len(windows) and windows[seen].end <= query.time:
            last = seen
            while last < len(windows) and last - seen < batch and windows[last].end <= query.time:
                last += 1
            drive(policy.observe(tuple(windows[seen:last])), serve)
            drive(policy.settle(), serve)
            seen = last
        answers[query.id] = drive(policy.answer(query), serve)
    return answers


@pytest.fixture(scope="session")
def run() -> Run:
    """Answers by query id; each question is put once exactly the windows with end <= t_q were observed."""
    return _run


@dataclass(frozen=True)
class EgoLife:
    windows: tuple[Window, ...]
    queries: tuple[Query, ...]
    gold: dict[str, str]

    def days(self, first: int, last: int) -> tuple[Query, ...]:
        return tuple(query for query in self.queries if first <= query.time // 86_400 + 1 <= last)


@pytest.fixture(scope="session")
def egolife() -> EgoLife:
    root = SHARED / "data" / "egolife"
    if not root.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("the EgoLifeQA files are absent (LVMH_SHARED names the folder that holds data/)")
        pytest.skip("the EgoLifeQA files are absent (LVMH_SHARED names the folder that holds data/)")
    clips = []
    for path in sorted((root / "EgoLifeCap" / "Sync").glob("*.json")):
        clips += [_clip(clip) for clip in json.loads(path.read_text(encoding="utf-8"))]
    clips.sort(key=lambda clip: (clip[1], clip[0]))
    windows = tuple(
        Window(at, start, end, lines, spoken, False) for at, (start, end, lines, spoken) in enumerate(clips)
    )
    queries, gold = [], {}
    for row in json.loads((root / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json").read_text(encoding="utf-8")):
        asked = _seconds(row["query_time"]["date"][3:], row["query_time"]["time"])
        choices = {letter: row[f"choice_{letter.lower()}"] for letter in "ABCD"}
        queries.append(Query(row["ID"], row["type"], row["question"], choices, asked))
        gold[row["ID"]] = row["answer"]
    return EgoLife(windows, tuple(sorted(queries, key=lambda query: (query.time, query.id))), gold)


def _seconds(day: str, stamp: str) -> float:
    """``HHMMSS`` or ``HHMMSSFF`` (FF a frame at 20 a second) on the video's axis."""
    frame = int(stamp[6:8]) / 20 if len(stamp) == 8 else 0.0
    return (int(day) - 1) * 86_400 + int(stamp[:2]) * 3_600 + int(stamp[2:4]) * 60 + int(stamp[4:6]) + frame


def _clip(clip: dict[str, Any]) -> tuple[float, float, tuple[str, ...], tuple[Utterance, ...]]:
    day, _, _, stamp = clip["video_file"].removesuffix(".mp4").split("_")
    start = _seconds(day[3:], stamp)
    ends = [_seconds(day[3:], str(item["end"]).zfill(6)) for item in clip["data"]]
    captions, spoken = [], []
    for item in clip["data"]:
        if item["type"] == "caption":
            captions.append(item["text"])
        else:
            speaker, colon, text = item["text"].replace("\uff1a", ":").partition(":")
            spoken.append(Utterance(speaker.strip(), text.strip()) if colon else Utterance("", item["text"]))
    return start, max([start + CLIP_SECONDS, *ends]), tuple(captions), tuple(spoken)
