"""The contract of a memory policy, the building blocks, and the versioned policies."""
