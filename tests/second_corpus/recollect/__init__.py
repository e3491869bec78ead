"""Records and recollection."""
