"""Models: one client for any compatible endpoint, the ledger, stored replies, the offline profile."""
