"""An inverted index that grows by one document at a time, so that it always holds exactly the prefix seen."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int32]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


class Postings:
    """Documents by term. Adding costs one append per distinct term; reading copies one term's arrays."""

    def __init__(self) -> None:
        self.size = 0
        self._docs: dict[str, array[int]] = {}
        self._counts: dict[str, array[int]] = {}
        self._lengths: array[int] = array("i")

    def add(self, counts: Mapping[str, int]) -> None:
        """Append the next document, given as its terms' counts."""
        for term, count in counts.items():
            self.mark(term, self.size, count)
        self._lengths.append(sum(counts.values()))
        self.size += 1

    def mark(self, term: str, document: int, count: int = 1) -> None:
        """Note that ``document`` holds ``term``; the caller does so once per pair."""
        docs = self._docs.get(term)
        if docs is None:
            docs = self._docs[term] = array("i")
            self._counts[term] = array("i")
        docs.append(document)
        self._counts[term].append(count)

    def get(self, term: str) -> tuple[Ints, Ints]:
        """Documents that hold ``term`` and how often; two empty arrays for an unknown term."""
        docs = self._docs.get(term)
        if docs is None:
            return np.empty(0, np.int32), np.empty(0, np.int32)
        return np.array(docs, np.int32), np.array(self._counts[term], np.int32)

    def lengths(self) -> Ints:
        """Terms in each document, shape (n,)."""
        return np.array(self._lengths, np.int32)

    def overlap(self, terms: Iterable[str]) -> Floats:
        """How many of the distinct ``terms`` each document holds, shape (n,)."""
        docs = [self._docs[term] for term in dict.fromkeys(terms) if term in self._docs]
        if not docs:
            return np.zeros(self.size)
        return np.bincount(np.concatenate(docs), minlength=self.size).astype(np.float64)
