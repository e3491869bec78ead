"""Names and other words of a stream changed for one another, everywhere alike.

The stream stays as natural as it was, and tells of a world that is the same but for what its things are called. Words
that the building blocks know keep their place: forms of question, function words, rooms, verbs of handling.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.gate.literals import general_words
from policies.blocks.lemmas import in_dictionary
from policies.blocks.tokens import normal

WORD = re.compile(r"[A-Za-z]+")
ENDINGS = ("ing", "ed", "es", "s", "ly", "er")


@dataclass(frozen=True, slots=True)
class Swap:
    """A one-to-one change of words, case kept; ``there`` and ``back`` undo one another."""

    words: Mapping[str, str]
    """Case folded."""
    words_back: Mapping[str, str]

    def there(self, text: str) -> str:
        """``text`` in the other world's words."""
        return WORD.sub(lambda match: _changed(match[0], self.words), text)

    def back(self, text: str) -> str:
        """``text`` in this world's words."""
        return WORD.sub(lambda match: _changed(match[0], self.words_back), text)


NOTHING = Swap({}, {})


def _changed(word: str, words: Mapping[str, str]) -> str:
    other = words.get(word.casefold())
    if other is None:
        return word
    if word.isupper() and len(word) > 1:
        return other.upper()
    return other.capitalize() if word[0].isupper() else other


def swap(asked: Iterable[str], told: Iterable[str], seed: int, same_length: bool) -> Swap:
    """A swap of the words of ``asked`` (questions and choices), whatever else is ``told`` (windows, speakers).

    Words change places with words of their kind: names with names, and other words with such as end alike and are as
    long, or, where length is to change, short ones with long ones. A word that shares its lemma with another word of
    the texts stays, or the two would no longer belong together.
    """
    asked = list(asked)
    capital: dict[str, bool] = {}
    surfaces: dict[str, set[str]] = defaultdict(set)
    for text in (*asked, *told):
        for match in WORD.finditer(text):
            word = match[0].casefold()
            if word not in capital:
                surfaces[normal(word)].add(word)
            capital[word] = capital.get(word, True) and match[0][0].isupper()
    known = general_words()
    kinds: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for word in sorted({match.casefold() for text in asked for match in WORD.findall(text)}):
        lemma = normal(word)
        if word in known or lemma in known or len(word) < 2 or not lemma or len(surfaces[lemma]) > 1:
            continue
        name = capital[word] and _inside(word, asked)
        ending = "" if name else next((ending for ending in ENDINGS if word.endswith(ending)), "")
        kind = (name, in_dictionary(word), ending)
        kinds[(*kind, len(word)) if same_length else kind].append(word)
    draw = random.Random(seed)
    words: dict[str, str] = {}
    for _, members in sorted(kinds.items(), key=lambda entry: repr(entry[0])):
        if len(members) > 1:
            words.update(_turned(members, draw) if same_length else _mirrored(members))
    back = {normal(new): normal(old) for old, new in words.items()}
    return Swap(words, back | {new: old for old, new in words.items()})


def _inside(word: str, texts: Iterable[str]) -> bool:
    """Whether a text has the word with a capital where no sentence begins, or is nothing but that word."""
    return any(re.search(rf"(?:^|[a-z,] ){word}\b(?:$|.)", text, re.IGNORECASE) for text in texts)


def _turned(members: list[str], draw: random.Random) -> dict[str, str]:
    """Every member becomes the next in a drawn order: none stays."""
    order = list(members)
    draw.shuffle(order)
    return dict(zip(order, [*order[1:], order[0]], strict=True))


def _mirrored(members: list[str]) -> dict[str, str]:
    """The shortest becomes the longest, and so on inward; one in the middle joins the outermost two: none stays."""
    order = sorted(members, key=lambda word: (len(word), word))
    words = dict(zip(order, reversed(order), strict=True))
    if len(order) % 2:
        first, middle = order[0], order[len(order) // 2]
        words[middle], words[first] = words[first], middle
    return words
