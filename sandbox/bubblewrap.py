"""The bubblewrap back end: a root file system of its own in namespaces of its own, without a container engine."""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import re
import resource
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from sandbox import cgroup, seccomp
from sandbox.interface import Channel, Ending, Limits, Probe, SandboxError
from sandbox.pipes import Pipes
from sandbox.pool import Pool, prepare
from sandbox.prelude import ENVIRONMENT, command, prelude
from sandbox.probes import label_of, run_probes, small
from sandbox.runtime import RuntimeFolder, digest_of, with_code
from sandbox.runtime_build import DEVICES, find_runtime

_LOG = logging.getLogger(__name__)
NOBODY = 65534
MIN_VERSION = (0, 8)
INSTALL = "apt-get install -y bubblewrap"
CLOSE_SECONDS = 3.0


class BubblewrapSandbox:
    """Channels from ``bwrap``; memory and processes are limited by a control group where one can be made."""

    name = "bubblewrap"

    def __init__(self, limits: Limits, pool_size: int, cgroups: bool = True) -> None:
        """Raises SandboxError where bubblewrap is missing, too old, or does not work here."""
        self.limits = limits
        self._binary, self._version = _find_bubblewrap()
        self._runtime = find_runtime(_LOG.info)
        self._prelude = prelude()
        self.runtime_digest = digest_of(with_code(self._runtime.record, self._prelude.digest))
        self._hierarchy = cgroup.find() if cgroups else None
        if self._hierarchy is not None:
            cgroup.reap(self._hierarchy)
        self._probes: tuple[Probe, ...] | None = None
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
            trial = BubblewrapSandbox(small(self.limits), 0, self.has_groups)
            try:
                self._probes = run_probes(trial)
            finally:
                trial.close()
        return self._probes

    @property
    def label(self) -> str:
        """Name, version, and what does not hold."""
        memory = "" if self._hierarchy else "memory: per process only"
        return label_of(f"bubblewrap {self._version}", self._probes, memory)

    @property
    def has_groups(self) -> bool:
        """Whether control groups limit memory, processes and cpu of all processes together."""
        return self._hierarchy is not None

    def close(self) -> None:
        """End everything that the pool holds."""
        self._pool.close()

    def _retire(self, channel: Channel) -> None:
        self._pool.retire(channel)  # the pool starts making channels before it is ours to name

    def _start(self) -> Channel:
        group = self._make_group()
        try:
            channel = _BubblewrapChannel(self._launch(group), group, self.limits, self._retire)
        except (OSError, subprocess.SubprocessError) as error:
            if group is not None:
                group.remove()
            raise SandboxError(f"cannot start bubblewrap: {error}") from None
        prepare(channel, self._prelude)
        return channel

    def _make_group(self) -> cgroup.Group | None:
        if self._hierarchy is None:
            return None
        try:
            return cgroup.Group(self._hierarchy, self.limits)
        except OSError as error:
            raise SandboxError(f"cannot make a control group: {error}") from None

    def _launch(self, group: cgroup.Group | None) -> subprocess.Popen[bytes]:
        filter_fd = seccomp.program_fd()
        try:
            limits = {} if group else {"RLIMIT_NPROC": self.limits.pids}
            arguments = [*_arguments(self._binary, self._runtime, self.limits, filter_fd)]
            arguments += command(self._runtime.python, self._runtime.wheels, limits)
            return subprocess.Popen(
                arguments,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env={},
                cwd="/",
                pass_fds=(filter_fd,),
                preexec_fn=_before_exec(group.doors if group else (), self.limits, per_process=group is None),
            )
        finally:
            os.close(filter_fd)


class _BubblewrapChannel:
    """One bubblewrap process and its pipes."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        group: cgroup.Group | None,
        limits: Limits,
        retire: Callable[[Channel], None],
    ) -> None:
        self._process = process
        self._retire = retire
        self._group = group
        self._pipes = Pipes(process, limits.log_bytes, limits.output_bytes)
        self._ending: Ending | None = None

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``. Raises TimeoutError, BrokenPipeError."""
        self._pipes.send(data, deadline)

    def receive(self, limit: int, deadline: float) -> bytes:
        """The next line. Raises TimeoutError, EOFError, ValueError."""
        return self._pipes.receive(limit, deadline)

    def oom_kills(self) -> int:
        """Processes that the kernel has ended for memory; 0 where there is no control group to tell."""
        return self._group.oom_kills() if self._group else 0

    def close(self) -> Ending:
        """Shut the pipes, kill, read how it ended, remove the control group."""
        if self._ending is None:
            self._pipes.shut()
            exit_code = self._stop()
            oom = self.oom_kills() > 0
            if self._group is not None:
                self._group.remove()
            self._ending = Ending(exit_code, oom, self._pipes.log())
        return self._ending

    def retire(self) -> str:
        """Shut the pipes, take what was printed; the rest is done in the background."""
        self._pipes.shut()
        printed = self._pipes.log()
        self._retire(self)
        return printed

    def _stop(self) -> int | None:
        """The exit status where it ends by itself, else None after it was killed.

        One that closed its pipes is given time: on a busy machine its end takes a while to be seen.
        """
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self._process.wait(CLOSE_SECONDS if self._pipes.ended else 0.05)
        self._process.kill()
        self._process.wait(CLOSE_SECONDS)
        return None


