"""The Docker back end: single-use containers from any engine that speaks Docker's API.

Containers carry their owner in labels, so what a killed run left behind is removed, and only that.
"""

from __future__ import annotations

import contextlib
import json
import logging
import queue
import re
import secrets
import threading

import docker.errors
from docker import DockerClient

from sandbox.docker_container import DockerChannel, Engine, attach, create, memory_file
from sandbox.engine import command_line
from sandbox.engine.daemon import EngineFailure, connect
from sandbox.engine.image import find_image, record_of
from sandbox.interface import Channel, Limits, Probe, SandboxError
from sandbox.owner import Owner, current_owner
from sandbox.pool import Pool, prepare
from sandbox.prelude import prelude
from sandbox.probes import label_of, run_probes, small
from sandbox.runtime import digest_of, with_code
from sandbox.seccomp import docker_profile

log = logging.getLogger(__name__)

START_SECONDS = 30
BRISK_SECONDS = 2
"""For each call that ends a container."""
REMOVE_ATTEMPTS = 3
RUN_LABEL = "lvmh.run"
POOL_LABEL = "lvmh.pool"
OWNER_LABEL = "lvmh.owner"
_FIXED_RUNC = {2: 8, 3: 3}
"""First patch release of runc 1.MINOR in which CVE-2025-31133, -52565 and -52881 are fixed; 1.4 and later are free."""


class DockerSandbox:
    """Channels to containers of one engine and one image."""

    name = "docker"

    def __init__(self, limits: Limits, pool_size: int, run_id: str) -> None:
        """Reaps what dead runs left, then starts filling the pool. Raises SandboxError."""
        self.limits = limits
        self._run_id = run_id
        self._engine = open_engine()
        try:
            image = find_image(self._engine.patient)
            if image is None:
                raise SandboxError(f"the sandbox image is not there; to mend: {command_line('up')}")
            self._image = str(image.id)
            self._version = describe_engine(self._engine)
            self._prelude = prelude()
            self.runtime_digest = digest_of(with_code(record_of(image), self._prelude.digest))
            reap(self._engine.brisk)
        except EngineFailure as error:
            self._engine.close()
            raise SandboxError(f"the Docker engine failed: {error}") from None
        except SandboxError:
            self._engine.close()
            raise
        self._profile = json.dumps(docker_profile())
        self._token = secrets.token_hex(8)
        self._labels = {RUN_LABEL: run_id, POOL_LABEL: self._token} | current_owner().labels(OWNER_LABEL)
        self._probes: tuple[Probe, ...] | None = None
        self._closed = False
        self._ended: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._remover = threading.Thread(target=self._remove_ended, name="sandbox-remover", daemon=True)
        self._remover.start()
        self._pool = Pool(self._start, pool_size)

    def open(self) -> Channel:
        """A fresh channel from the pool. Raises SandboxError."""
        return self._pool.take()

    def ready(self) -> None:
        """Wait until a channel can be opened at once. Raises SandboxError."""
        self._pool.wait()

    def probe(self) -> tuple[Probe, ...]:
        """Run the start-up probes once, in a sandbox like this one. Raises SandboxError."""
        if self._probes is None:
            trial = DockerSandbox(small(self.limits), 0, self._run_id)
            try:
                self._probes = run_probes(trial)
            finally:
                trial.close()
        return self._probes

    @property
    def label(self) -> str:
        """The engine's name and version, and what does not hold."""
        return label_of(self._version[0], self._probes, self._version[1])

    def close(self) -> None:
        """Remove every container that was ever made here, and wait for it. Idempotent."""
        if self._closed:
            return
        self._closed = True
        self._pool.close()
        self._ended.put(None)
        self._remover.join()
        with contextlib.suppress(*EngineFailure):
            left = self._engine.brisk.api.containers(all=True, filters={"label": f"{POOL_LABEL}={self._token}"})
            for entry in left:
                remove(self._engine.brisk, entry["Id"])
            reap(self._engine.brisk)
        self._engine.close()

    def _start(self) -> Channel:
        try:
            container = create(self._engine, self._image, self.limits, self._profile, self._labels)
        except Exception as error:  # of whatever kind: the thread that fills the pool has to live
            raise SandboxError(f"the Docker engine cannot make a container: {error}") from error
        try:
            connection = attach(self._engine, container)
            self._engine.patient.api.start(container)
            memory = memory_file(self._engine, container)
            channel = DockerChannel(self._engine, container, connection, self.limits, memory, self._ended.put)
        except Exception as error:
            self._ended.put(container)
            raise SandboxError(f"the Docker engine cannot start a container: {error}") from error
        prepare(channel, self._prelude)
        return channel

    def _remove_ended(self) -> None:
        """Removal takes as long as the rest of an ending: nobody waits for it."""
        while (container := self._ended.get()) is not None:
            remove(self._engine.brisk, container)


def open_docker(limits: Limits, pool_size: int, run_id: str) -> DockerSandbox:
    """A sandbox whose first container has started. Raises SandboxError, with how to mend it."""
    sandbox = DockerSandbox(limits, pool_size, run_id)
    try:
        sandbox.ready()
    except SandboxError:
        sandbox.close()
        raise
    return sandbox


def open_engine() -> Engine:
    """Connect to the engine that DOCKER_HOST names, else the usual socket. Raises SandboxError."""
    try:
        return Engine(connect(timeout=START_SECONDS), connect(timeout=BRISK_SECONDS))
    except EngineFailure:
        raise SandboxError(f"no Docker engine answers; to mend: {command_line('up')}") from None


def reap(client: DockerClient) -> int:
    """Remove the containers whose owner has certainly ended; returns how many. Raises EngineFailure."""
    found = client.api.containers(all=True, filters={"label": f"{OWNER_LABEL}.pid"})
    gone = [entry["Id"] for entry in found if (owner := _owner(entry["Labels"])) is not None and owner.gone()]
    return sum(remove(client, container) for container in gone)


def remove(client: DockerClient, container: str) -> bool:
    """Kill and remove one container; whether it is gone. One that the engine fails to remove is left to ``reap``."""
    for _ in range(REMOVE_ATTEMPTS):
        try:
            client.api.remove_container(container, force=True, v=True)
            return True
        except docker.errors.NotFound:
            return True
        except Exception as error:  # of whatever kind: what is not removed now is removed at close or reaped
            log.debug("container %s was not removed: %s", container[:12], error)
    return False


def describe_engine(engine: Engine) -> tuple[str, str]:
    """Name with version, and what is known to be wrong with it (empty: nothing). Raises EngineFailure."""
    version = engine.brisk.api.version()
    parts = {part["Name"]: str(part["Version"]) for part in version.get("Components", ())}
    runc = parts.get("runc", "")
    name = f"docker {version['Version']}, runc {runc or 'unknown'}"
    return name, runc_weakness(runc)


def runc_weakness(version: str) -> str:
    """Says "known CVE" for a runc that can be tricked into writing where masked paths should be; else empty."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", version)
    if found is None:
        return ""
    major, minor, patch = (int(part) for part in found.groups())
    fixed = (major, minor) >= (1, 4) or patch >= _FIXED_RUNC.get(minor, 1 << 30)
    return "" if fixed else f"known CVE: runc {version} lacks the fixes of 1.2.8 and 1.3.3"


def _owner(labels: dict[str, str]) -> Owner | None:
    return Owner.from_labels(OWNER_LABEL, labels)
