"""The gate: what stands between a candidate and its measurement."""
