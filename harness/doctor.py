"""``harness doctor``: what works on this machine, what does not, and the one command that mends it.

Every check tries the thing itself: containers are started and their walls are pushed against, nothing is concluded
from a version alone.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict
from rich.console import Console
from rich.table import Table

from harness.display import cell, visible
from harness.errors import UserError
from harness.models import embedder
from harness.settings import PACKAGED_EMBEDDER
from sandbox import cgroup
from sandbox.bubblewrap import open_bubblewrap
from sandbox.docker import open_docker
from sandbox.engine import command_line, daemon
from sandbox.engine.image import base_of, find_image, image_name, is_exported, record_of
from sandbox.interface import Limits, Sandbox, SandboxError
from sandbox.runtime_build import cache_folder, rootfs_folder

PYTHON = (3, 11)
GIT = (2, 30)
FREE_GIGABYTES = 2.0
"""For the image, its exported root file system and a run's folder."""


class Check(BaseModel):
    """One thing that was tried. ``mend`` is one command, empty where all is well or nothing can be done."""

    model_config = ConfigDict(frozen=True)

    name: str
    ok: bool
    detail: str
    mend: str = ""


class Report(BaseModel):
    """All checks, and which sandbox a run would pick."""

    model_config = ConfigDict(frozen=True)

    checks: tuple[Check, ...]
    sandbox: str
    """Label of the sandbox that a run picks by itself; empty where none works."""

    @property
    def usable(self) -> bool:
        """Whether a run could start here."""
        return bool(self.sandbox)

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"usable": self.usable, **self.model_dump(mode="json")}


def doctor(folder: Path | None = None) -> Report:
    """Try everything. ``folder`` is where runs would be written (default: the current folder)."""
    up = command_line("up")
    docker_checks, docker = sandbox_checks("Docker", open_docker_for_trial, up, "")
    bubblewrap_checks, bubblewrap = sandbox_checks(
        "bubblewrap", open_bubblewrap_for_trial, bubblewrap_mend(), "" if docker else up
    )
    checks = [python_check(), git_check(), *engine_checks(), *docker_checks, *bubblewrap_checks, cgroup_check()]
    checks += [*runtime_checks(docker, bubblewrap), embedder_check(), *disk_checks(folder or Path.cwd())]
    picked = docker or bubblewrap
    return Report(checks=tuple(checks), sandbox=picked.label if picked else "")


def render(report: Report, console: Console) -> None:
    """A table of the checks, the commands that mend what is not well, and the sandbox that a run picks."""
    table = Table("", "what", "found")
    for check in report.checks:
        mark = cell("ok", "green") if check.ok else cell("--", "red")
        table.add_row(mark, cell(check.name), cell(check.detail))
    console.print(table)
    for check in report.checks:
        if check.mend and not check.ok:
            console.print(visible(f"{check.name}: {check.mend}"), markup=False, soft_wrap=True)
    picked = f"a run picks: {report.sandbox}" if report.usable else "no sandbox works here: a run would refuse to start"
    console.print(visible(picked), markup=False, soft_wrap=True)


# ---------------------------------------------------------------- tools


def python_check() -> Check:
    """This interpreter."""
    ok = sys.version_info[:2] >= PYTHON
    return Check(
        name="Python", ok=ok, detail=platform.python_version(), mend="" if ok else "apt-get install -y python3"
    )


def git_check() -> Check:
    """The lineage of a run is a git repository."""
    mend = "apt-get install -y git"
    try:
        shown = subprocess.run(["git", "--version"], capture_output=True, text=True, check=True).stdout.split()[2]
        found = tuple(int(part) for part in shown.split(".")[:2])
    except (OSError, subprocess.CalledProcessError, ValueError, IndexError):
        return Check(name="git", ok=False, detail="not found", mend=mend)
    return Check(name="git", ok=found >= GIT, detail=shown, mend="" if found >= GIT else mend)


# ---------------------------------------------------------------- Docker


def engine_checks() -> Iterator[Check]:
    """The daemon and the image."""
    mend = command_line("up")
    where = os.environ.get("DOCKER_HOST", "the usual socket")
    if not daemon.answers():
        obstacle = daemon.obstacle() or "it can be set up here"
        yield Check(name="Docker engine", ok=False, detail=f"none answers at {where}: {obstacle}", mend=mend)
        return
    client = daemon.connect()
    try:
        info = client.info()
        storage = f"storage {info.get('Driver', 'unknown')}, control groups v{info.get('CgroupVersion', '?')}"
        detail = f"{info.get('ServerVersion', 'unknown version')} at {where}, {storage}"
        yield Check(name="Docker engine", ok=True, detail=detail)
        image = find_image(client)
        if image is None:
            yield Check(name="Docker image", ok=False, detail=f"{image_name()} is not there", mend=mend)
            return
        record = record_of(image)
        exported = "" if is_exported(image, rootfs_folder()) else ", not unpacked for bubblewrap"
        detail = f"{image_name()}: Python {record.python}, {record.libc}, on {base_of(image)}{exported}"
        yield Check(name="Docker image", ok=not exported, detail=detail, mend=mend if exported else "")
    except (SandboxError, *daemon.EngineFailure) as error:
        yield Check(name="Docker image", ok=False, detail=str(error), mend=mend)
    finally:
        client.close()


