"""BM25 with a warm start."""