def _find_bubblewrap() -> tuple[str, str]:
    """Path and version. Raises SandboxError."""
    binary = shutil.which("bwrap")
    if binary is None:
        raise SandboxError(f"bubblewrap is not installed; to mend: {INSTALL}")
    shown = subprocess.run([binary, "--version"], capture_output=True, text=True, check=False).stdout
    found = re.search(r"(\d+)\.(\d+)(\.\d+)*", shown)
    if found is None or (int(found[1]), int(found[2])) < MIN_VERSION:
        wanted = ".".join(map(str, MIN_VERSION))
        raise SandboxError(f"bubblewrap {wanted} or later is needed, here is {shown.strip()!r}; to mend: {INSTALL}")
    return binary, found[0]


def _arguments(binary: str, runtime: RuntimeFolder, limits: Limits, filter_fd: int) -> list[str]:
    """bubblewrap's command line: of the host nothing but the runtime and five devices; an own /proc, a small /tmp."""
    environment: Mapping[str, str] = {**ENVIRONMENT, **runtime.environment}
    arguments = [binary, "--unshare-all", "--unshare-user", "--disable-userns", "--die-with-parent", "--new-session",
                 "--cap-drop", "ALL", "--uid", str(NOBODY), "--gid", str(NOBODY), "--hostname", "sandbox", "--clearenv",
                 "--ro-bind", str(runtime.root), "/", "--proc", "/proc"]  # fmt: skip
    for device in DEVICES:
        arguments += ["--dev-bind", f"/dev/{device}", f"/dev/{device}"]
    arguments += ["--size", str(limits.file_mb * 1_048_576), "--tmpfs", "/tmp", "--chdir", "/tmp"]
    for name, value in sorted(environment.items()):
        arguments += ["--setenv", name, value]
    return [*arguments, "--seccomp", str(filter_fd), "--"]


def _before_exec(doors: tuple[Path, ...], limits: Limits, per_process: bool) -> Callable[[], None]:
    """What the child does before bubblewrap: fix its addresses, enter the control group, limit itself, give up root."""
    bounds = [
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NOFILE, limits.open_files),
        (resource.RLIMIT_FSIZE, limits.file_mb * 1_048_576),
    ]
    if per_process:
        bounds.append((resource.RLIMIT_AS, limits.memory_mb * 1_048_576))
    names = [os.fsencode(door) for door in doors]
    root = os.geteuid() == 0
    libc = ctypes.CDLL(None)

    def prepare_child() -> None:
        libc.personality(seccomp.ADDR_NO_RANDOMIZE)
        for name in names:
            door = os.open(name, os.O_WRONLY)
            os.write(door, b"0")
            os.close(door)
        for which, value in bounds:
            resource.setrlimit(which, (value, value))
        if root:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)

    return prepare_child


def open_bubblewrap(limits: Limits, pool_size: int, cgroups: bool = True) -> BubblewrapSandbox:
    """A sandbox whose first channel has started, without control groups where they do not work.

    Raises SandboxError, with how to mend it.
    """
    sandbox = BubblewrapSandbox(limits, pool_size, cgroups)
    try:
        sandbox.ready()
    except SandboxError as error:
        sandbox.close()
        if sandbox.has_groups:
            return open_bubblewrap(limits, pool_size, cgroups=False)
        raise SandboxError(f"bubblewrap does not work here: {error}{_how_to_mend(str(error))}") from None
    return sandbox


def _how_to_mend(error: str) -> str:
    """The command for the usual reason: the kernel lets unprivileged users make no user namespace."""
    if not any(sign in error for sign in ("uid map", "namespace", "Operation not permitted")):
        return ""
    for name, value in (("apparmor_restrict_unprivileged_userns", "0"), ("unprivileged_userns_clone", "1")):
        setting = Path("/proc/sys/kernel", name)
        if setting.exists() and setting.read_text().strip() != value:
            return f"; to mend, as root: sysctl -w kernel.{name}={value}"
    return "; to mend, as root: sysctl -w user.max_user_namespaces=10000"
