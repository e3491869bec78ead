"""Sets up the Docker engine and the sandbox image, without any image registry where none answers.

``python -m sandbox.engine up | down | ensure``; see ``__main__`` for what each does.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from sandbox.interface import SandboxError

DOCKERFILE = Path(__file__).parents[2] / "Dockerfile.sandbox"
LOCK = Path(__file__).parents[1] / "requirements.lock"


class EngineError(SandboxError):
    """The engine or the image could not be set up. One line: what is missing and how to get it."""


def recipe() -> str:
    """Short digest of what the image is made from; names the image and its exported root file system.

    So an unchanged image is found without building, and checkouts with different locks keep theirs apart.
    """
    return hashlib.sha256(DOCKERFILE.read_bytes() + b"\0" + LOCK.read_bytes()).hexdigest()[:16]


def command_line(name: str) -> str:
    """The command that a user types for ``name``: up, down or ensure."""
    python = Path(sys.executable)
    shown = python.relative_to(Path.cwd()) if python.is_relative_to(Path.cwd()) else python
    return f"{shown} -m sandbox.engine {name}"
