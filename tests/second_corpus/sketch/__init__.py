"""Evidence narrowed by a sketch."""
