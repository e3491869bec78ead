"""Selectors: from scores to positions of windows. Ties go to the earlier window, so that results repeat."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.postings import Floats

SHARE = 0.6
"""Share of the best score that makes a match strong. Not given by the source: its anchor threshold is not either."""

FEW = 100
"""Positions that are picked one after the other; for more, the scores are sorted."""


def uniform(size: int, count: int) -> list[int]:
    """``count`` positions spread evenly over ``size`` windows, in order of time."""
    if count >= size:
        return list(range(size))
    return [int((step + 0.5) * size / count) for step in range(max(count, 0))]


def top(scores: Floats, count: int) -> list[int]:
    """The ``count`` best positions of ``scores`` (n,), best first; a position without a positive score never."""
    if count > FEW:
        return [position for position in np.argsort(-scores, kind="stable")[:count].tolist() if scores[position] > 0]
    left, found = scores.copy(), []
    for _ in range(min(count, len(scores))):
        best = int(left.argmax())  # the first of equals; far cheaper than any sorting
        if left[best] <= 0:
            break
        found.append(best)
        left[best] = 0
    return found


def top_each(scores: Floats, count: int) -> list[list[int]]:
    """For each column of ``scores`` (n, k), its ``count`` best positions."""
    return [top(column, count) for column in scores.T]


def latest(scores: Floats, count: int, share: float = SHARE) -> list[int]:
    """The last ``count`` positions that score at least ``share`` of the best, latest first."""
    return _strong(scores, share)[::-1][:count]


def earliest(scores: Floats, count: int, share: float = SHARE) -> list[int]:
    """The first ``count`` positions that score at least ``share`` of the best, earliest first."""
    return _strong(scores, share)[:count]


def _strong(scores: Floats, share: float) -> list[int]:
    if not len(scores) or scores.max() <= 0:
        return []
    return [int(position) for position in np.flatnonzero(scores >= share * scores.max())]


def neighbours(positions: Sequence[int], width: int, size: int) -> list[int]:
    """``positions`` with up to ``width`` windows on both sides, in order of time, each once."""
    near = {near for at in positions for near in range(at - width, at + width + 1) if 0 <= near < size}
    return sorted(near)


def interleave(lists: Sequence[Sequence[int]]) -> list[int]:
    """First of every list, then second of every list, ...; each position once."""
    longest = max(map(len, lists), default=0)
    return list(dict.fromkeys(one[rank] for rank in range(longest) for one in lists if rank < len(one)))
