"""One single-use, hardened container: how it is made, spoken to, ended and read out."""

from __future__ import annotations

import contextlib
import signal
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import docker
import docker.errors
import requests
from docker.types import LogConfig, Ulimit

from sandbox.docker_stream import Attached
from sandbox.engine.daemon import EngineFailure
from sandbox.engine.image import PYTHON, WHEELS
from sandbox.interface import Ending, Limits, SandboxError
from sandbox.prelude import ENVIRONMENT, command

USER = "65534:65534"
INODES = 1024
"""Files and folders on the temporary file system."""
LAST_WORDS_SECONDS = 0.005
"""For prints that are still on their way when a channel is closed."""
EXIT_SECONDS = 0.5
"""For the engine to see that a container whose output has ended has itself ended."""
OOM_EVENT_SECONDS = 0.1
_KILLED = 137
_MEGABYTE = 1_048_576


@dataclass(frozen=True, slots=True)
class Engine:
    """Two clients of one engine: a patient one, and one for ending containers, whose every call is short."""

    patient: docker.DockerClient
    brisk: docker.DockerClient

    def close(self) -> None:
        """Drop the connections."""
        self.patient.close()
        self.brisk.close()


def create(engine: Engine, image: str, limits: Limits, profile: str, labels: Mapping[str, str]) -> str:
    """Make a container, not yet started; returns its id. ``profile`` is seccomp JSON. Raises EngineFailure."""
    api = engine.patient.api
    memory = limits.memory_mb * _MEGABYTE
    size = limits.file_mb * _MEGABYTE
    host = api.create_host_config(
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        security_opt=["no-new-privileges:true", f"seccomp={profile}"],
        init=True,
        ipc_mode="private",
        shm_size=_MEGABYTE,
        tmpfs={"/tmp": f"rw,noexec,nosuid,nodev,size={size},nr_inodes={INODES},mode=1777"},
        pids_limit=limits.pids,
        mem_limit=memory,
        memswap_limit=memory,  # left out, the engine would allow as much swap again
        nano_cpus=int(limits.cpus * 1e9),
        ulimits=[
            Ulimit(name="core", soft=0, hard=0),
            Ulimit(name="fsize", soft=size, hard=size),
            Ulimit(name="nofile", soft=limits.open_files, hard=limits.open_files),
        ],
        log_config=LogConfig(type=LogConfig.types.NONE),
    )
    created = api.create_container(
        image,
        command=["setarch", "--addr-no-randomize", *command(PYTHON, WHEELS)],
        entrypoint=[],
        user=USER,
        hostname="sandbox",
        working_dir="/tmp",
        environment=dict(ENVIRONMENT),
        stdin_open=True,
        tty=False,
        network_disabled=True,
        labels=dict(labels),
        stop_signal="SIGKILL",
        healthcheck={"test": ["NONE"]},
        host_config=host,
        use_config_proxy=False,  # else the user's proxy settings, with their password, would show inside
    )
    return str(created["Id"])


@dataclass(frozen=True, slots=True)
class Connection:
    """The raw socket of a container's three streams."""

    socket: socket.socket
    _response: Any
    """The reply it came with. It would close the socket when it is collected, so it is kept as long."""

    def close(self) -> None:
        """Give the descriptor back."""
        with contextlib.suppress(OSError):
            self._response.close()


def attach(engine: Engine, container: str) -> Connection:
    """Attach before the start: nothing is logged that could be read later. Raises EngineFailure, SandboxError."""
    wanted = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1, "logs": 0}
    wrapped: Any = engine.patient.api.attach_socket(container, params=wanted)
    raw = getattr(wrapped, "_sock", wrapped)
    if not isinstance(raw, socket.socket):
        raise SandboxError("this kind of DOCKER_HOST gives no raw socket: use unix:// or tcp://")
    return Connection(raw, wrapped._response)


