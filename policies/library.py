"""The policies that come with the project, as candidate files: what an author starts from and a bundle is made of."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from policies.blocks.components import FILE, parse_components

_ROOT = Path(__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class Version:
    """One row of ``lineage.toml``."""

    name: str
    parent: str
    """The version it changes; empty for one that starts a line of its own."""
    change: str
    reported: str
    """What the source reports of it, in words; empty where it does not know it. It gives no figure of any version."""


def lineage() -> dict[str, Version]:
    """The versions and baselines by name, in order of the file: parents come before their children."""
    rows = tomllib.loads((_ROOT / "lineage.toml").read_text(encoding="utf-8"))
    return {name: Version(name, **row) for name, row in rows.items()}


def _folders() -> dict[str, Path]:
    found = [
        path.parent
        for pattern in ("v[0-9][0-9]", "merit", "baselines/*")
        for path in _ROOT.glob(f"{pattern}/policy.py")
    ]
    return {folder.name: folder for folder in sorted(found)}


def names() -> tuple[str, ...]:
    """Names that ``load`` takes: baselines, MERIT, then versions (``v00``, ``v01``, ...)."""
    return tuple(_folders())


def load(name: str, settings: Mapping[str, object] | None = None) -> dict[str, bytes]:
    """The package ``name`` as candidate files: bytes by path relative to the package, ``policy.py`` among them.

    ``settings`` replace values of its ``settings.json``, for an ablation. ``__init__.py`` is left out, since a
    candidate has none. Raises KeyError with the known names, ValueError with one line for settings it cannot have.
    """
    folders = _folders()
    if name not in folders:
        raise KeyError(f"no policy named {name!r}: known are {', '.join(folders)}")
    paths = sorted(path for path in folders[name].iterdir() if path.suffix in (".py", ".json"))
    files = {path.name: path.read_bytes() for path in paths if path.name != "__init__.py"}
    if settings is None:
        return files
    if FILE not in files:
        raise ValueError(f"policy {name!r} has no {FILE}: its components cannot be switched")
    files[FILE] = (json.dumps(json.loads(files[FILE]) | dict(settings), indent=2) + "\n").encode()
    parse_components(files[FILE])
    return files
