"""Every random draw of a run is a function of (seed, iteration, purpose)."""

from __future__ import annotations

import hashlib
import random


def derive(seed: int, iteration: int, purpose: str) -> int:
    """A 63-bit seed for one purpose; stable across processes and Python versions."""
    text = f"{seed}/{iteration}/{purpose}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big") >> 1


def opaque_id(name: str, key: bytes) -> str:
    """An id that says nothing of ``name`` to whoever lacks the key; the same wherever questions are put."""
    return hashlib.blake2b(name.encode(), key=key, digest_size=8).hexdigest()


def draws(seed: int, iteration: int, purpose: str) -> random.Random:
    """A generator for one purpose."""
    return random.Random(derive(seed, iteration, purpose))
