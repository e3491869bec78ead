"""A learned router."""
