"""BM25 (Lucene's form) over exactly the windows observed: idf and mean length come from the prefix alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from policies.blocks.memory import Memory
from policies.blocks.postings import Floats, Postings
from policies.blocks.tokens import terms
from policies.contract import Query

K1 = 1.5
"""Term saturation. Not given by the source: the default of bm25s."""
B = 0.75
"""Length normalisation. Not given by the source: the default of bm25s."""


def bm25(index: Postings, query_terms: Iterable[str]) -> Floats:
    """Score of every document, shape (n,); a term repeated in the query counts again."""
    scores = np.zeros(index.size)
    if not index.size:
        return scores
    lengths = index.lengths()
    norm = K1 * (1 - B + B * lengths / max(float(lengths.mean()), 1.0))
    for term in query_terms:
        documents, counts = index.get(term)
        if len(documents):
            idf = np.log(1 + (index.size - len(documents) + 0.5) / (len(documents) + 0.5))
            scores[documents] += idf * counts / (counts + norm[documents])
    return scores


def bm25_question(memory: Memory, query: Query) -> Floats:
    """Every window for the question's terms, shape (n,)."""
    return bm25(memory.text, terms(query.question))


def bm25_choices(memory: Memory, query: Query) -> Floats:
    """Every window for each choice's terms, shape (n, k) in the order of the choices."""
    return np.column_stack([bm25(memory.text, terms(choice)) for choice in query.choices.values()])
