"""BM25 and a weight."""
