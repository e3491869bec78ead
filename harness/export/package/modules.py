"""Makes the policy's code importable, as it was measured: ``policies`` from ``runtime/``, and ``candidate``.

Import this first. The files are compiled as they stand by the loader that also compiled them in the sandbox.
"""

from __future__ import annotations

import sys
from pathlib import Path

from sandbox.loader import MemoryModules, OwnNames

HERE = Path(__file__).resolve().parent
PACKAGE = "candidate"
ROOTS = (HERE / "runtime", HERE)
"""``policies`` lies in the first, ``candidate`` in the second."""


def _files() -> dict[str, str]:
    found = {f"{PACKAGE}/__init__.py": ""}
    for root, name in zip(ROOTS, ("policies", PACKAGE), strict=True):
        for path in sorted((root / name).rglob("*")):
            if path.suffix in (".py", ".json"):
                found[path.relative_to(root).as_posix()] = path.read_bytes().decode("utf-8")
    return found


def _install() -> None:
    """Raises ImportError where modules of these names are there already, of another policy or of the harness."""
    for name in ("policies", PACKAGE):
        if name in sys.modules:
            raise ImportError(f"a module {name!r} is loaded already: use a process of its own for each policy")
    modules = MemoryModules(_files())
    sys.meta_path.insert(0, modules)
    sys.meta_path.append(OwnNames(PACKAGE, modules))


_install()
