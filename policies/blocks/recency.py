"""Temporal rerank: after lexical scoring, later or earlier records first where the question asks for it."""

from __future__ import annotations

import re

import numpy as np

from policies.blocks.postings import Floats, Ints
from policies.blocks.select import top

STRENGTH = 2.0
"""Largest shift. Not given by the source: below one EVENT term, so that it orders like matches and no more."""

_LATE = re.compile(r"\b(last|latest|previous)\b", re.IGNORECASE)
_EARLY = re.compile(r"\b(first|earliest)\b(?!\s+floor)", re.IGNORECASE)
"""The words are given; that the first floor is a place is ours."""


def direction(question: str) -> int:
    """1 for later records ("last", "latest", "previous"), -1 for earlier ("first", "earliest"), else or both 0."""
    return bool(_LATE.search(question)) - bool(_EARLY.search(question))


def hint(question: str) -> str:
    """The direction in words, as the context shows it."""
    return {1: "prefer later records", -1: "prefer earlier records", 0: "none"}[direction(question)]


def temporal(scores: Floats, question: str, strength: float = STRENGTH) -> Floats:
    """``scores`` (n,) or (n, k) shifted by time, at most by ``strength``; a record without a match stays at 0."""
    wanted = direction(question)
    if not wanted or not len(scores):
        return scores
    rows = scores.T
    return (rows + (rows > 0) * _shift(np.arange(len(scores)), len(scores), wanted, strength)).T


def ranked(
    scores: Floats, count: int, wanted: int, size: int, positions: Ints | None = None
) -> list[tuple[int, float]]:
    """The ``count`` best after the temporal rerank in direction ``wanted``: (position, score), best first.

    ``scores`` (m,) are of the records at ``positions`` (m,), in order, or of all ``size`` records. The same as
    ``top(temporal(scores))``, without shifting what cannot come up.
    """
    near = np.array(top(scores, count), np.int64)
    if not wanted or not len(near):
        shifted = scores[near]
    else:
        least = scores[near[-1]] - STRENGTH if len(near) == count else 0.0
        near = np.flatnonzero((scores >= least) & (scores > 0))
        places = near if positions is None else positions[near]
        shifted = scores[near] + _shift(places, size, wanted, STRENGTH)
        best = top(shifted, count)
        near, shifted = near[best], shifted[best]
    return list(zip((near if positions is None else positions[near]).tolist(), shifted.tolist(), strict=True))


def _shift(positions: Ints, size: int, wanted: int, strength: float) -> Floats:
    place = positions / max(size - 1, 1) if size > 1 else np.ones(len(positions))
    return strength * (place if wanted > 0 else 1 - place)
