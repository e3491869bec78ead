"""The lemmatiser's index, made once on the host, for ``policies/blocks/lemmas.py`` in every container."""

from __future__ import annotations

import hashlib
import json

from simplemma.strategies.dictionaries.stream_dictionary_factory import StreamMap

PATH = "policies/blocks/lemma_index.json"


def lemma_index() -> str:
    """The index of the English dictionary, as JSON; it holds for these bytes of the dictionary only."""
    made = StreamMap("en")
    value = {
        "sha256": hashlib.sha256(made._data).hexdigest(),
        "header": [made._rev, made._count, made._pos],
        "firsts": [key.decode("latin-1") for key in made._firsts],
        "blocks": [[at, key.decode("latin-1"), lemma.decode("latin-1")] for at, key, lemma in made._blocks],
    }
    return json.dumps(value, separators=(",", ":"))
