"""Consensus among options."""
