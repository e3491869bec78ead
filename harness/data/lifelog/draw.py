"""Random draws that are the same on every Python version: only ``random()`` of a seeded generator is used."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Draw:
    """A source of draws for one purpose; the same names give the same draws."""

    def __init__(self, *names: str | int) -> None:
        digest = hashlib.sha256("/".join(str(name) for name in names).encode()).digest()
        self._random = random.Random(int.from_bytes(digest[:8], "big")).random

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self._random() < probability

    def integer(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self._random() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One item of a sequence that is not empty."""
        return items[int(self._random() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One item, in proportion to its weight; the weights' sum is positive."""
        mark = self._random() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            mark -= weight
            if mark < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """A copy in random order."""
        copy = list(items)
        for last in range(len(copy) - 1, 0, -1):
            other = int(self._random() * (last + 1))
            copy[last], copy[other] = copy[other], copy[last]
        return copy

    def sample(self, items: Sequence[T], count: int) -> list[T]:
        """``count`` different items, or all where there are fewer."""
        return self.shuffled(items)[:count]
