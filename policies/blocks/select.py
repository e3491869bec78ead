"""Selectors: from scores to positions of windows. Ties go to the earlier window, so that results repeat."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from policies.blocks.postings import Floats

SHARE = 0.6
"""Share of the best score that makes a match strong. Not given by the source: its anchor threshold is not either."""


def uniform(size: int, count: int) -> list[int]:
    """``count`` positions spread evenly over ``size`` windows, in order of time."""
    if count >= size:
        return list(range(size))
    return [int((step + 0.5) * size / count) for step in range(max(count, 0))]


def top(scores: Floats, count: int) -> list[int]:
    """The ``count`` best positions of ``scores`` (n,), best first; a position without a positive score never.

    Sorts only the blocks of about sqrt(n) positions whose maxima are the ``count`` best: no other holds one of them.
    """
    size = len(scores)
    width = max(math.isqrt(size), 1)
    starts = np.arange(0, size, width)
    near = np.arange(size)
    if 0 < count < len(starts):
        blocks = np.argsort(-np.maximum.reduceat(scores, starts), kind="stable")[:count]
        near = (np.sort(starts[blocks])[:, None] + np.arange(width)).ravel()
        near = near[near < size]
    found = scores[near]
    best = near[np.argsort(-found, kind="stable")[: max(count, 0)]]
    return [position for position in best.tolist() if scores[position] > 0]


def top_each(scores: Floats, count: int) -> list[list[int]]:
    """For each column of ``scores`` (n, k), its ``count`` best positions."""
    return [top(scores[:, column], count) for column in range(scores.shape[1])]


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
