"""The prepared index of the lemmatiser: the same lemmas as without it, and none of another dictionary."""

from __future__ import annotations

import json
import pkgutil

import pytest
import simplemma
from simplemma.strategies.dictionaries.stream_dictionary_factory import StreamMap

from policies.blocks import lemmas
from sandbox import lemma_index
from sandbox.prelude import prelude


def test_the_index_is_sent_and_gives_the_same_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = json.loads(prelude().line)["files"][lemma_index.PATH]
    monkeypatch.setattr(pkgutil, "get_data", lambda package, name: sent.encode())
    found, plain = lemmas._indexed(), StreamMap("en")
    assert found is not None
    assert [getattr(found, name) for name in StreamMap.__slots__] == [
        getattr(plain, name) for name in StreamMap.__slots__
    ]
    for word in [*list(plain)[::200], "zzyzx", "ate", "knives", "jake"]:
        assert lemmas.lemma(word.casefold()) == simplemma.lemmatize(word.casefold(), "en", low_memory=True).casefold()
        assert lemmas.in_dictionary(word) == simplemma.is_known(word, "en", low_memory=True)


@pytest.mark.parametrize("sent", [b"{}", b'{"sha256": "0"}'])
def test_an_index_of_another_dictionary_is_not_used(sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pkgutil, "get_data", lambda package, name: sent)
    assert lemmas._indexed() is None


def test_without_an_index_it_is_made() -> None:
    assert lemmas._indexed() is None
    assert lemmas.lemma("bought") == "buy"
