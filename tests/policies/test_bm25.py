"""BM25 by the prefix, against an independent implementation."""

from collections import Counter

import bm25s
import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from policies.blocks.bm25 import bm25
from policies.blocks.postings import Postings

DOCUMENTS = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=12), min_size=2, max_size=12)
QUERY = st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True)


def grown(documents: list[list[str]]) -> Postings:
    index = Postings()
    for document in documents:
        index.add(Counter(document))
    return index


@settings(deadline=None)
@given(DOCUMENTS, QUERY)
def test_same_scores_as_bm25s_on_the_same_tokens(documents: list[list[str]], query: list[str]) -> None:
    known = [term for term in query if any(term in document for document in documents)]
    reference = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    reference.index(documents, show_progress=False)
    expected = reference.get_scores(known) if known else np.zeros(len(documents))
    np.testing.assert_allclose(bm25(grown(documents), query), expected, rtol=1e-4, atol=1e-5)


@settings(deadline=None)
@given(DOCUMENTS, QUERY)
def test_every_prefix_is_scored_as_if_it_were_all_there_is(documents: list[list[str]], query: list[str]) -> None:
    index = Postings()
    for length, document in enumerate(documents, 1):
        index.add(Counter(document))
        np.testing.assert_array_equal(bm25(index, query), bm25(grown(documents[:length]), query))


def test_an_empty_index_scores_nothing() -> None:
    assert bm25(Postings(), ["a"]).shape == (0,)


def test_overlap_counts_distinct_terms_once() -> None:
    index = grown([["a", "a", "b"], ["c"], ["b", "c"]])
    assert index.overlap(["a", "b", "b", "z"]).tolist() == [2, 0, 1]
