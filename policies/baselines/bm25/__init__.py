"""BM25 of question and option."""
