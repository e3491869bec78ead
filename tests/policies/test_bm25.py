"""BM25 by the prefix, against an independent implementation."""

from collections import Counter

import bm25s
import numpy as np
from hypothesis import given
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


@given(DOCUMENTS, QUERY)
def test_same_scores_as_bm25s_on_the_same_tokens(documents: list[list[str]], query: list[str]) -> None:
    known = [term for term in query if any(term in document for document in documents)]
    reference = bm25s.BM25(k1=1.5, b=0.75, method="lucene")
    reference.index(documents, show_progress=False)
    expected = reference.get_scores(known) if known else np.zeros(len(documents))
    np.testing.assert_allclose(bm25(grown(documents), query), expected, rtol=1e-4, atol=1e-5)


@given(DOCUMENTS, DOCUMENTS, QUERY)
def test_later_documents_do_not_reach_back(
    documents: list[list[str]], later: list[list[str]], query: list[str]
) -> None:
    index = grown(documents)
    before = bm25(index, query)
    for document in later:
        index.add(Counter(document))
    fresh = bm25(grown(documents), query)
    np.testing.assert_array_equal(before, fresh)


def test_an_empty_index_scores_nothing() -> None:
    assert bm25(Postings(), ["a"]).shape == (0,)


def test_overlap_counts_distinct_terms_once() -> None:
    index = grown([["a", "a", "b"], ["c"], ["b", "c"]])
    assert index.overlap(["a", "b", "b", "z"]).tolist() == [2, 0, 1]
