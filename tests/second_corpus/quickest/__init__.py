"""Replies by their wait."""
