"""BM25 with calibration."""
