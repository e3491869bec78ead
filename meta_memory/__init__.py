"""The persistent memory of the search: records, store and recall."""
