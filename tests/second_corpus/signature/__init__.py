"""Hashed vectors of windows."""
