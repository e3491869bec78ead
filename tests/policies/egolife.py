"""A small reader of the published EgoLife files, for measuring policies; the importer proper is ``harness.data``."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from policies.contract import Query, Utterance, Window

SHARED = Path(os.environ.get("LVMH_SHARED", Path(__file__).resolve().parents[3] / "shared"))
ROOT = SHARED / "data" / "egolife"
CLIP_SECONDS = 30.0


@dataclass(frozen=True)
class EgoLife:
    windows: tuple[Window, ...]
    queries: tuple[Query, ...]
    gold: dict[str, str]

    def days(self, first: int, last: int) -> tuple[Query, ...]:
        return tuple(q for q in self.queries if first <= q.time // 86_400 + 1 <= last)


def load() -> EgoLife:
    if not ROOT.is_dir():
        if os.environ.get("CI") == "true":
            pytest.fail("the EgoLifeQA files are absent (set LVMH_SHARED)")
        pytest.skip("the EgoLifeQA files are absent (set LVMH_SHARED)")
    raw = []
    for path in sorted((ROOT / "EgoLifeCap" / "Sync").glob("*.json")):
        raw += [_clip(clip) for clip in json.loads(path.read_text(encoding="utf-8"))]
    raw.sort(key=lambda clip: (clip[1], clip[0]))
    windows = tuple(Window(i, s, e, c, t, False) for i, (s, e, c, t) in enumerate(raw))
    queries, gold = [], {}
    for row in json.loads((ROOT / "EgoLifeQA" / "EgoLifeQA_A1_JAKE.json").read_text(encoding="utf-8")):
        when = row["query_time"]
        choices = {letter: row[f"choice_{letter.lower()}"] for letter in "ABCD"}
        queries.append(
            Query(row["ID"], row["type"], row["question"], choices, _seconds(when["date"][3:], when["time"]))
        )
        gold[row["ID"]] = row["answer"]
    return EgoLife(windows, tuple(sorted(queries, key=lambda q: (q.time, q.id))), gold)


def _seconds(day: str, stamp: str) -> float:
    """``HHMMSS`` or ``HHMMSSFF`` (FF a frame at 20 a second) on the video's axis."""
    frame = int(stamp[6:8]) / 20 if len(stamp) == 8 else 0.0
    return (int(day) - 1) * 86_400 + int(stamp[:2]) * 3_600 + int(stamp[2:4]) * 60 + int(stamp[4:6]) + frame


def _clip(clip: dict) -> tuple[float, float, tuple[str, ...], tuple[Utterance, ...]]:
    day, _, _, stamp = clip["video_file"].removesuffix(".mp4").split("_")
    start = _seconds(day[3:], stamp)
    ends = [_seconds(day[3:], str(item["end"]).zfill(6)) for item in clip["data"]]
    captions, transcript = [], []
    for item in clip["data"]:
        if item["type"] == "caption":
            captions.append(item["text"])
        else:
            speaker, colon, text = item["text"].replace("：", ":").partition(":")
            transcript.append(Utterance(speaker.strip(), text.strip()) if colon else Utterance("", item["text"]))
    return start, max([start + CLIP_SECONDS, *ends]), tuple(captions), tuple(transcript)
