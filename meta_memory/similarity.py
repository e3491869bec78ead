"""Lexical similarity of hypotheses: cosine of term weights, rare words counting more. Deterministic, no model."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

WORD = re.compile(r"[^\W_]+")
STOP = frozenset(
    WORD.findall(
        "a an and are as at be been but by can could do does each for from had has have if in into is it its may more "
        "no not of on only or over so such than that the their them then there these they this to under up was we were "
        "when where which while who will with would"
    )
)

Vector = Mapping[str, float]


def terms(text: str) -> Counter[str]:
    """Content words with a plural ``s`` removed; numbers stay, since a constant can be the whole difference."""
    words = (word for word in WORD.findall(text.casefold()) if word not in STOP)
    return Counter(
        word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word for word in words
    )


class Similarity:
    """Similarity to each of a fixed list of texts."""

    def __init__(self, texts: Sequence[str]) -> None:
        counted = [terms(text) for text in texts]
        self._documents = len(counted)
        self._found = Counter(term for counts in counted for term in counts)
        self._vectors = [self._vector(counts) for counts in counted]

    def to(self, text: str) -> list[float]:
        """Cosine of ``text`` with each of the texts, in their order: 0 (no word in common) to 1 (same words)."""
        asked = self._vector(terms(text))
        return [sum(weight * vector.get(term, 0.0) for term, weight in asked.items()) for vector in self._vectors]

    def _vector(self, counts: Counter[str]) -> Vector:
        weights = {term: (1 + math.log(counts[term])) * self._rarity(term) for term in sorted(counts)}
        length = math.sqrt(sum(weight * weight for weight in weights.values()))
        return {term: weight / length for term, weight in weights.items()} if length else {}

    def _rarity(self, term: str) -> float:
        return 1 + math.log((self._documents + 1) / (self._found[term] + 1))
