"""Choosing the back end: Docker, else bubblewrap with control groups, else bubblewrap with limits per process."""

from __future__ import annotations

from typing import Literal, TypeAlias

from sandbox.bubblewrap import open_bubblewrap
from sandbox.interface import Limits, Sandbox, SandboxError
from sandbox.probes import require_essential

Kind: TypeAlias = Literal["auto", "docker", "bubblewrap"]
DEFAULT_LIMITS = Limits()


def open_sandbox(kind: Kind, limits: Limits = DEFAULT_LIMITS, pool_size: int = 2, run_id: str = "") -> Sandbox:
    """A working back end, never an unsandboxed one. Raises SandboxError that tells how to mend what is missing.

    The choice is made once per run: verdicts and timings of different back ends are not mixed.
    """
    sandbox = _open(kind, limits, pool_size, run_id)
    try:
        require_essential(sandbox.probe())
    except SandboxError:
        sandbox.close()
        raise
    return sandbox


def _open(kind: Kind, limits: Limits, pool_size: int, run_id: str) -> Sandbox:
    if kind == "bubblewrap":
        return open_bubblewrap(limits, pool_size)
    from sandbox.docker import open_docker

    try:
        return open_docker(limits, pool_size, run_id)
    except SandboxError as missing:
        if kind == "docker":
            raise
        try:
            return open_bubblewrap(limits, pool_size)
        except SandboxError as error:
            raise SandboxError(f"no sandbox works here. Docker: {missing}. bubblewrap: {error}") from None
