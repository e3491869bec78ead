"""The probes' own candidate: it tries from inside what must not work. Sent as a bundle, never imported by the host.

A question names the attempt; the answer's diagnostics tell what came of it.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from policies.contract import Answer, Json, Query, Setup, Window

AF_VSOCK = 40
MEBIBYTE = 1_048_576


class Policy:
    """Answers each question with the report of the attempt that it names."""

    def __init__(self, setup: Setup) -> None:
        pass

    def observe(self, windows: Sequence[Window]) -> None:
        """Nothing is watched."""

    def settle(self) -> None:
        """Nothing is batched."""

    def answer(self, query: Query) -> Answer:
        """Choices carry the attempt's arguments."""
        return Answer(None, "probe", (), ATTEMPTS[query.question](query.choices))


def network(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Reach the host's listener (choice A: its port) or anything else, and list the interfaces."""
    reached = []
    for address in ("127.0.0.1", "172.17.0.1", "169.254.169.254", "8.8.8.8"):
        with contextlib.suppress(OSError), socket.socket() as plug:
            plug.settimeout(0.2)
            plug.connect((address, int(arguments["A"])))
            reached.append(address)
    interfaces = [line.split(":")[0].strip() for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    return {"reached": reached + [name for name in interfaces if name != "lo" and _is_up(name)]}


def _is_up(interface: str) -> bool:
    """Kernels list tunnel devices in every namespace; what counts is one that is up."""
    with contextlib.suppress(OSError):
        return bool(int(Path(f"/sys/class/net/{interface}/flags").read_text(), 16) & 1)
    return Path("/proc/net/route").read_text().count("\n") > 1


def vsock(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Open a socket to the hypervisor; a network namespace does not cover these."""
    try:
        socket.socket(AF_VSOCK, socket.SOCK_STREAM).close()
    except OSError as error:
        return {"error": errno.errorcode.get(error.errno or 0, "")}
    return {"error": ""}


def files(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Find the host's canary file (choice A: its path) by path, through /proc, and by walking."""
    path = arguments["A"]
    starts = ("", "/proc/1/root", "/proc/self/root", "/proc/1/cwd")
    found = [start + path for start in starts if _readable(start + path)]
    name = Path(path).name
    for folder, folders, names in os.walk("/"):
        if folder == "/proc":  # names of the kernel's own; links to the host were tried above
            folders.clear()
            continue
        found += [f"{folder}/{name}"] if name in names else []
    return {"found": found}


def _readable(path: str) -> bool:
    with contextlib.suppress(OSError):
        return bool(Path(path).read_bytes())
    return False


def environment(arguments: Mapping[str, str]) -> dict[str, Json]:
    """All that any process inside shows of its environment."""
    seen: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            seen |= set((process / "environ").read_text(errors="replace").split("\0"))
    return {"entries": sorted(entry[:200] for entry in seen if entry)[:40]}


def root_filesystem(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Write outside /tmp."""
    written = []
    for folder in ("/", "/etc", "/opt", "/usr", "/proc/sys/kernel", "/dev", "/sys/fs/cgroup", "/var/tmp", "/root"):
        with contextlib.suppress(OSError):
            Path(folder, "probe").write_text("x")
            written.append(folder)
    return {"written": written}


def disk(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Fill /tmp to twice its size (choice A: MiB), in several files, because one file has a limit of its own."""
    limit, written = int(arguments["A"]), 0
    with contextlib.suppress(OSError):
        for number in range(2 * limit):
            Path(f"/tmp/fill{number}").write_bytes(bytes(MEBIBYTE))
            written += 1
    for path in Path("/tmp").glob("fill*"):
        path.unlink()
    return {"mebibytes": written}


def execution(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Execute a file written to /tmp. Its interpreter does not exist, so that nothing runs where it is let through."""
    script = Path("/tmp/script")
    script.write_text("#!/nonexistent\n")
    script.chmod(0o700)
    try:
        os.execv(script, ["script"])
    except OSError as error:
        return {"error": errno.errorcode.get(error.errno or 0, "")}
    finally:
        script.unlink()


def processes(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Fork until it is refused or twice the limit (choice A) is reached."""
    children: list[int] = []
    with contextlib.suppress(OSError):
        while len(children) < 2 * int(arguments["A"]):
            child = os.fork()
            if child == 0:
                time.sleep(5)
                os._exit(0)
            children.append(child)
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return {"processes": len(children)}


def memory(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Five children take a quarter of the limit (choice A: MiB) each at the same time."""
    share = int(arguments["A"]) * MEBIBYTE // 4
    reading, writing = os.pipe()
    children = [_hold(share, writing) for _ in range(5)]
    os.close(writing)
    while os.read(reading, 8):
        pass
    time.sleep(0.05)  # one that the kernel has chosen may free its memory a moment before it is gone
    living = [child for child in children if os.waitpid(child, os.WNOHANG)[0] == 0]
    for child in living:
        os.kill(child, 9)
        os.waitpid(child, 0)
    return {"shares": len(living)}


def _hold(size: int, told: int) -> int:
    """A child that takes ``size`` bytes, says so at ``told``, closes it and keeps them until it is killed."""
    child = os.fork()
    if child == 0:
        try:
            block = mmap.mmap(-1, size)
            for start in range(0, size, 4096):
                block[start] = 1
            os.write(told, b"x")
            os.close(told)
            time.sleep(60)
        finally:
            os._exit(0)
    return child


def system_calls(arguments: Mapping[str, str]) -> dict[str, Json]:
    """Try calls by number (choice A), and read the kernel's word on this process."""
    library = ctypes.CDLL(None, use_errno=True)
    allowed = []
    for number in map(int, arguments["A"].split()):
        ctypes.set_errno(0)
        result = library.syscall(number, 0, 0, 0, 0, 0, 0)
        if result >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
            allowed.append(number)
    status = dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)
    wanted = ("Seccomp", "NoNewPrivs", "CapEff", "CapBnd", "Uid")
    return {"allowed": allowed, "status": {name: status.get(name, "") for name in wanted}}


ATTEMPTS: Mapping[str, Callable[[Mapping[str, str]], dict[str, Json]]] = {
    attempt.__name__: attempt
    for attempt in (
        network, vsock, files, environment, root_filesystem, disk, execution, processes, memory, system_calls,
    )
}  # fmt: skip
