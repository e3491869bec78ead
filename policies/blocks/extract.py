"""Rule extractor: a raw caption line into what the five fields EVENT, PEOPLE, OBJECTS, PLACE, DIALOGUE are made of.

The fallback where no builder model rewrites captions. The source gives the fields and no rules; ours: a speaker
prefix or quoted speech is DIALOGUE, a noun phrase after a determiner or a verb of handling is an OBJECT, a word of
the place lexicon a PLACE, capitalised words are offered as names, and the line without its speech is the EVENT.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from policies.blocks.lexicon import (
    DETERMINERS,
    FURNITURE,
    HANDLING,
    LOCATIVES,
    NOT_NAMES,
    NOT_OBJECTS,
    PLACE_ADVERBS,
    PLACES,
    QUOTED,
    SPEAKER,
)
from policies.blocks.tokens import function_word, in_dictionary, normal

FIELDS = ("EVENT", "PEOPLE", "OBJECTS", "PLACE", "DIALOGUE")
"""The five fields of an event record, in the order the method names them."""

_PIECE = re.compile(r"[A-Za-z0-9\u00c0-\u024f]+(?:['\u2019-][A-Za-z]+)*|[^\sA-Za-z0-9\u00c0-\u024f]")
_SHORTEST_VERB = 4
"""A longer word in -ing or -ed ends a noun phrase; "ring" and "red" do not."""
_BREAKS = LOCATIVES | PLACE_ADVERBS
_OWNER = re.compile("['\u2019].*")
_ENDS = frozenset(".!?;:")
_VERB = re.compile("^(is|was|has|had|and|then)$|..(s|ed)$")
"""What tends to follow a subject: "Rose waters the plants"."""
_LONGEST_PHRASE = 3
"""Words kept of one noun phrase. Not given by the source: two modifiers and a head ("small white box")."""


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
    plain: tuple[str, ...]
    """Casefolded words that stood in lower case: evidence against a name."""


def read_line(text: str) -> Line:
    """Analyse one caption line. Pure, so that repeated lines are worth caching."""
    prefix = SPEAKER.match(text)
    if prefix:
        return Line("", prefix[1], (prefix[2].strip(),), (), (), (prefix[1],), ())
    speech = tuple(quote.strip() for quote in QUOTED.findall(text))
    event = " ".join((QUOTED.sub(" ", text) if speech else text).split())
    pieces = _PIECE.findall(event)
    lowered = [piece.casefold() for piece in pieces]
    named = _named(pieces, lowered)
    objects, places = _things(lowered, {name.casefold() for name in named})
    return Line(event, "", speech, objects, places, named, _plain(pieces, lowered))


def _named(pieces: list[str], lowered: list[str]) -> tuple[str, ...]:
    """Capitalised words inside a sentence; at its start only those that are unknown or stand before a verb form."""
    found = []
    for at, piece in enumerate(pieces):
        if not piece[0].isupper():
            continue
        name = _OWNER.sub("", piece)
        if len(name) < 2 or name.isupper() or name.casefold() in NOT_NAMES:
            continue
        if at and lowered[at - 1] not in _ENDS:
            found.append(name)
        elif normal(lowered[at]) and not function_word(normal(lowered[at])):
            follower = lowered[at + 1] if at + 1 < len(lowered) else ""
            if _VERB.search(follower) or not in_dictionary(name.casefold()):
                found.append(name)
    return tuple(dict.fromkeys(found))


def _plain(pieces: list[str], lowered: list[str]) -> tuple[str, ...]:
    return tuple({low for piece, low in zip(pieces, lowered, strict=True) if piece == low and low[0].isalpha()})


def _things(lowered: list[str], names: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Objects and places of one line, from its casefolded pieces."""
    objects: list[str] = []
    places: list[str] = []
    locative = handled = False
    at = 0
    while at < len(lowered):
        word = lowered[at]
        if word in LOCATIVES and word not in PLACE_ADVERBS:
            locative, handled = True, False
        elif (opens := word in DETERMINERS or _owner(word) in names) or handled:
            phrase, at = _phrase(lowered, at + opens)
            if phrase:
                head = _noun(phrase[-1])
                place = head in PLACES or (locative and head in FURNITURE)
                if place or head not in NOT_OBJECTS:
                    (places if place else objects).append(" ".join(phrase))
                locative = handled = False
                continue
            handled = False
            continue
        elif word in PLACE_ADVERBS or (locative and _noun(word) in PLACES):
            places.append(word)
            locative, handled = word in LOCATIVES, False
        else:
            locative, handled = False, normal(word) in HANDLING
        at += 1
    return tuple(dict.fromkeys(objects)), tuple(dict.fromkeys(places))


def _owner(word: str) -> str:
    """Whose: "ada" of "ada's", nothing of a word without an apostrophe."""
    base = _OWNER.sub("", word)
    return "" if base == word else base


def _noun(word: str) -> str:
    """Singular of a noun as it stands, so that a verb ("lifted") is not taken for a place ("lift")."""
    return normal(word) if word.endswith("s") else word


def _phrase(lowered: list[str], at: int) -> tuple[list[str], int]:
    """The noun phrase that starts at ``at`` and where it ends: content words up to a function word or mark."""
    phrase: list[str] = []
    while at < len(lowered):
        word = lowered[at]
        term = normal(word)
        if not term or not word[0].isalnum() or function_word(term) or word in _BREAKS:
            break
        if phrase and len(word) > _SHORTEST_VERB and word.endswith(("ing", "ed")):
            break
        phrase.append(word)
        at += 1
    return phrase[-_LONGEST_PHRASE:], at
