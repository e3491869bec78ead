"""A running balance."""
