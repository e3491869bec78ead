"""Rounds of opinion."""
