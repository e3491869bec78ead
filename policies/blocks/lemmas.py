"""The lemmatiser, started from an index that was made beforehand where one lies beside this module.

``simplemma`` holds its English dictionary compactly and makes an index of it at the first word, which takes longer
than all else in the start of a container. The sandbox makes it once and puts it here as ``lemma_index.json``:
``{sha256 of the dictionary, header, firsts, blocks}``, bytes as Latin-1 text.
"""

from __future__ import annotations

import hashlib
import json
import pkgutil
from collections.abc import Mapping
from typing import Any

import simplemma
from simplemma.strategies import DefaultStrategy, DictionaryLookupStrategy
from simplemma.strategies.dictionaries.dictionary_factory import CachingDictionaryFactory, _read_decompressed
from simplemma.strategies.dictionaries.stream_dictionary_factory import StreamMap

LANGUAGE = "en"
INDEX = "lemma_index.json"


class _Factory(CachingDictionaryFactory):
    def _get_dictionary_uncached(self, lang: str) -> Mapping[str, str]:
        return _indexed() or StreamMap(lang)


def _indexed() -> StreamMap | None:
    """The dictionary with the prepared index; None where there is none, or one of another dictionary."""
    try:
        found: Any = json.loads(pkgutil.get_data(__package__, INDEX) or b"{}")
    except FileNotFoundError:
        return None
    data = _read_decompressed(LANGUAGE)
    if found.get("sha256") != hashlib.sha256(data).hexdigest():
        return None
    made = StreamMap.__new__(StreamMap)
    made._data = data
    made._rev, made._count, made._pos = found["header"]
    made._firsts = [key.encode("latin-1") for key in found["firsts"]]
    made._blocks = [(at, key.encode("latin-1"), lemma.encode("latin-1")) for at, key, lemma in found["blocks"]]
    return made


_factory = _Factory()
_lookup = DictionaryLookupStrategy(_factory)
_lemmatizer = simplemma.Lemmatizer(lemmatization_strategy=DefaultStrategy(dictionary_factory=_factory))


def lemma(word: str) -> str:
    """The lemma of one casefolded word; a word that is not known is returned as it is."""
    return _lemmatizer.lemmatize(word, LANGUAGE).casefold()


def in_dictionary(word: str) -> bool:
    """Whether the dictionary holds this casefolded word."""
    return _lookup.get_lemma(word, LANGUAGE) is not None
