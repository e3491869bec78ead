"""The locked runtime: what a candidate's code runs on, as a record with a digest.

Figures made on runtimes with different digests are never compared: numpy and Python differ between versions in
ties, sums and matrix products.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sandbox.interface import Runtime, SandboxError

RECORD = "opt/lvmh/runtime.json"
"""Where the record of a root file system lies within it."""
LOCK = Path(__file__).with_name("requirements.lock")


@dataclass(frozen=True, slots=True)
class RuntimeFolder:
    """A root file system with an interpreter and the locked wheels."""

    root: Path
    python: str
    """Path of the interpreter inside."""
    wheels: str
    """Path of the wheels' folder inside."""
    record: Runtime
    """``code`` is empty here: our own code is sent in, see ``with_code``."""
    environment: Mapping[str, str] = field(default_factory=dict)
    """What this interpreter needs to start, such as its library path."""


def digest_of(record: Runtime) -> str:
    """Digest (sha256, hexadecimal) of the record."""
    canonical = json.dumps(dataclasses.asdict(record), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


def with_code(record: Runtime, code: str) -> Runtime:
    """The record completed by the digest of the runner, the contract and the blocks."""
    return dataclasses.replace(record, code=code)


def write_record(folder: RuntimeFolder) -> None:
    """Store the record within the root file system (a container image does the same when it is built)."""
    path = folder.root / RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    record = {"python": folder.record.python, "libc": folder.record.libc, "wheels": dict(folder.record.wheels)}
    value = {"record": record, "python": folder.python, "wheels": folder.wheels, "environment": {**folder.environment}}
    path.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def runtime_from_rootfs(root: Path) -> RuntimeFolder:
    """Read the record of a root file system, own or exported from the image. Raises SandboxError where it has none."""
    try:
        value = json.loads((root / RECORD).read_text(encoding="utf-8"))
        record = Runtime(value["record"]["python"], value["record"]["libc"], value["record"]["wheels"])
        return RuntimeFolder(root, value["python"], value["wheels"], record, value["environment"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        reason = f"{type(error).__name__}: {error}"
        raise SandboxError(f"no sandbox runtime in {root} ({reason}): delete the folder to have it made anew") from None
