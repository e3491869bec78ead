"""Tokens: the terms that BM25 counts, and the lexical set T(x) of the method.

The source gives T(x) as "lexical token set" and no normalisation. Ours: casefold, words of Latin letters and
digits, cut at the apostrophe (possessives, contractions), lemmas by ``simplemma`` (bought -> buy, ate -> eat,
knives -> knife, which a suffix stemmer leaves apart). A word the lemmatiser does not know, such as a name, is
kept as it is. BM25 drops only the short list of stop words, since idf does the rest; T(x) has no idf and so also
drops all other function words and the question words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from policies.blocks.lemmas import lemma

_WORD = re.compile(r"[a-z0-9\u00df-\u00f6\u00f8-\u024f]{1,40}(?:'[a-z]{1,40})?")


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


STOP_WORDS = _set(
    "a an and are as at be but by for i if in into is it no not of on or s such t that the their then there these "
    "they this to was will with"
)
"""Dropped everywhere: the usual short English list of search engines (Lucene's), and what contractions leave."""

FUNCTION_WORDS = _set(
    """
    those some any each every all both either neither other another same own
    me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers
    herself its itself them theirs themselves one ones
    am were been being do does did done doing have has had having would shall should can could may might must ought
    nor else so than because while until though although
    about against between through during before after above below from up down out off
    over under again further once here upon onto toward towards
    only very too just also even still already now
    don doesn didn isn aren wasn weren hasn haven hadn won wouldn couldn shouldn mustn ain m ll re ve d
    """
)
"""Also dropped from T(x). Not given by the source: without idf, an overlap must be one of content."""

QUESTION_WORDS = _set("who whom whose what which where when why how")
"""Dropped from T(x): they name the form of the question, which the field weights take up instead."""

SPEECH_WORDS = _set("say tell talk discuss mention ask conversation suggest joke call")
"""Lemmas that mark a question about speech. Not given by the source: common verbs of saying and their noun."""


_FUNCTION = STOP_WORDS | FUNCTION_WORDS | QUESTION_WORDS
_NOT_CONTENT = _FUNCTION | {lemma(word) for word in _FUNCTION}


def words(text: str) -> list[str]:
    """All words of ``text``, casefolded, in order, nothing dropped."""
    return _WORD.findall(text.casefold().replace("\u2019", "'"))


@lru_cache(maxsize=65_536)
def normal(word: str) -> str:
    """The term of one casefolded word, or the empty string for a stop word or a single letter."""
    base = word.partition("'")[0]
    if not base or base in STOP_WORDS or (len(base) == 1 and base.isalpha()):
        return ""
    return lemma(base)


def terms(text: str) -> list[str]:
    """Terms of ``text`` in order, repeats kept: what BM25 counts."""
    return [term for word in words(text) if (term := normal(word))]


def content(text: str) -> frozenset[str]:
    """T(x): the set of content lemmas of ``text``."""
    return frozenset(terms(text)) - _NOT_CONTENT


def function_word(term: str) -> bool:
    """Whether a term of ``terms`` carries no content and is left out of T(x)."""
    return term in _NOT_CONTENT


def speech_question(text: str) -> bool:
    """Whether the question asks about something said."""
    return not SPEECH_WORDS.isdisjoint(content(text))
