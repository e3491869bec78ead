"""Exchanges by patterns."""
