"""Words as the rule extractor and the indexes see them: all that is asked of a word, looked up once per spelling."""

from __future__ import annotations

import re
from functools import lru_cache

from policies.blocks.lemmas import in_dictionary
from policies.blocks.lexicon import (
    DETERMINERS,
    FURNITURE,
    HANDLING,
    LOCATIVES,
    NOT_NAMES,
    NOT_OBJECTS,
    PLACE_ADVERBS,
    PLACES,
)
from policies.blocks.tokens import content, function_word, normal, terms, words

_PIECE = re.compile(r"[A-Za-z0-9\u00c0-\u024f]+(?:['\u2019-][A-Za-z]+)*|[^\sA-Za-z0-9\u00c0-\u024f]")
_CACHED = 65_536
_SHORTEST_VERB = 4
"""A longer word in -ing or -ed ends a noun phrase; "ring" and "red" do not."""
_OWNER = re.compile("['\u2019].*")
_ENDS = frozenset(".!?;:")
_VERB = re.compile("^(is|was|has|had|and|then)$|..(s|ed)$")
"""What tends to follow a subject: "Rose waters the plants"."""
ARTICLES = ("a", "an", "the")


class Word:
    """One word or mark of a text, with all that depends on its spelling alone."""

    __slots__ = (
        "content", "determiner", "ends_phrase", "ends_sentence", "furniture", "handling", "locative", "lower",
        "marked", "meaning", "name", "name_in_dictionary", "no_object", "owner", "place", "place_adverb", "plain",
        "spelled", "terms", "verb", "verbal",
    )  # fmt: skip

    def __init__(self, piece: str) -> None:
        lower = piece.casefold()
        term = normal(lower)
        noun = term if lower.endswith("s") else lower
        self.lower = lower
        self.terms = tuple(terms(piece))
        self.content = tuple(content(piece))
        """T(x) of the word."""
        self.marked = tuple((term, -1 if term in self.content else 0) for term in self.terms)
        """Each term with all bits set where it is content, none where it is not."""
        self.spelled = " ".join(word for word in words(piece) if word not in ARTICLES)
        """As phrases are compared: casefolded, no articles."""
        self.meaning = bool(term) and not function_word(term)
        self.plain = piece == lower and lower[0].isalpha()
        """Written in lower case."""
        self.owner = base if (base := _OWNER.sub("", lower)) != lower else None
        """Whose: "ada" of "ada's"; None of a word without an apostrophe."""
        self.name = _name(piece)
        """The word without an apostrophe where it is capitalised like a name, else empty."""
        self.name_in_dictionary = bool(self.name) and in_dictionary(self.name.casefold())
        self.ends_sentence = lower in _ENDS
        self.verb = bool(_VERB.search(lower))
        self.determiner = lower in DETERMINERS
        self.locative = lower in LOCATIVES
        self.place_adverb = lower in PLACE_ADVERBS
        self.handling = term in HANDLING
        # A noun as it stands, so that a verb ("lifted") is not taken for a place ("lift"):
        self.place = noun in PLACES
        self.furniture = noun in FURNITURE
        self.no_object = noun in NOT_OBJECTS
        self.ends_phrase = not (self.meaning and lower[0].isalnum()) or self.locative or self.place_adverb
        self.verbal = len(lower) > _SHORTEST_VERB and lower.endswith(("ing", "ed"))


def _name(piece: str) -> str:
    if not piece[0].isupper():
        return ""
    name = _OWNER.sub("", piece)
    return "" if len(name) < 2 or name.isupper() or name.casefold() in NOT_NAMES else name


_word = lru_cache(maxsize=_CACHED)(Word)


def split(text: str) -> tuple[Word, ...]:
    """Words and marks of ``text``, in order."""
    return tuple(map(_word, _PIECE.findall(text)))
