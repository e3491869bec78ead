"""WordPiece as the uncased BERT models use it: text into the numbers of its vocabulary."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib import resources

LONGEST_WORD = 100
"""A longer word is unknown."""
_CJK = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\U00020000-\U0002a6df\U0002a700-\U0002b73f\U0002b740-\U0002b81f\U0002b820-\U0002ceaf"
    "\uf900-\ufaff\U0002f800-\U0002fa1f])"
)
"""Each of these characters is a word."""


class WordPiece:
    """Cleans, lower-cases, drops accents, splits at spaces and marks, then takes the longest known pieces."""

    def __init__(self, vocabulary: Sequence[str]) -> None:
        self._numbers = {piece: number for number, piece in enumerate(vocabulary)}
        self._word = lru_cache(maxsize=65_536)(self._pieces)

    def encode(self, text: str, most: int) -> list[int]:
        """Numbers of ``text`` between those of [CLS] and [SEP], cut to ``most`` in all."""
        found = [number for word in _words(text) for number in self._word(word)]
        return [self._numbers["[CLS]"], *found[: most - 2], self._numbers["[SEP]"]]

    def _pieces(self, word: str) -> tuple[int, ...]:
        unknown = (self._numbers["[UNK]"],)
        if len(word) > LONGEST_WORD:
            return unknown
        found: list[int] = []
        start = 0
        while start < len(word):
            mark = "##" if start else ""
            for end in range(len(word), start, -1):
                if (number := self._numbers.get(mark + word[start:end])) is not None:
                    found.append(number)
                    start = end
                    break
            else:
                return unknown
        return tuple(found)


def bundled_vocabulary() -> list[str]:
    """The vocabulary of the uncased BERT models (Apache-2.0), one piece a line."""
    return resources.files("harness.models").joinpath("embedder_vocab.txt").read_text("utf-8").splitlines()


def _words(text: str) -> Iterator[str]:
    kept = (" " if c.isspace() else c for c in text if c.isspace() or not _dropped(c))
    spaced = _CJK.sub(r" \1 ", "".join(kept))
    plain = "".join(c for c in unicodedata.normalize("NFD", spaced) if unicodedata.category(c) != "Mn")
    for word in plain.lower().split():
        yield from _split(word)


def _dropped(char: str) -> bool:
    return char == "\ufffd" or unicodedata.category(char) in ("Cc", "Cf", "Co")


def _split(word: str) -> Iterator[str]:
    """``word`` cut so that each mark stands alone."""
    start = 0
    for at, char in enumerate(word):
        if _mark(char):
            if at > start:
                yield word[start:at]
            yield char
            start = at + 1
    if start < len(word):
        yield word[start:]


def _mark(char: str) -> bool:
    """All of ASCII that is neither letter nor digit counts, so that "$" splits a word as well."""
    return (char.isascii() and not char.isalnum()) or unicodedata.category(char)[0] == "P"
