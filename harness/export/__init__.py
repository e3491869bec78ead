"""What a run found, for use elsewhere: a policy as a package that answers on its own, and records as JSON Lines."""
