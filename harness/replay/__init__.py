"""Replay: one attempt of a run executed again by the loop's own stages, and compared with its record."""
