"""Rule extractor: a raw caption line into what the five fields EVENT, PEOPLE, OBJECTS, PLACE, DIALOGUE are made of.

The fallback where no builder model rewrites captions. The source gives the fields and no rules; ours: a speaker
prefix or quoted speech is DIALOGUE, a noun phrase after a determiner or a verb of handling is an OBJECT, a word of
the place lexicon a PLACE, capitalised words are offered as names, and the line without its speech is the EVENT.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from dataclasses import dataclass

from policies.blocks.lexicon import QUOTED, SPEAKER
from policies.blocks.words import Word, split

FIELDS = ("EVENT", "PEOPLE", "OBJECTS", "PLACE", "DIALOGUE")
"""The five fields of an event record, in the order the method names them."""

_QUOTES = frozenset('"\u201c\u201d')
_COLONS = frozenset(":\uff1a")
_NOBODY: frozenset[str] = frozenset()
_LONGEST_PHRASE = 3
"""Words kept of one noun phrase. Not given by the source: two modifiers and a head ("small white box")."""

Phrase = Sequence[Word]


@dataclass(frozen=True, slots=True)
class Line:
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
    object_terms: frozenset[str]
    place_terms: frozenset[str]
    """T(x) of the objects and of the places."""

    @property
    def plain(self) -> frozenset[str]:
        """Casefolded words that stood in lower case: evidence against a name."""
        return frozenset(word.lower for word in self.words if word.plain)


def read_line(text: str) -> Line:
    """Analyse one caption line. Pure, so that repeated lines are worth caching."""
    prefix = None if _COLONS.isdisjoint(text) else SPEAKER.match(text)
    if prefix:
        return Line("", prefix[1], (prefix[2].strip(),), (), (), (prefix[1],), (), frozenset(), frozenset())
    speech: tuple[str, ...] = ()
    if not _QUOTES.isdisjoint(text):
        speech = tuple(quote.strip() for quote in QUOTED.findall(text))
        text = QUOTED.sub(" ", text) if speech else text
    event = " ".join(text.split())
    words = split(event)
    named = _named(words)
    objects, places = _things(words, {name.casefold() for name in named} if named else _NOBODY)
    return Line(event, "", speech, _texts(objects), _texts(places), named, words, _terms(objects), _terms(places))


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


def _things(words: Sequence[Word], names: Set[str]) -> tuple[list[Phrase], list[Phrase]]:
    """Objects and places of one line."""
    objects: list[Phrase] = []
    places: list[Phrase] = []
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
            if head.place or (locative and head.furniture):
                places.append(phrase)
            elif not head.no_object:
                objects.append(phrase)
            locative = handled = False
            continue
        elif word.place_adverb or (locative and word.place):
            places.append((word,))
            locative, handled = word.locative, False
        else:
            locative, handled = False, word.handling
        at += 1
    return objects, places


def _texts(phrases: Sequence[Phrase]) -> tuple[str, ...]:
    if not phrases:
        return ()
    return tuple(dict.fromkeys([" ".join([word.lower for word in phrase]) for phrase in phrases]))


def _terms(phrases: Sequence[Phrase]) -> frozenset[str]:
    if not phrases:
        return _NOBODY
    return frozenset([term for phrase in phrases for word in phrase for term in word.content])
