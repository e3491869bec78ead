"""Policies to measure others against."""