# ---------------------------------------------------------------- sandboxes


@dataclass(frozen=True, slots=True)
class Trial:
    """What trying a sandbox showed."""

    label: str
    digest: str


def open_docker_for_trial() -> Sandbox:
    """Docker with the limits of a run."""
    return open_docker(Limits(), 1, "doctor")


def open_bubblewrap_for_trial() -> Sandbox:
    """bubblewrap with the limits of a run."""
    return open_bubblewrap(Limits(), 1)


def bubblewrap_mend() -> str:
    """What installs bubblewrap here."""
    return "apt-get install -y bubblewrap" if shutil.which("bwrap") is None else command_line("ensure")


def sandbox_checks(
    name: str, open_trial: Callable[[], Sandbox], mend: str, stronger: str
) -> tuple[list[Check], Trial | None]:
    """Open it and push against its walls. ``mend`` makes it work, ``stronger`` gives what its walls lack."""
    try:
        sandbox = open_trial()
    except SandboxError as error:
        return [Check(name=f"{name} sandbox", ok=False, detail=str(error), mend=mend)], None
    try:
        probes = sandbox.probe()
        trial = Trial(label=sandbox.label, digest=sandbox.runtime_digest)
    except SandboxError as error:
        return [Check(name=f"{name} sandbox", ok=False, detail=str(error), mend=mend)], None
    finally:
        sandbox.close()
    held = [probe.name for probe in probes if probe.held]
    fallen = [f"{probe.name} ({probe.detail})" for probe in probes if not probe.held]
    checks = [Check(name=f"{name} sandbox", ok=True, detail=trial.label)]
    detail = f"{len(held)} of {len(probes)} hold" + (f"; not: {'; '.join(fallen)}" if fallen else "")
    checks.append(Check(name=f"{name} walls", ok=not fallen, detail=detail, mend=stronger if fallen else ""))
    return checks, trial


def cgroup_check() -> Check:
    """bubblewrap limits all processes of a candidate together only where control groups can be made."""
    hierarchy = cgroup.find()
    if hierarchy is not None:
        return Check(name="control groups", ok=True, detail=f"version {hierarchy.version}")
    detail = "none can be made: with bubblewrap memory is limited per process only"
    mend = "systemd-run --user --scope -p Delegate=yes harness run --iterations 50"
    return Check(name="control groups", ok=False, detail=detail, mend=mend)


def runtime_checks(docker: Trial | None, bubblewrap: Trial | None) -> Iterator[Check]:
    """Figures of different runtimes are never compared: both sandboxes should run on the same one."""
    digests = {name: trial.digest for name, trial in (("Docker", docker), ("bubblewrap", bubblewrap)) if trial}
    if not digests:
        return
    same = len(set(digests.values())) == 1
    detail = f"{next(iter(digests.values()))[:16]} ({' and '.join(digests)})"
    if not same:
        detail = ", ".join(f"{name} {digest[:16]}" for name, digest in digests.items())
    yield Check(name="runtime digest", ok=same, detail=detail, mend="" if same else command_line("up"))


def embedder_check() -> Check:
    """The packaged embedding model: optional, and needed only where a profile names it."""
    detail = embedder.missing()
    try:
        detail = detail or f"{PACKAGED_EMBEDDER}: weights {embedder.PackagedEmbedder().digest[:16]}"
    except UserError as error:
        return Check(name="embedding model", ok=False, detail=str(error), mend=embedder.INSTALL)
    missing = bool(embedder.missing())
    return Check(name="embedding model", ok=not missing, detail=detail, mend=embedder.INSTALL if missing else "")


# ---------------------------------------------------------------- disk


def disk_checks(folder: Path) -> Iterator[Check]:
    """Room for runs and for the runtime."""
    for name, place in (("disk for runs", folder), ("disk for the runtime", cache_folder())):
        there = next(parent for parent in (place, *place.parents) if parent.exists())
        free = shutil.disk_usage(there).free / 1e9
        writable = os.access(there, os.W_OK)
        detail = f"{free:.1f} GB free" + ("" if writable else f", but {there} cannot be written")
        ok = writable and free >= FREE_GIGABYTES
        yield Check(name=name, ok=ok, detail=detail, mend="" if ok else f"df -h {there}")
