"""Start-up probes: real attempts from inside, so that a wall that is missing here is known and named.

Each probe is a question to the probes' own candidate (``probe_policy.py``), run like any other.
"""

from __future__ import annotations

import dataclasses
import os
import platform
import socket
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from policies.contract import Budget, Query, Refused, Reply, Request, Setup
from sandbox import seccomp
from sandbox.bundle import make_bundle
from sandbox.interface import Limits, Probe, QuestionOutcome, Sandbox, SandboxError, Shard, Verdict
from sandbox.stream import run_shard

ESSENTIAL = ("network", "file view", "environment")
"""Walls that keep gold answers and keys out; without them nothing is run."""
HARMLESS = ("PATH", "HOME", "LANG", "LC_ALL", "TERM", "PWD", "SHLVL", "SHELL", "LOGNAME", "USER")
"""Variables whose value inside may be the host's by chance."""


class _NoHost:
    """Serves nothing; the probes ask for nothing."""

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        return Refused("not served")


def run_probes(sandbox: Sandbox) -> tuple[Probe, ...]:
    """Try every wall once. Raises SandboxError where the attempts themselves could not be carried out."""
    limits = sandbox.limits
    with _listener() as port, tempfile.NamedTemporaryFile("w", prefix="canary-") as canary:
        canary.write("canary")
        canary.flush()
        Path(canary.name).chmod(0o644)
        arguments = {
            "network": str(port),
            "files": canary.name,
            "disk": str(limits.file_mb),
            "processes": str(limits.pids),
            "memory": str(limits.memory_mb),
            "system_calls": " ".join(map(str, _denied_calls())),
        }
        names = [name for name, _, _ in _PROBES]
        queries = tuple(
            Query(f"{place:02}", "probe", name, {"A": arguments.get(name, "")}, 0.0) for place, name in enumerate(names)
        )
        source = Path(__file__).with_name("probe_policy.py").read_text(encoding="utf-8")
        bundle = make_bundle({"policy.py": source})
        outcome = run_shard(sandbox, bundle, Shard("probes", (), queries), Setup(Budget(), 0), _NoHost())
    return tuple(
        _judge(title, judge, question, limits)
        for (_, title, judge), question in zip(_PROBES, outcome.questions, strict=True)
    )


def small(limits: Limits) -> Limits:
    """Limits for a sandbox of the same make in which the probes are quick: what is tried is the wall, not its place.

    Only the time is ample: a busy machine must not look like a missing wall.
    """
    memory, pids = min(limits.memory_mb, 192), min(limits.pids, 24)
    return dataclasses.replace(limits, memory_mb=memory, pids=pids, file_mb=2, answer_seconds=20, observe_seconds=60)


def require_essential(probes: tuple[Probe, ...]) -> None:
    """Raise SandboxError where a wall is missing without which nothing may be run."""
    missing = [f"{probe.name} ({probe.detail})" for probe in probes if probe.name in ESSENTIAL and not probe.held]
    if missing:
        raise SandboxError(f"the sandbox does not hold here: {'; '.join(missing)}")


def label_of(name: str, probes: tuple[Probe, ...] | None, *known: str) -> str:
    """One line: the back end's name and version, and what does not hold."""
    missing = [text for text in known if text] + [f"not held: {probe.name}" for probe in probes or () if not probe.held]
    return f"{name} ({'; '.join(missing)})" if missing else name


# ---------------------------------------------------------------- canaries


@contextmanager
def _listener() -> Iterator[int]:
    """A port on the host that nothing inside should reach."""
    with socket.socket() as plug:
        plug.bind(("0.0.0.0", 0))
        plug.listen(8)
        yield int(plug.getsockname()[1])


def _denied_calls() -> list[int]:
    arch = seccomp.ARCHITECTURES[platform.machine()]
    return sorted(seccomp.numbers(seccomp.DENIED, arch.column).values())


# ---------------------------------------------------------------- judgements: (held, detail)

Judgement = tuple[bool, str]


def _judge(
    title: str, judge: Callable[[Mapping[str, Any], Limits], Judgement], question: QuestionOutcome, limits: Limits
) -> Probe:
    if question.verdict is Verdict.OOM and title == "memory":
        return Probe(title, True, "ended by the kernel at the limit")
    if question.answer is None:
        if question.verdict is Verdict.SANDBOX_ERROR:
            raise SandboxError(f"the probe {title!r} could not be run: {question.detail}")
        return Probe(title, False, f"{question.verdict}: {question.detail}")
    held, detail = judge(question.answer.diagnostics, limits)
    return Probe(title, held, detail)


def _nothing(key: str) -> Callable[[Mapping[str, Any], Limits], Judgement]:
    """Held where the list under ``key`` is empty."""
    return lambda found, limits: (not found[key], ", ".join(map(str, found[key])) or "nothing")


def _vsock(found: Mapping[str, Any], limits: Limits) -> Judgement:
    return bool(found["error"]), found["error"] or "a socket was opened"


def _environment(found: Mapping[str, Any], limits: Limits) -> Judgement:
    inside = set(found["entries"])
    names = [name for name, value in os.environ.items() if name not in HARMLESS and f"{name}={value[:150]}" in inside]
    return not names, ", ".join(names) or "nothing of the host's"


def _disk(found: Mapping[str, Any], limits: Limits) -> Judgement:
    return found["mebibytes"] <= limits.file_mb, f"{found['mebibytes']} MiB written"


def _execution(found: Mapping[str, Any], limits: Limits) -> Judgement:
    return found["error"] in ("EACCES", "EPERM"), found["error"]


def _processes(found: Mapping[str, Any], limits: Limits) -> Judgement:
    return found["processes"] < limits.pids, f"{found['processes']} processes"


def _memory(found: Mapping[str, Any], limits: Limits) -> Judgement:
    return found["shares"] < 5, f"{found['shares']} quarters of the limit held at once"


def _system_calls(found: Mapping[str, Any], limits: Limits) -> Judgement:
    status = found["status"]
    bare = status["CapEff"].strip("0") == status["CapBnd"].strip("0") == ""
    filtered = status["Seccomp"] == "2" and status["NoNewPrivs"] == "1"
    return not found["allowed"] and bare and filtered, f"allowed: {found['allowed']}; {status}"


_PROBES: tuple[tuple[str, str, Callable[[Mapping[str, Any], Limits], Judgement]], ...] = (
    ("network", "network", _nothing("reached")),
    ("vsock", "vsock", _vsock),
    ("files", "file view", _nothing("found")),
    ("environment", "environment", _environment),
    ("root_filesystem", "read-only root", _nothing("written")),
    ("disk", "disk", _disk),
    ("execution", "no execution from /tmp", _execution),
    ("processes", "processes", _processes),
    ("memory", "memory", _memory),
    ("system_calls", "seccomp", _system_calls),
)
"""(attempt, name of the wall, judgement)."""
