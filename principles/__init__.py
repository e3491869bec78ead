"""H0: the fixed texts that every run starts from and that no run may change."""