class DockerChannel:
    """A started container and its socket."""

    def __init__(
        self,
        engine: Engine,
        container: str,
        connection: Connection,
        limits: Limits,
        memory: Path | None,
        remove: Callable[[str], None],
    ) -> None:
        """``connection`` was attached before the start; ``memory`` as ``memory_file`` gives it; ``remove`` is told
        of the container once it is of no more use."""
        self._engine = engine
        self._container = container
        self._connection = connection
        self._attached = Attached(connection.socket, limits.log_bytes, limits.output_bytes)
        self._remove = remove
        self._lock = threading.Lock()
        self._ending: Ending | None = None
        self._memory = memory
        self._began = int(time.time()) - 1

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``. Raises TimeoutError, BrokenPipeError."""
        self._attached.send(data, deadline)

    def receive(self, limit: int, deadline: float) -> bytes:
        """The next line. Raises TimeoutError, EOFError, ValueError."""
        return self._attached.receive(limit, deadline)

    def oom_kills(self) -> int:
        """Processes that the kernel has ended for memory: from its own files, else from the engine's events."""
        counted = _oom_kills(self._memory) if self._memory is not None else None
        if counted is not None:
            return counted
        deadline = time.monotonic() + OOM_EVENT_SECONDS
        while (count := self._events("oom")) == 0 and time.monotonic() < deadline:
            time.sleep(0.01)
        return count

    def close(self) -> Ending:
        """Shut the socket, kill, read how it ended, remove. Raises SandboxError where the engine does not say."""
        with self._lock:
            if self._ending is None:
                self._ending = self._end()
            return self._ending

    def retire(self) -> str:
        """Where the kernel's own count can be read nothing is asked of the engine, and it removes in the background."""
        with contextlib.suppress(SandboxError):
            return self.close().log
        return ""

    def _end(self) -> Ending:
        gone = self._attached.gone
        self._attached.last_words(LAST_WORDS_SECONDS)
        # A socket that nobody reads makes the engine's kill hang while the container floods it: shut it first.
        self._attached.shut()
        self._connection.close()
        counted = _oom_kills(self._memory) if self._memory is not None else None
        try:
            if gone:
                exit_code, oom = self._how_it_ended()
            elif counted is not None:  # it still runs, and the kernel's count says all there is to know
                exit_code, oom = None, False
            else:
                self._kill()
                exit_code, oom = None, bool(self._state()["OOMKilled"])
        except EngineFailure as error:
            raise SandboxError(f"the engine does not say how a container ended: {error}") from None
        finally:
            self._remove(self._container)
        return Ending(exit_code, oom or bool(counted), self._attached.log())

    def _how_it_ended(self) -> tuple[int | None, bool]:
        """Exit status and whether for memory, of a container whose output has ended: it should be about to end."""
        state = self._wait_for_exit()
        if state["Running"]:
            self._kill()
            return None, bool(self._state()["OOMKilled"])
        exit_code, oom = int(state["ExitCode"]), bool(state["OOMKilled"])
        if exit_code == _KILLED and not oom and self._events("kill"):
            exit_code = -signal.SIGKILL
        return exit_code, oom

    def _wait_for_exit(self) -> dict[str, Any]:
        deadline = time.monotonic() + EXIT_SECONDS
        while (state := self._state())["Running"] and time.monotonic() < deadline:
            time.sleep(0.01)
        return state

    def _state(self) -> dict[str, Any]:
        return cast(dict[str, Any], self._engine.brisk.api.inspect_container(self._container)["State"])

    def _kill(self) -> None:
        try:
            self._engine.brisk.api.kill(self._container)
        except docker.errors.APIError as error:
            if error.status_code != requests.codes.conflict:  # it has just ended by itself
                raise

    def _events(self, name: str) -> int:
        """How many events of this name the engine has seen of the container."""
        span: dict[str, Any] = {"since": self._began, "until": f"{time.time():.6f}"}
        wanted = {"container": self._container, "event": name}
        try:
            return sum(1 for _ in self._engine.brisk.api.events(**span, filters=wanted, decode=True))
        except EngineFailure:
            return 0


def memory_file(engine: Engine, container: str) -> Path | None:
    """Where this machine's kernel counts the running container's memory kills; None for an engine elsewhere."""
    state = engine.brisk.api.inspect_container(container)["State"]
    try:
        groups = Path(f"/proc/{state['Pid']}/cgroup").read_text().splitlines()
    except OSError:
        return None
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if container not in path:
            continue
        if "memory" in controllers.split(","):
            return _existing(Path(f"/sys/fs/cgroup/memory{path}/memory.oom_control"))
        if not controllers:
            return _existing(Path(f"/sys/fs/cgroup{path}/memory.events"))
    return None


def _existing(path: Path) -> Path | None:
    return path if path.exists() else None


def _oom_kills(path: Path) -> int | None:
    try:
        return int(dict(line.split() for line in path.read_text().splitlines())["oom_kill"])
    except (OSError, ValueError, KeyError):
        return None
