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


def ranked(scores: Floats, count: int, wanted: int, strength: float = STRENGTH) -> list[tuple[int, float]]:
    """The ``count`` best of ``scores`` (n,) after the temporal rerank in direction ``wanted``: (position, score).

    The same as ``top(temporal(scores))``, without shifting what cannot come up.
    """
    best = top(scores, count)
    if not wanted or not best:
        return [(at, float(scores[at])) for at in best]
    least = scores[best[-1]] - strength if len(best) == count else 0.0
    near = np.flatnonzero((scores >= least) & (scores > 0))
    shifted = scores[near] + _shift(near, len(scores), wanted, strength)
    return [(int(near[at]), float(shifted[at])) for at in top(shifted, count)]


def _shift(positions: Ints, size: int, wanted: int, strength: float) -> Floats:
    place = positions / max(size - 1, 1) if size > 1 else np.ones(len(positions))
    return strength * (place if wanted > 0 else 1 - place)
