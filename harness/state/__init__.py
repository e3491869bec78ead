"""A run on disk: stages in SQLite, the audit chain, the git lineage."""
