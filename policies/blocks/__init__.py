"""Building blocks of memory policies."""
