"""Who started a container: a process, told apart from a later one that got the same number.

Containers carry their owner in labels, so that what a killed run left behind can be removed, and only that.
"""

from __future__ import annotations

import hashlib
import os
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of one boot of one machine."""

    machine: str
    """Short hash of the machine's id: an engine may serve several machines."""
    boot: str
    namespace: str
    """Process-id namespace: the same number in another one is another process."""
    pid: int
    start: str
    """Start time in clock ticks since boot, as the kernel gives it."""

    def labels(self, prefix: str) -> dict[str, str]:
        """As container labels."""
        return {f"{prefix}.{name}": str(value) for name, value in asdict(self).items()}

    @classmethod
    def from_labels(cls, prefix: str, labels: Mapping[str, str]) -> Owner | None:
        """The owner in a container's labels, or None where they name none."""
        values = {name: labels.get(f"{prefix}.{name}", "") for name in ("machine", "boot", "namespace", "pid", "start")}
        if not values["pid"].isdecimal() or not values["machine"]:
            return None
        return cls(values["machine"], values["boot"], values["namespace"], int(values["pid"]), values["start"])

    def gone(self) -> bool:
        """Whether the owner has certainly ended. False wherever that cannot be judged from here."""
        here = current_owner()
        if self.machine != here.machine:
            return False
        if self.boot != here.boot:
            return True
        return self.namespace == here.namespace and start_time(self.pid) != self.start


def current_owner() -> Owner:
    """This process."""
    pid = os.getpid()
    try:
        namespace = (_PROC / "self/ns/pid").readlink().name
    except OSError:
        namespace = ""
    return Owner(_machine(), _read(_PROC / "sys/kernel/random/boot_id"), namespace, pid, start_time(pid) or "")


def start_time(pid: int) -> str | None:
    """Start time of a living process, or None. A zombie has ended. Without /proc: empty for any living one."""
    if not (_PROC / "self/stat").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return None
        except PermissionError:
            return ""
        return ""
    # The second field is the program's name in brackets and may hold anything, so count from its end.
    fields = _read(_PROC / str(pid) / "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in ("Z", "X") else None


def _machine() -> str:
    name = _read(Path("/etc/machine-id")) or platform.node()
    return hashlib.sha256(name.encode()).hexdigest()[:12]


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""
