"""Which questions are asked before a candidate is measured: a few of one video of the development split."""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from dataclasses import dataclass

from harness.data.native import Dataset, Question
from harness.seeds import opaque_id
from policies.contract import Query, Window


@dataclass(frozen=True, slots=True)
class Ground:
    """One video's stream up to its last question, and the questions under ids that say nothing."""

    video: str
    windows: tuple[Window, ...]
    queries: tuple[Query, ...]


def of_one_video(data: Dataset, split: str, count: int, draw: random.Random) -> list[Question]:
    """All questions of one video of the split, in order of (time, id): of one drawn among those that have ``count``,
    else of the one that has most."""
    by_video: dict[str, list[Question]] = defaultdict(list)
    for question in data.questions(split):
        by_video[question.video].append(question)
    enough = sorted(video for video, found in by_video.items() if len(found) >= count)
    video = draw.choice(enough) if enough else max(sorted(by_video), key=lambda v: len(by_video[v]))
    return sorted(by_video[video], key=lambda q: (q.time, q.id))


def ground(data: Dataset, split: str, count: int, seed: int) -> Ground:
    """``count`` questions of one video of the split, spread over its time, the same for every candidate of a run.

    From every stretch of the video one is drawn: a policy that behaves only at the beginning is seen at the end.
    """
    draw = random.Random(seed)
    found = of_one_video(data, split, count, draw)
    video = found[0].video
    count = min(count, len(found))
    chosen = [draw.choice(found[n * len(found) // count : (n + 1) * len(found) // count]) for n in range(count)]
    key = hashlib.sha256(f"{seed}/{data.digest}".encode()).digest()
    queries = [Query(opaque_id(q.id, key), q.type, q.question, dict(q.choices), q.time) for q in chosen]
    last = max(q.time for q in queries)
    windows = tuple(w for w in data.videos[video].windows if w.end <= last)
    return Ground(video, windows, tuple(sorted(queries, key=lambda q: (q.time, q.id))))
