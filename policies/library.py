"""The policies that come with the project, as candidate files: what an author starts from and a bundle is made of."""

from __future__ import annotations

from pathlib import Path

_ROOT = Path(__file__).resolve().parent


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


def load(name: str) -> dict[str, bytes]:
    """The package ``name`` as candidate files: bytes by path relative to the package, ``policy.py`` among them.

    ``__init__.py`` is left out, since a candidate has none. Raises KeyError with the known names.
    """
    folders = _folders()
    if name not in folders:
        raise KeyError(f"no policy named {name!r}: known are {', '.join(folders)}")
    files = sorted(path for path in folders[name].glob("*.py") if path.name != "__init__.py")
    return {path.name: path.read_bytes() for path in files}
