"""Marks around hostile text in a prompt: they look random, are a function of the seed, and do not occur in the text."""

from __future__ import annotations

import hashlib


def absent_token(material: str, seed: int, purpose: str) -> str:
    """24 characters that do not occur in ``material``."""
    attempt = 0
    while True:
        token = hashlib.sha256(f"{seed}/{purpose}/{attempt}".encode()).hexdigest()[:24]
        if token not in material:
            return token
        attempt += 1


def fence(material: str, seed: int) -> str:
    """The line that stands before and after ``material``."""
    return "=====" + absent_token(material, seed, "fence") + "====="
