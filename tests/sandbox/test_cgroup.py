"""Control groups: the real ones of this machine where there are, and version 2's files in a folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox import cgroup
from sandbox.cgroup import Group, Hierarchy
from sandbox.interface import Limits

LIMITS = Limits(memory_mb=64, pids=8, cpus=0.5)


def real() -> Hierarchy:
    hierarchy = cgroup.find()
    if hierarchy is None:
        pytest.skip("no control group can be made here (not root, or a read-only hierarchy)")
    return hierarchy


def test_a_process_in_a_real_group_is_limited_and_its_end_is_seen() -> None:
    group = Group(real(), LIMITS)
    doors = group.doors

    def enter() -> None:
        for door in doors:
            door.write_text("0")

    hog = "import os, sys; sys.stdout.write('in'); sys.stdout.flush(); block = bytearray(b'x') * (256 << 20)"
    try:
        assert group.oom_kills() == 0
        done = subprocess.run([sys.executable, "-S", "-c", hog], preexec_fn=enter, capture_output=True, check=False)
        assert (done.returncode, done.stdout) == (-9, b"in")
        assert group.oom_kills() >= 1
        bomb = "import os\nn = 0\ntry:\n    while os.fork(): n += 1\n    os._exit(0)\nexcept OSError: print(n)"
        done = subprocess.run([sys.executable, "-S", "-c", bomb], preexec_fn=enter, capture_output=True, check=False)
        assert done.returncode == 0
    finally:
        group.remove()
    assert not any(door.parent.exists() for door in doors)


def test_removing_a_group_ends_what_is_in_it() -> None:
    group = Group(real(), LIMITS)
    process = subprocess.Popen(["sleep", "60"])
    for door in group.doors:
        door.write_text(str(process.pid))
    group.remove()
    assert process.wait(5) == -9
    assert not any(door.parent.exists() for door in group.doors)


def test_only_groups_of_dead_owners_of_this_namespace_are_removed(tmp_path: Path) -> None:
    session = tmp_path / "other" / "session"
    session.mkdir(parents=True)
    hierarchy = Hierarchy(1, {"memory": tmp_path}, tmp_path)
    dead = subprocess.Popen(["true"])
    dead.wait()
    namespace, pid, start = cgroup.owner().split("-")
    names = {
        f"lvmh-{namespace}-{pid}-{start}-0": True,
        f"lvmh-{namespace}-{pid}-{int(start) + 1}-0": False,
        f"lvmh-{namespace}-{dead.pid}-1-3": False,
        f"lvmh-{int(namespace) + 1}-{dead.pid}-1-3": True,
        "lvmh-other": True,
        "docker-1-2-3-4": True,
    }
    for name in names:
        (tmp_path / name).mkdir()
    (session / f"lvmh-{namespace}-{dead.pid}-1-4").mkdir()
    assert cgroup.reap(hierarchy) == 3
    assert not list(session.iterdir())
    session.rmdir()
    session.parent.rmdir()
    assert {path.name for path in tmp_path.iterdir()} == {name for name, stays in names.items() if stays}


def test_version_2_is_found_at_the_nearest_group_that_gives_both_controllers(tmp_path: Path) -> None:
    inner = tmp_path / "user.slice" / "session"
    inner.mkdir(parents=True)
    for folder, offered in ((tmp_path, "cpu memory pids"), (inner.parent, "cpu memory pids"), (inner, "pids")):
        (folder / "cgroup.controllers").write_text(offered)
        (folder / "cgroup.subtree_control").write_text("")
    own = tmp_path / "own"
    own.write_text("0::/user.slice/session\n")
    # a real kernel makes the files of a new group; a plain folder has none, so nothing here is usable
    assert cgroup.find(tmp_path, own) is None
    assert (inner.parent / "cgroup.subtree_control").read_text() == "+memory +pids +cpu"
    assert (inner / "cgroup.subtree_control").read_text() == ""


def test_version_2_limits_and_kills_are_in_its_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Path.mkdir

    def as_the_kernel(self: Path, *args: object, **kwargs: object) -> None:
        made(self)
        for name in ("memory.max", "memory.swap.max", "cpu.max", "pids.max", "cgroup.procs"):
            (self / name).write_text("max")
        (self / "memory.events").write_text("low 0\nhigh 0\nmax 3\noom 1\noom_kill 2\n")

    monkeypatch.setattr(Path, "mkdir", as_the_kernel)
    group = Group(Hierarchy(2, dict.fromkeys(cgroup.CONTROLLERS, tmp_path)), LIMITS)
    (door,) = group.doors
    folder = door.parent
    assert folder.parent == tmp_path
    values = {name: (folder / name).read_text() for name in ("memory.max", "memory.swap.max", "cpu.max", "pids.max")}
    assert values == {"memory.max": "67108864", "memory.swap.max": "0", "cpu.max": "50000 100000", "pids.max": "8"}
    assert group.oom_kills() == 2


def test_an_owner_is_one_process_of_one_boot() -> None:
    assert cgroup.owner() == cgroup.owner(os.getpid())
    assert cgroup.owner(os.getppid()) != cgroup.owner()
    with pytest.raises(OSError):
        cgroup.owner(2**22 + 1)
