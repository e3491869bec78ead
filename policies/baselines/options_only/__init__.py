"""BM25 of the options alone."""
