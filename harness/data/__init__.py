"""Data sets: the native format, importers, checks, the bundled life-log."""
