"""How alike two ideas are: in what is said (lemmas of the hypothesis) and in what is done (pieces of syntax changed).

Lexical and deterministic, no model.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import simplemma

WORD = re.compile(r"[^\W_]+")
STOP = frozenset(
    WORD.findall(
        "a an and are as at be been but by can could do does each for from had has have if in into is it its may more "
        "no not of on only or over so such than that the their them then there these they this to under up was we were "
        "when where which while who will with would"
    )
)
STRUCTURAL = frozenset({"0", "1"})
"""Numbers that a rewrite brings in without meaning anything by them: first places, steps, neutral values."""
NUMBER = re.compile(r"-?\d+(\.\d+)?(e[-+]?\d+)?")

LIKE_CHANGE = 0.5
"""Share of the changed pieces of syntax that two candidates have in common from which they can be one idea. Not given
by the source. Measured: one idea written three times, with a comprehension, with a loop and with a method of its own,
has 0.51 to 0.62."""
TELLING = 3
"""Blocks and numbers that, the same and as often in both, need no likeness of words: the same ones are not picked
twice by chance. Not given by the source. Measured: of 11,232 pairs of different offline recipes from one parent none
has them the same."""
LIKE_WORDS = 0.3
"""Jaccard index of lemmas that is asked where there are fewer: halving this and halving that look alike once names are
set aside. Not given by the source."""

Vector = Mapping[str, float]


def terms(text: str) -> Counter[str]:
    """Lemmas of the content words; numbers stay, since a constant can be the whole difference."""
    words = (word for word in WORD.findall(text.casefold()) if word not in STOP)
    return Counter(simplemma.lemmatize(word, "en").casefold() for word in words)


def said_alike(one: str, other: str) -> float:
    """Jaccard index of the lemmas of two texts: 0 (none in common, or none at all) to 1 (the same)."""
    a, b = terms(one).keys(), terms(other).keys()
    return len(a & b) / len(a | b) if a | b else 0.0


def done_alike(one: Mapping[str, int], other: Mapping[str, int]) -> float:
    """Share of two changes (signed counts of pieces) that they have in common: 0 to 1; 0 where one changes nothing."""
    common, all_ = 0, 0
    for piece in one.keys() | other.keys():
        a, b = one.get(piece, 0), other.get(piece, 0)
        if a * b > 0:
            common += min(abs(a), abs(b))
            all_ += max(abs(a), abs(b))
        else:
            all_ += abs(a) + abs(b)
    return common / all_ if all_ else 0.0


def ingredients(change: Mapping[str, int]) -> dict[str, int]:
    """Building blocks (``@name``) and numbers, and how much more or less often than its parent a candidate has each."""
    counts: Counter[str] = Counter()
    for piece, count in change.items():
        counts[piece.rpartition(">")[2].rpartition("=")[2]] += count
    return {
        used: count
        for used, count in counts.items()
        if count and used not in STRUCTURAL and (used.startswith("@") or NUMBER.fullmatch(used))
    }


@dataclass(frozen=True, slots=True)
class Likeness:
    """How alike two ideas are that start from the same parent."""

    said: float
    done: float
    ingredients: int
    """Building blocks and numbers that both use as much more or less than the parent; -1 where they differ in one."""

    @property
    def same(self) -> bool:
        """Whether they are one idea: the same blocks and numbers, and put to much the same use; where these are few,
        also told in some of the same words."""
        alike = self.ingredients >= 0 and self.done >= LIKE_CHANGE
        return alike and (self.ingredients >= TELLING or self.said >= LIKE_WORDS)


def likeness(one: tuple[str, Mapping[str, int]], other: tuple[str, Mapping[str, int]]) -> Likeness:
    """Of two (hypothesis, change)."""
    a, b = ingredients(one[1]), ingredients(other[1])
    return Likeness(said_alike(one[0], other[0]), done_alike(one[1], other[1]), len(a) if a == b else -1)


class Similarity:
    """Similarity to each of a fixed list of texts: cosine of lemma weights, rare words counting more."""

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
