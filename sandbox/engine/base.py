"""The base image: one that is here, else one that a registry gives, else one made from the distribution's packages."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

import docker
import docker.errors

from sandbox.engine import EngineError, command_line
from sandbox.engine.daemon import EngineFailure, apt_install, connect, search_path

log = logging.getLogger(__name__)

REGISTRY_BASE = "python:3.11-slim"
_LOCAL_REPOSITORY = "lvmh-base"
_PULL_SECONDS = 15
_DROPPED = (
    "var/cache/apt",
    "var/lib/apt/lists",
    "usr/share/doc",
    "usr/share/man",
    "usr/share/locale",
    "usr/share/info",
)
_FACTS = "import json,platform as p; print(json.dumps([p.python_version(), ' '.join(p.libc_ver()), p.machine()]))"


@dataclass(frozen=True, slots=True)
class Base:
    """A base image and what its interpreter is."""

    image: str
    """Image id."""
    name: str
    python: str
    """Full version, for example 3.11.2."""
    libc: str
    """Name and version, for example glibc 2.36."""
    machine: str
    """As the platform module names it, for example x86_64."""


@dataclass(frozen=True, slots=True)
class Mirror:
    """Where this machine's apt takes the distribution's main packages from."""

    url: str
    suite: str
    keyring: str | None


def find_base(client: docker.DockerClient, begun: Bootstrap | None = None) -> Base:
    """The base image, made where there is none; ``begun`` may have been started before. Raises EngineError."""
    local = f"{_LOCAL_REPOSITORY}:{_codename() or 'none'}"
    for name in (REGISTRY_BASE, local):
        if _present(client, name):
            return describe(client, name)
    if _pull(REGISTRY_BASE):
        return describe(client, REGISTRY_BASE)
    log.info("no registry gives %s: making the base image from the distribution's packages", REGISTRY_BASE)
    bootstrap = begun or _begin()
    try:
        bootstrap.finish(client, local)
    finally:
        bootstrap.close()
    return describe(client, local)


def describe(client: docker.DockerClient, name: str) -> Base:
    """Ask the interpreter inside for its version. Raises EngineError where there is none."""
    try:
        output = client.containers.run(name, ["python3", "-c", _FACTS], remove=True, network_mode="none")
        python, libc, machine = json.loads(output)
        return Base(str(client.images.get(name).id), name, python, libc, machine)
    except (docker.errors.DockerException, ValueError) as error:
        raise EngineError(f"base image {name} does not run python3: {error}") from error


class Bootstrap:
    """debootstrap at work on a root file system: the longest step of a first set-up, so it can run beside others."""

    def __init__(self) -> None:
        """Start it. Raises EngineError."""
        mirror = apt_mirror()
        self._folder = tempfile.TemporaryDirectory(prefix="lvmh-base-", dir="/var/tmp", ignore_cleanup_errors=True)
        self._root = Path(self._folder.name) / "root"
        self._output = Path(self._folder.name) / "output"
        command = ["debootstrap", "--variant=minbase", "--include=python3"]
        command += [f"--keyring={mirror.keyring}"] if mirror.keyring else []
        with self._output.open("w") as output:
            self._process = subprocess.Popen(
                [*command, mirror.suite, str(self._root), mirror.url],
                env=os.environ | {"PATH": search_path()} | _apt_proxy(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )

    def finish(self, client: docker.DockerClient, name: str) -> None:
        """Wait for it and import the result under ``name``. Raises EngineError."""
        if self._process.wait():
            lines = self._output.read_text().strip().splitlines() or ["no message"]
            raise EngineError(f"debootstrap could not make the base image: {lines[-1][:300]}")
        for path in _DROPPED:
            shutil.rmtree(self._root / path, ignore_errors=True)
        _import(client, self._root, name)

    def close(self) -> None:
        """Stop it where it is still at work (it unmounts what it has mounted) and remove its files."""
        self._process.terminate()
        self._process.wait()
        self._folder.cleanup()


def apt_mirror() -> Mirror:
    """The mirror and suite of the distribution itself, from apt's configuration. Raises EngineError."""
    codename = _codename()
    for attempt in range(2):
        targets = _output(["apt-get", "indextargets", "Created-By: Packages"])
        for stanza in targets.split("\n\n"):
            target = dict(line.partition(": ")[::2] for line in stanza.splitlines())
            if target.get("Codename") == codename and target.get("Component") == "main" and "Repo-URI" in target:
                keyring = target.get("Signed-By", "")
                return Mirror(target["Repo-URI"], codename, keyring if Path(keyring).is_file() else None)
        if attempt == 0:  # without package lists apt does not know the code names
            _output(["apt-get", "update", "-qq"])
    raise EngineError(
        f"apt names no mirror with the main packages of {codename or 'this distribution'}: mend its sources"
    )


def _begin() -> Bootstrap:
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise EngineError(
            f"no registry gives the base image: docker pull {REGISTRY_BASE} where one answers, "
            f"or as root on Debian: {command_line('up')}"
        )
    if shutil.which("debootstrap", path=search_path()) is None:
        apt_install(["debootstrap"])
    return Bootstrap()


def _import(client: docker.DockerClient, root: Path, name: str) -> None:
    repository, _, tag = name.partition(":")
    with subprocess.Popen(["tar", "-C", str(root), "--exclude=./dev/*", "-c", "."], stdout=subprocess.PIPE) as tar:
        client.api.import_image_from_stream(cast(IO[bytes], tar.stdout), repository=repository, tag=tag)
    if tar.returncode or not _present(client, name):
        raise EngineError("the base image could not be imported: tar failed")


def _pull(name: str) -> bool:
    client = connect(timeout=_PULL_SECONDS)
    try:
        client.images.pull(name)
    except EngineFailure as error:
        log.debug("%s could not be pulled: %s", name, error)
        return False
    finally:
        client.close()
    return True


def _present(client: docker.DockerClient, name: str) -> bool:
    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        return False
    return True


def _codename() -> str:
    try:
        lines = Path("/etc/os-release").read_text().splitlines()
    except OSError:
        return ""
    return next((line.partition("=")[2].strip('"') for line in lines if line.startswith("VERSION_CODENAME=")), "")


def _apt_proxy() -> dict[str, str]:
    """Apt's own proxy as the variables that debootstrap's downloader reads."""
    names = {"http_proxy": "Acquire::http::Proxy", "https_proxy": "Acquire::https::Proxy"}
    values = {name: _output(["apt-config", "shell", "value", key]) for name, key in names.items()}
    return {name: value.strip().removeprefix("value='").removesuffix("'") for name, value in values.items() if value}


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, text=True, capture_output=True, check=False).stdout
    except OSError:
        return ""
