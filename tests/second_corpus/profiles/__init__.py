"""Captions with a profile."""
