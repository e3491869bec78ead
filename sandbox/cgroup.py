"""Control groups (version 1 and 2) for one sandboxed process: memory, processes, cpu, and what the kernel killed.

A group's name tells who made it, so that groups of a dead owner can be found and removed.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from sandbox.interface import Limits

PREFIX = "lvmh-"
PERIOD = 100_000
"""Microseconds over which the cpu share is enforced (the kernel's default)."""
CONTROLLERS = ("memory", "pids", "cpu")
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """Where groups can be made: one folder per controller with version 1, the same folder for all with version 2."""

    version: int
    parents: dict[str, Path]
    top: Path = Path("/sys/fs/cgroup")
    """Below this lie all groups, those of other sessions too."""


def find(root: Path = Path("/sys/fs/cgroup"), own: Path = Path("/proc/self/cgroup")) -> Hierarchy | None:
    """The hierarchy in which this process may make groups for memory and processes, or None."""
    own_paths = dict(_own_paths(own))
    if (root / "cgroup.controllers").exists():
        return _find_v2(root, own_paths.get("", "/"))
    parents = {}
    for controller in CONTROLLERS:
        parent = root / controller / own_paths.get(controller, "/").lstrip("/")
        parent = parent if parent.is_dir() else root / controller
        if _usable(parent):
            parents[controller] = parent
    return Hierarchy(1, parents, root) if {"memory", "pids"} <= parents.keys() else None


def _own_paths(own: Path) -> Iterator[tuple[str, str]]:
    with contextlib.suppress(OSError):
        for line in own.read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                yield controller, path


def _find_v2(root: Path, own: str) -> Hierarchy | None:
    """The nearest group above this process that may give its children memory and pids limits."""
    start = root / own.lstrip("/")
    for parent in (start, *start.parents):
        if not parent.is_relative_to(root):
            break
        with contextlib.suppress(OSError):
            offered = (parent / "cgroup.controllers").read_text().split()
            if not {"memory", "pids"} <= set(offered):
                continue
            wanted = [name for name in CONTROLLERS if name in offered]
            (parent / "cgroup.subtree_control").write_text(" ".join(f"+{name}" for name in wanted))
            if _usable(parent):
                return Hierarchy(2, dict.fromkeys(wanted, parent), root)
    return None


def _usable(parent: Path) -> bool:
    """Whether a group can be made here and has its files. Tried, since permission bits do not tell."""
    trial = parent / f"{PREFIX}{owner()}-try{next(_numbers)}"
    try:
        trial.mkdir()
    except OSError:
        return False
    usable = os.access(trial / "cgroup.procs", os.W_OK)
    with contextlib.suppress(OSError):
        trial.rmdir()
    return usable


def owner(pid: int | None = None) -> str:
    """Who makes groups: pid namespace, pid and start time; the same for no two processes of one boot."""
    namespace = Path("/proc/self/ns/pid").stat().st_ino
    pid = pid or os.getpid()
    return f"{namespace}-{pid}-{_start_time(pid)}"


def _start_time(pid: int) -> int:
    """In clock ticks since boot. Raises OSError where there is no such process."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


class Group:
    """The group of one sandbox. ``remove`` ends everything in it."""

    def __init__(self, hierarchy: Hierarchy, limits: Limits) -> None:
        """Make the group and set its limits. Raises OSError."""
        self._version = hierarchy.version
        name = f"{PREFIX}{owner()}-{next(_numbers)}"
        self._folders = {controller: parent / name for controller, parent in hierarchy.parents.items()}
        for folder in set(self._folders.values()):
            folder.mkdir()
        try:
            self._limit(limits)
        except OSError:
            self.remove()
            raise

    @property
    def doors(self) -> tuple[Path, ...]:
        """Files into which a process writes 0 to enter."""
        return tuple(sorted({folder / "cgroup.procs" for folder in self._folders.values()}))

    def _limit(self, limits: Limits) -> None:
        size = str(limits.memory_mb * 1_048_576)
        memory, quota = self._folders["memory"], int(limits.cpus * PERIOD)
        (self._folders["pids"] / "pids.max").write_text(str(limits.pids))
        if self._version == 2:
            (memory / "memory.max").write_text(size)
            _write_if_there(memory / "memory.swap.max", "0")
            _write_if_there(memory / "cpu.max", f"{quota} {PERIOD}")
            return
        (memory / "memory.limit_in_bytes").write_text(size)
        _write_if_there(memory / "memory.memsw.limit_in_bytes", size)
        if "cpu" in self._folders:
            _write_if_there(self._folders["cpu"] / "cpu.cfs_period_us", str(PERIOD))
            _write_if_there(self._folders["cpu"] / "cpu.cfs_quota_us", str(quota))

    def oom_kills(self) -> int:
        """Processes of the group that the kernel has ended for memory."""
        name = "memory.events" if self._version == 2 else "memory.oom_control"
        with contextlib.suppress(OSError, ValueError, KeyError):
            lines = (self._folders["memory"] / name).read_text().splitlines()
            return int(dict(line.split() for line in lines)["oom_kill"])
        return 0

    def remove(self) -> None:
        """Kill what is left in the group and remove it, within a few seconds."""
        for folder in set(self._folders.values()):
            _remove(folder)


def _write_if_there(path: Path, value: str) -> None:
    """For what not every kernel accounts (swap, cpu)."""
    if path.exists():
        path.write_text(value)


def _remove(folder: Path, seconds: float = 3.0) -> None:
    deadline = time.monotonic() + seconds
    while folder.exists() and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            folder.rmdir()
            return
        with contextlib.suppress(OSError, ValueError):
            for pid in (folder / "cgroup.procs").read_text().split():
                if int(pid) > 0:
                    os.kill(int(pid), signal.SIGKILL)
        time.sleep(0.002)


def reap(hierarchy: Hierarchy) -> int:
    """Remove the groups of owners that are gone; returns how many. Other pid namespaces' groups are left alone."""
    removed = 0
    for folder in _groups_below(hierarchy.top):
        made_by = folder.name.removeprefix(PREFIX).rpartition("-")[0]
        namespace, pid, _ = ([*made_by.split("-", 2), "", ""])[:3]
        if namespace != owner().split("-")[0] or not pid.isdigit() or _lives(made_by, int(pid)):
            continue
        _remove(folder)
        removed += 1
    return removed


def _groups_below(top: Path) -> list[Path]:
    """Groups with our names, wherever they are; an owner may have run in another session's group."""
    found = []
    for folder, folders, _ in os.walk(top):
        found += [Path(folder, name) for name in folders if name.count("-") >= 4 and name.startswith(PREFIX)]
    return sorted(found)


def _lives(made_by: str, pid: int) -> bool:
    try:
        return owner(pid) == made_by
    except OSError:
        return False
