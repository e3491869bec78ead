"""Rule extractor: a raw caption line into what the five fields EVENT, PEOPLE, OBJECTS, PLACE, DIALOGUE are made of.

The fallback where no builder model rewrites captions. The source gives the fields and no rules; ours: a speaker
prefix or quoted speech is DIALOGUE, a noun phrase after a determiner or a verb of handling is an OBJECT, a word of
the place lexicon a PLACE, capitalised words are offered as names, and the line without its speech is the EVENT.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

from policies.blocks.lexicon import QUOTED, SPEAKER
from policies.blocks.words import Word, split

FIELDS = ("EVENT", "PEOPLE", "OBJECTS", "PLACE", "DIALOGUE")
"""The five fields of an event record, in the order the method names them."""

_QUOTES = frozenset('"\u201c\u201d')
_COLONS = frozenset(":\uff1a")
_NOBODY: frozenset[str] = frozenset()
_LONGEST_PHRASE = 3
"""Words kept of one noun phrase. Not given by the source: two modifiers and a head ("small white box")."""


class Line(NamedTuple):
    """What one caption line says, independent of anything seen before it."""

    event: str
    speaker: str
    speech: tuple[str, ...]
    objects: tuple[str, ...]
    places: tuple[str, ...]
    named: tuple[str, ...]
    """Capitalised words that may be names, as written."""
    words: tuple[Word, ...]
    """Words and marks of ``event``."""
    object_terms: Sequence[str]
    place_terms: Sequence[str]
    """T(x) of the objects and of the places, repeats kept."""

    @property
    def plain(self) -> frozenset[str]:
        """Casefolded words that stood in lower case: evidence against a name."""
        return frozenset(word.lower for word in self.words if word.plain)


def read_line(text: str) -> Line:
    """Analyse one caption line. Pure, so that repeated lines are worth caching."""
    prefix = None if _COLONS.isdisjoint(text) else SPEAKER.match(text)
    if prefix:
        return Line("", prefix[1], (prefix[2].strip(),), (), (), (prefix[1],), (), (), ())
    speech: tuple[str, ...] = ()
    if not _QUOTES.isdisjoint(text):
        speech = tuple(quote.strip() for quote in QUOTED.findall(text))
        text = QUOTED.sub(" ", text) if speech else text
    event = " ".join(text.split())
    words = split(event)
    named = _named(words)
    found = _things(words, {name.casefold() for name in named} if named else _NOBODY)
    objects, places = tuple(dict.fromkeys(found.objects)), tuple(dict.fromkeys(found.places))
    return Line(event, "", speech, objects, places, named, words, found.object_terms, found.place_terms)


def _named(words: Sequence[Word]) -> tuple[str, ...]:
    """Capitalised words inside a sentence; at its start only those that are unknown or stand before a verb form."""
    found = []
    for at, word in enumerate(words):
        if not word.name:
            continue
        if at and not words[at - 1].ends_sentence:
            found.append(word.name)
        elif word.meaning:
            follows_verb = at + 1 < len(words) and words[at + 1].verb
            if follows_verb or not word.name_in_dictionary:
                found.append(word.name)
    return tuple(dict.fromkeys(found))


class _Things:
    """Objects and places of a line as they are found: casefolded phrases, and their terms."""

    __slots__ = ("object_terms", "objects", "place_terms", "places")

    def __init__(self) -> None:
        self.objects: list[str] = []
        self.places: list[str] = []
        self.object_terms: list[str] = []
        self.place_terms: list[str] = []

    def add(self, phrase: Sequence[Word], place: bool) -> None:
        (self.places if place else self.objects).append(" ".join([word.lower for word in phrase]))
        terms = self.place_terms if place else self.object_terms
        for word in phrase:
            terms += word.content


def _things(words: Sequence[Word], names: Set[str]) -> _Things:
    found = _Things()
    locative = handled = False
    at, size = 0, len(words)
    while at < size:
        word = words[at]
        if word.locative and not word.place_adverb:
            locative, handled = True, False
        elif (opens := word.determiner or (word.owner in names)) or handled:
            at += opens
            start = at
            while at < size and not words[at].ends_phrase and not (at > start and words[at].verbal):
                at += 1
            if at == start:
                handled = False
                continue
            phrase = words[max(start, at - _LONGEST_PHRASE) : at]
            head = phrase[-1]
            place = head.place or (locative and head.furniture)
            if place or not head.no_object:
                found.add(phrase, place)
            locative = handled = False
            continue
        elif word.place_adverb or (locative and word.place):
            found.add((word,), True)
            locative, handled = word.locative, False
        else:
            locative, handled = False, word.handling
        at += 1
    return found
