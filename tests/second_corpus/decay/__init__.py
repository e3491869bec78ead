"""Recency with half-lives."""
