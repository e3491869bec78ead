"""Salient terms."""
