"""How much is read."""

WINDOWS = 11
CHARACTERS = 5_500
