"""Choices that do not betray the answer.

What options alone can tell is how they are mentioned in what was seen so far. So for every question the answer's rank
among its four choices, by the best lexical match of the choice with any earlier window, is dealt out evenly.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations
from math import log

from harness.data.lifelog.asking import Ask
from harness.data.lifelog.draw import Draw
from policies.contract import Window

WORD = re.compile(r"[a-z']+")
STOP = frozenset(
    {
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "but",
        "by",
        "for",
        "if",
        "in",
        "into",
        "is",
        "it",
        "no",
        "not",
        "of",
        "on",
    }
    | {"or", "such", "that", "the", "their", "then", "there", "these", "they", "this", "to", "was", "will", "with"}
)
K1, B = 1.5, 0.75
WEIGHTS = (3, 3, 1, 1)
"""How much it matters that ranks are even: best match, number of mentions (or age), last mention, length."""


def words(text: str) -> list[str]:
    """Lower-case words without stop words, roughly stemmed."""
    return [re.sub(r"(ing|ed|es|s)$", "", word) or word for word in WORD.findall(text.lower()) if word not in STOP]


class Mentions:
    """Where every word stands in a stream."""

    def __init__(self, windows: Sequence[Window]) -> None:
        self.lengths: list[int] = []
        self.total: list[int] = []
        """Sum of the lengths up to and with each window."""
        self.places: dict[str, list[tuple[int, int]]] = {}
        for window in windows:
            counts: dict[str, int] = {}
            for line in (*window.captions, *(f"{line.speaker} {line.text}" for line in window.transcript)):
                for word in words(line):
                    counts[word] = counts.get(word, 0) + 1
            for word, count in counts.items():
                self.places.setdefault(word, []).append((window.index, count))
            self.lengths.append(sum(counts.values()))
            self.total.append(self.lengths[-1] + (self.total[-1] if self.total else 0))

    def best(self, text: str, until: int) -> float:
        """The best BM25 score of ``text`` in any window up to ``until``."""
        mean = self.total[until] / (until + 1)
        scores: dict[int, float] = {}
        for word in dict.fromkeys(words(text)):
            places = [(index, count) for index, count in self.places.get(word, ()) if index <= until]
            weight = log(1 + (until + 1 - len(places) + 0.5) / (len(places) + 0.5))
            for index, count in places:
                norm = count + K1 * (1 - B + B * self.lengths[index] / mean)
                scores[index] = scores.get(index, 0.0) + weight * count / norm
        return round(max(scores.values(), default=0.0), 9)

    def count(self, text: str, until: int) -> int:
        """In how many windows up to ``until`` any word of ``text`` stands."""
        return len({index for word in words(text) for index, _ in self.places.get(word, ()) if index <= until})

    def last(self, text: str, until: int) -> int:
        """The last window up to ``until`` in which all words of ``text`` stand that ever stand together, or -1."""
        return max(
            (index for word in words(text) for index, _ in self.places.get(word, ()) if index <= until), default=-1
        )


class Ranks:
    """Deals out ranks so that each comes up equally often for every kind of question."""

    def __init__(self) -> None:
        self.dealt: dict[tuple[str, int], list[int]] = {}

    def choose(self, kind: str, ask: Ask, mentions: Mentions, until: int, draw: Draw, slack: int) -> list[str] | None:
        """Three wrong choices that give the answer the ranks that are due; None where none come near by ``slack``."""
        features = {
            text: (
                mentions.best(text, until),
                -ask.ages.index(text) if ask.ages else mentions.count(text, until),
                mentions.last(text, until),
                len(text),
            )
            for text in (*ask.wrong, ask.answer)
        }
        own = features[ask.answer]
        tables = [self.dealt.setdefault((kind, number), [0] * 4) for number in range(len(own))]
        above = {text: [theirs > mine for theirs, mine in zip(features[text], own, strict=True)] for text in ask.wrong}
        best: tuple[int, list[int], list[str]] | None = None
        for trio in combinations(draw.sample(ask.wrong, 10), 3):
            ranks = [sum(above[text][number] for text in trio) for number in range(len(own))]
            excess = [table[rank] - min(table) for table, rank in zip(tables, ranks, strict=True)]
            cost = sum(weight * over for weight, over in zip(WEIGHTS, excess, strict=True))
            if max(excess[:2]) <= slack and (best is None or cost < best[0]):
                best = (cost, ranks, list(trio))
        if best is None:
            return None
        for table, rank in zip(tables, best[1], strict=True):
            table[rank] += 1
        return best[2]
