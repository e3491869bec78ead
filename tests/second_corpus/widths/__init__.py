"""Context shaped by type."""
