"""Making the runtime's root file system on this machine: the host's interpreter, copied, and the locked wheels.

Copied, because an unprivileged user cannot reach an interpreter under root's home, and because a root file system of
its own shows a candidate nothing of the host. Built once, beside its final place, and renamed when whole.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from sandbox.engine import recipe
from sandbox.interface import Runtime, SandboxError
from sandbox.runtime import LOCK, RuntimeFolder, runtime_from_rootfs, write_record

LAYOUT = 1
"""Raised when what follows lays the folder out differently."""
PYTHON = "opt/python"
WHEELS = "opt/wheels"
LIBRARIES = "opt/lib"
MOUNT_POINTS = ("tmp", "proc", "dev", "etc")
DEVICES = ("null", "zero", "full", "random", "urandom")
_LEFT_OUT = ("test", "tests", "idlelib", "tkinter", "turtledemo", "ensurepip", "lib2to3", "site-packages",
             "dist-packages", "config-*", "pydoc_data", "*.a", "_tkinter*", "libpython*")  # fmt: skip


def cache_folder() -> Path:
    """Where runtimes are kept: readable by the sandbox's unprivileged user, so not under root's home."""
    if os.geteuid() == 0:
        return Path("/var/cache/lvmh")
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lvmh"


def rootfs_folder() -> Path:
    """Where the image's root file system lies when it was exported; both back ends then run on the same runtime.

    Named by the image's recipe: another checkout's, or a newer one, never takes the place of one that is in use.
    """
    return cache_folder() / f"rootfs-{recipe()}"


def find_runtime(progress: Callable[[str], None] = lambda _: None) -> RuntimeFolder:
    """The image's root file system where there is one with today's packages, else one of the host's interpreter."""
    exported = rootfs_folder()
    if exported.exists():
        folder = runtime_from_rootfs(exported)
        locked = LOCK.read_text(encoding="utf-8")
        if all(wheel.rpartition("sha256:")[2] in locked for wheel in folder.record.wheels.values()):
            return folder
    return build_runtime(progress)


def build_runtime(progress: Callable[[str], None] = lambda _: None) -> RuntimeFolder:
    """The runtime of this interpreter, from the cache or made now (a minute at most). Raises SandboxError."""
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        final = folder / f"runtime-{_key()}"
        with _locked(folder / "lock"):
            if not final.exists():
                progress("making the sandbox runtime (once)")
                _build(final)
        return runtime_from_rootfs(final)
    except OSError as error:
        raise SandboxError(f"cannot make the sandbox runtime in {folder}: {error}") from None


def _key() -> str:
    """What the folder's content depends on."""
    parts = (LAYOUT, platform.python_version(), _libc(), platform.machine(), str(_interpreter()), LOCK.read_text())
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]


def _build(final: Path) -> None:
    with tempfile.TemporaryDirectory(dir=final.parent, prefix="making-") as name:
        root = Path(name) / "root"
        for point in MOUNT_POINTS:
            (root / point).mkdir(parents=True)
        for device in DEVICES:
            (root / "dev" / device).touch()
        python = _copy_interpreter(root)
        wheels = install_wheels(root / WHEELS, sys.version_info[:2], platform.machine())
        _copy_libraries(root)
        record = Runtime(platform.python_version(), _libc(), wheels)
        environment = {"LD_LIBRARY_PATH": f"/{LIBRARIES}"}
        write_record(RuntimeFolder(root, f"/{python}", f"/{WHEELS}", record, environment))
        _make_readable(root)
        root.rename(final)


def _libc() -> str:
    return " ".join(platform.libc_ver())


def _interpreter() -> Path:
    return Path(sys.executable).resolve()


def _copy_interpreter(root: Path) -> str:
    """Copy the interpreter and its standard library; returns the interpreter's path within ``root``."""
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    binary = root / PYTHON / "bin" / version
    binary.parent.mkdir(parents=True)
    shutil.copy2(_interpreter(), binary)
    library = root / PYTHON / sys.platlibdir / version
    source = Path(sysconfig.get_path("stdlib", vars={"installed_base": sys.base_prefix, "base": sys.base_prefix}))
    shutil.copytree(source, library, ignore=shutil.ignore_patterns(*_LEFT_OUT), symlinks=False)
    extensions = Path(sysconfig.get_config_var("DESTSHARED") or "")
    if not (library / "lib-dynload").exists() and extensions.is_dir():
        shutil.copytree(extensions, library / "lib-dynload")
    return binary.relative_to(root).as_posix()


def install_wheels(target: Path, version: tuple[int, int], machine: str) -> dict[str, str]:
    """Install the locked wheels for CPython ``version`` on Linux ``machine`` with this interpreter's pip.

    Returns "VERSION sha256:HASH" by package, from what was really installed. Raises SandboxError.
    """
    tag = f"{version[0]}{version[1]}"
    platforms = (f"manylinux_2_28_{machine}", f"manylinux_2_27_{machine}", f"manylinux_2_17_{machine}",
                 f"manylinux2014_{machine}")  # fmt: skip
    with tempfile.TemporaryDirectory() as scratch:
        report = Path(scratch) / "report.json"
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary=:all:",
                   "--no-deps", "--disable-pip-version-check", "--no-warn-script-location", "--root-user-action=ignore",
                   "--implementation=cp", f"--python-version={version[0]}.{version[1]}",
                   f"--abi=cp{tag}", "--abi=abi3", "--abi=none", *(f"--platform={name}" for name in platforms),
                   f"--report={report}", f"--target={target}", "--requirement", str(LOCK)]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            lines = (done.stderr or done.stdout).strip().splitlines() or ["no message"]
            command_line = f"{sys.executable} -m pip download --no-deps --require-hashes -r {LOCK}"
            raise SandboxError(f"cannot install the sandbox's packages: {lines[-1][:300]}; see: {command_line}")
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    shutil.rmtree(target / "bin", ignore_errors=True)
    return {
        item["metadata"]["name"].lower(): f"{item['metadata']['version']} sha256:{_hash(item)}"
        for item in sorted(installed, key=lambda item: str(item["metadata"]["name"]).lower())
    }


def _hash(item: dict[str, dict[str, dict[str, dict[str, str]]]]) -> str:
    return item["download_info"]["archive_info"]["hashes"]["sha256"]


def _copy_libraries(root: Path) -> None:
    """Copy the shared libraries that the interpreter, its modules and the wheels load, and the dynamic linker."""
    programs = [*(root / PYTHON / "bin").iterdir(), *root.rglob("*.so"), *root.rglob("*.so.*")]
    (root / LIBRARIES).mkdir(parents=True)
    for library in sorted(_libraries(programs)):
        if library.is_relative_to(root):
            continue
        linker = library.name.startswith("ld-linux")
        place = root / str(library).lstrip("/") if linker else root / LIBRARIES / library.name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(library.resolve(), place)


def _libraries(programs: Iterable[Path]) -> set[Path]:
    done = subprocess.run(["ldd", *map(str, programs)], capture_output=True, text=True, check=False)
    return {Path(name) for name in re.findall(r"^\s+(?:\S+ => )?(/\S+) \(0x", done.stdout, re.MULTILINE)}


def _make_readable(root: Path) -> None:
    for path in (root, *root.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or (os.access(path, os.X_OK) and path.parent.name == "bin") else 0o644)
    for linker in root.rglob("ld-linux*"):
        linker.chmod(0o755)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
