"""V0: uniform captions."""
