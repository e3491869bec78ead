"""Inverted indexes that grow by one document at a time, so that they always hold exactly the prefix seen.

An entry is one integer in an array of its term, so that a year of windows is a few arrays and no heap of objects,
which every fork would copy piece by piece.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]

_NONE: Ints = np.empty(0, np.int64)
_COUNT_BITS = 16
_MOST = (1 << _COUNT_BITS) - 1
_MASK_BITS = 5


class Postings:
    """Documents by term, and how often each holds it. Adding costs one append per distinct term."""

    def __init__(self) -> None:
        self.size = 0
        self._entries: dict[str, array[int]] = {}
        self._lengths: array[int] = array("i")

    def add(self, counts: Mapping[str, int]) -> None:
        """Append the next document, given as its terms' counts (each kept up to 65,535)."""
        first, entries = self.size << _COUNT_BITS, self._entries
        for term, count in counts.items():
            entry = first | (count if count < _MOST else _MOST)
            try:
                entries[term].append(entry)
            except KeyError:
                entries[term] = array("q", (entry,))
        self._lengths.append(sum(counts.values()))
        self.size += 1

    def get(self, term: str) -> tuple[Ints, Ints]:
        """Documents that hold ``term``, in order, and how often; two empty arrays for an unknown term."""
        entries = _entries(self._entries.get(term))
        return entries >> _COUNT_BITS, entries & _MOST

    def lengths(self) -> Ints:
        """Terms in each document, shape (n,)."""
        return np.array(self._lengths, np.int64)

    def overlap(self, terms: Iterable[str]) -> Floats:
        """How many of the distinct ``terms`` each document holds, shape (n,)."""
        scores = np.zeros(self.size)
        for term in dict.fromkeys(terms):
            np.add.at(scores, self.get(term)[0], 1.0)
        return scores

    def holding(self, terms: Iterable[str]) -> int:
        """How many documents hold any of ``terms``."""
        held = np.zeros(self.size, np.bool_)
        for term in terms:
            held[self.get(term)[0]] = True
        return int(np.count_nonzero(held))


class FieldPostings:
    """Records by term, and in which fields each holds it: bit f of a mask stands for field f, at most five."""

    def __init__(self) -> None:
        self.size = 0
        self._entries: dict[str, array[int]] = {}

    def add(self, masks: Mapping[str, int]) -> None:
        """Append the next record, given as the mask of each of its terms."""
        first, entries = self.size << _MASK_BITS, self._entries
        for term, mask in masks.items():
            try:
                entries[term].append(first | mask)
            except KeyError:
                entries[term] = array("I", (first | mask,))
        self.size += 1

    def get(self, term: str) -> tuple[Ints, Ints]:
        """Records that hold ``term``, in order, and their masks."""
        entries = _entries(self._entries.get(term))
        return entries >> _MASK_BITS, entries & ((1 << _MASK_BITS) - 1)

    def frequency(self, term: str) -> int:
        """How many records hold ``term``."""
        return len(self._entries.get(term, ()))


def _entries(held: array[int] | None) -> Ints:
    """A copy: a view would keep the array from growing."""
    return _NONE if held is None else np.frombuffer(held, held.typecode).astype(np.int64)
