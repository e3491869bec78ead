"""Lines with times become windows; frames do not, but windows say whether they have any."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from harness.construction.lines import Line
from policies.contract import Utterance, Window

WINDOW = 30.0
"""Seconds of a window (method, section 3)."""
SHORTEST = 1.0
"""Seconds that a video's last window has at least; a shorter rest belongs to the window before. Not given by the
source: containers often end some frames after the last full second."""
ROUNDING = 1e-6


@dataclass
class Draft:
    """A window being put together; times in seconds on the video's axis."""

    start: float
    end: float
    lines: list[Line] = field(default_factory=list)


def grid(start: float, end: float) -> list[Draft]:
    """Windows of ``WINDOW`` seconds from ``start`` on, without gaps; the last ends at ``end``."""
    count = max(1, math.ceil((end - start) / WINDOW - ROUNDING))
    if count > 1 and end - (start + (count - 1) * WINDOW) < SHORTEST:
        count -= 1
    cuts = [start + number * WINDOW for number in range(count)]
    return [Draft(at, after) for at, after in zip(cuts, [*cuts[1:], end], strict=True)]


def put(filmed: Sequence[Draft], lines: Iterable[Line], origin: float = 0.0) -> list[Draft]:
    """Each line into the first window that ends no earlier than the line, so that no window tells what comes after it.

    ``filmed`` are the windows that there are anyway, in order, gaps between them allowed. Lines outside them open
    windows of their own, on a grid from ``origin`` or from where the window before ends; such a window reaches back
    to where its lines begin, as far as no other window stands there. Returns all windows, in order.
    """
    extra: dict[float, Draft] = {}
    for line in lines:
        place = bisect_left(filmed, line.end - ROUNDING, key=lambda draft: draft.end)
        free = filmed[place - 1].end if place else origin
        ends = filmed[place].start if place < len(filmed) else math.inf
        if line.end > ends + ROUNDING or ends - free <= ROUNDING:
            filmed[place].lines.append(line)
            continue
        start = free + max(0, math.ceil((line.end - free) / WINDOW - ROUNDING) - 1) * WINDOW
        extra.setdefault(start, Draft(start, min(start + WINDOW, ends))).lines.append(line)
    drafts = sorted([*filmed, *extra.values()], key=lambda draft: draft.start)
    for before, draft in zip([Draft(origin, origin), *drafts], drafts, strict=False):
        if draft.start in extra and extra[draft.start] is draft:
            draft.start = max(before.end, min(draft.start, *(line.start for line in draft.lines)))
    if drafts and drafts[-1] in extra.values():
        last = drafts[-1]
        last.end = max(*(line.end for line in last.lines), last.start + SHORTEST)
    return drafts


def finished(drafts: Iterable[Draft], frames: Sequence[float]) -> tuple[Window, ...]:
    """The windows that hold text, lines in order of time; ``frames`` are the times of all frames, in order."""
    kept = sorted((draft for draft in drafts if draft.lines), key=lambda draft: (draft.end, draft.start))
    windows = []
    for index, draft in enumerate(kept):
        lines = sorted(draft.lines, key=lambda line: (line.start, line.end))
        captions = tuple(line.text for line in lines if not line.spoken)
        said = tuple(Utterance(line.speaker, line.text) for line in lines if line.spoken)
        seen = bisect_left(frames, round(draft.start, 3)) < bisect_left(frames, round(draft.end, 3))  # as written
        windows.append(Window(index, draft.start, draft.end, captions, said, seen))
    return tuple(windows)
