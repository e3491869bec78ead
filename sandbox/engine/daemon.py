"""The Docker daemon: install it where that may be done, start it, stop only one that was started here."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import docker
import docker.errors
import requests

from sandbox.engine import EngineError, command_line
from sandbox.owner import start_time

EngineFailure = (docker.errors.DockerException, requests.RequestException, OSError)
"""What any call of an engine may raise: refused, gone, or too slow."""
_PROGRAMS = {"dockerd": "docker.io", "iptables": "iptables", "debootstrap": "debootstrap"}
_SYSTEMD = Path("/run/systemd/system")


@dataclass(frozen=True, slots=True)
class Places:
    """Where one daemon keeps its things; the defaults are the engine's own, so that any client finds it."""

    socket: Path = Path("/var/run/docker.sock")
    pidfile: Path = Path("/var/run/docker.pid")
    exec_root: Path = Path("/var/run/docker")
    data_root: Path = Path("/var/lib/docker")
    log: Path = Path("/var/log/lvmh-dockerd.log")
    record: Path = Path("/var/run/lvmh-dockerd.json")
    """Says which daemon was started here. Under /var/run: it must not outlive a reboot."""
    arguments: tuple[str, ...] = ()
    """More arguments for dockerd."""


def search_path() -> str:
    """PATH with the system folders, which an unprivileged login may lack."""
    return os.pathsep.join([os.environ.get("PATH", ""), "/usr/local/sbin", "/usr/sbin", "/sbin"])


def answers(base_url: str | None = None, timeout: int = 3) -> bool:
    """Whether a Docker API answers at ``base_url``, or where DOCKER_HOST (else the usual socket) points."""
    try:
        client = connect(base_url, timeout)
        try:
            return bool(client.ping())
        finally:
            client.close()
    except EngineFailure:
        return False


def connect(base_url: str | None = None, timeout: int = 60) -> docker.DockerClient:
    """A client that honours DOCKER_HOST, DOCKER_TLS_VERIFY and DOCKER_CERT_PATH. Raises DockerException."""
    if base_url is not None:
        client = docker.DockerClient(base_url=base_url, timeout=timeout, version="auto")
    else:
        client = docker.from_env(timeout=timeout, version="auto")
    # Else every call would look through the environment for proxies, which fails while another thread changes it.
    client.api.trust_env = False
    return client


def missing_packages() -> list[str]:
    """Debian packages whose programs are not here."""
    return [package for program, package in _PROGRAMS.items() if shutil.which(program, path=search_path()) is None]


def obstacle() -> str | None:
    """Why the engine cannot be set up here, and what to do; None where it can."""
    socket = Places().socket
    if socket.exists() and not os.access(socket, os.W_OK):
        return f"this user may not use {socket}: usermod -aG docker USER as root, then log in again"
    release = _os_release()
    if "debian" not in (release.get("ID"), *release.get("ID_LIKE", "").split()):
        return "no Docker engine answers: install Docker Engine and start it"
    if os.geteuid() != 0:
        missing = missing_packages()
        install = f"apt-get install {' '.join(missing)} && " if missing else ""
        return f"no Docker engine answers; as root: {install}{command_line('up')}"
    return None


def apt_install(packages: list[str]) -> None:
    """Install Debian packages. Raises EngineError."""
    command = ["apt-get", "-o", "DPkg::Lock::Timeout=120", "install", "-y", "-qq", "--no-install-recommends", *packages]
    # The package lists of a fresh machine are often missing or old: fetch them once, then try again.
    if not _apt(command).returncode:
        return
    _apt(["apt-get", "update", "-qq"])
    result = _apt(command)
    if result.returncode:
        raise EngineError(f"apt-get could not install {' '.join(packages)}: {_last_line(result.stderr)}")


def clear_stale(places: Places) -> list[Path]:
    """Remove pid files that a killed daemon left; a file whose process is a living daemon stays. Returns what went."""
    files = {places.pidfile: "dockerd", places.exec_root / "containerd/containerd.pid": "containerd"}
    gone = [path for path, program in files.items() if path.exists() and running(path, program) is None]
    for path in gone:
        path.unlink(missing_ok=True)
    return gone


def running(pidfile: Path, program: str) -> int | None:
    """The pid in the file where that process lives and is ``program``, else None."""
    try:
        pid = int(pidfile.read_text())
        return pid if Path(f"/proc/{pid}/comm").read_text().strip() == program and start_time(pid) else None
    except (OSError, ValueError):
        return None


def start(places: Places, timeout: float = 60.0) -> None:
    """Start a daemon, wait until it answers, record that it was started here. Raises EngineError."""
    if pid := running(places.pidfile, "dockerd"):
        _wait(places, pid, timeout)
        return
    clear_stale(places)
    if places == Places() and _SYSTEMD.is_dir():
        subprocess.run(["systemctl", "start", "docker"], check=False)
        _wait(places, None, timeout)
        places.record.write_text(json.dumps({"systemd": True}))
        return
    for folder in (places.socket.parent, places.record.parent, places.log.parent, places.data_root):
        folder.mkdir(parents=True, exist_ok=True)
    arguments = ["--host", f"unix://{places.socket}", "--pidfile", str(places.pidfile)]
    arguments += ["--exec-root", str(places.exec_root), "--data-root", str(places.data_root)]
    with places.log.open("wb") as log:
        process = subprocess.Popen(
            ["dockerd", *arguments, *places.arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env=os.environ | {"PATH": search_path()},
        )
    places.record.write_text(json.dumps({"pid": process.pid, "start": start_time(process.pid)}))
    _wait(places, process.pid, timeout)


def stop(places: Places, timeout: float = 30.0) -> bool:
    """Stop the daemon if it was started here; returns whether it was. Raises EngineError when it will not end."""
    try:
        record = json.loads(places.record.read_text())
    except (OSError, ValueError):
        return False
    if record.get("systemd"):
        subprocess.run(["systemctl", "stop", "docker.socket", "docker"], check=False)
        places.record.unlink()
        return True
    pid, started = int(record["pid"]), record["start"]
    if start_time(pid) != started:
        places.record.unlink()
        return False
    os.kill(pid, signal.SIGTERM)
    deadline = time.monotonic() + timeout
    while start_time(pid) == started:
        if time.monotonic() > deadline:
            raise EngineError(f"dockerd (pid {pid}) did not stop within {timeout:.0f} s; see {places.log}")
        time.sleep(0.05)
    places.record.unlink(missing_ok=True)
    return True


def _wait(places: Places, pid: int | None, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not answers(f"unix://{places.socket}"):
        if pid is not None and start_time(pid) is None:
            places.record.unlink(missing_ok=True)
            raise EngineError(f"dockerd ended at once: {_last_line(places.log.read_text())}; see {places.log}")
        if time.monotonic() > deadline:
            raise EngineError(f"dockerd (pid {pid}) does not answer on {places.socket}; see {places.log}")
        time.sleep(0.05)


def _apt(command: list[str]) -> subprocess.CompletedProcess[str]:
    # RUNLEVEL=1 keeps a package's start script from starting the service: who starts the daemon stops it.
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive", "NEEDRESTART_SUSPEND": "1", "RUNLEVEL": "1"}
    return subprocess.run(command, env=environment, text=True, capture_output=True, check=False)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"


def _os_release() -> dict[str, str]:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return {}
    return {key: value.strip('"') for key, _, value in (line.partition("=") for line in lines)}
