"""MERIT."""
