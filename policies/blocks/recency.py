"""Temporal rerank: after lexical scoring, later or earlier records first where the question asks for it."""

from __future__ import annotations

import re

import numpy as np

from policies.blocks.postings import Floats

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
    place = np.linspace(0, 1, len(scores)) if len(scores) > 1 else np.ones(1)
    shift = strength * (place if wanted > 0 else 1 - place)
    rows = scores.T  # the shift is finer than single precision
    return (rows + (rows > 0) * shift).T
