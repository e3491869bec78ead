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
MASK_BITS = 5
_COUNT_BITS = 16
_MASK = (1 << MASK_BITS) - 1
ONE = 1 << MASK_BITS
"""What one more occurrence adds to a value of ``add_values``."""
_MOST = (1 << _COUNT_BITS) - 1
_LARGEST = _MOST << MASK_BITS
_DOCUMENT = MASK_BITS + _COUNT_BITS


class Postings:
    """Documents by term: how often each holds it, and in which of up to five fields (a bit of a mask for each).

    An entry is document, count and mask in one integer. Adding costs one append per distinct term.
    """

    def __init__(self) -> None:
        self.size = 0
        self._entries: dict[str, array[int]] = {}
        self._lengths: array[int] = array("i")

    def add(self, counts: Mapping[str, int]) -> None:
        """Append the next document, given as its terms' counts (each kept up to 65,535)."""
        self.add_values({term: min(count, _MOST) << MASK_BITS for term, count in counts.items()}, sum(counts.values()))

    def add_values(self, values: Mapping[str, int], length: int) -> None:
        """Append the next document: of each term ``ONE`` times its count, plus its mask; ``length`` is in terms."""
        first, entries = self.size << _DOCUMENT, self._entries
        for term, value in values.items():
            entry = first | (value if value < _LARGEST else _LARGEST | value & _MASK)
            try:
                entries[term].append(entry)
            except KeyError:
                entries[term] = array("q", (entry,))
        self._lengths.append(length)
        self.size += 1

    def get(self, term: str) -> tuple[Ints, Ints]:
        """Documents that hold ``term``, in order, and how often; two empty arrays for an unknown term."""
        entries = self._of(term)
        counts = entries >> MASK_BITS & _MOST
        held = counts > 0
        return (entries >> _DOCUMENT)[held], counts[held]

    def masks(self, term: str) -> tuple[Ints, Ints]:
        """Documents of which some field holds ``term``, or their text does, in order, and the masks."""
        entries = self._of(term)
        return entries >> _DOCUMENT, entries & _MASK

    def frequency(self, term: str) -> int:
        """Length of what ``masks`` returns."""
        return len(self._entries.get(term, ()))

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

    def _of(self, term: str) -> Ints:
        """A copy: a view would keep the array from growing."""
        held = self._entries.get(term)
        return _NONE if held is None else np.array(held, np.int64)
