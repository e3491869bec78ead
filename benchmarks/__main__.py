"""``python -m benchmarks``: every benchmark in one run, as ratios where there is something to compare with.

Times are this machine's; quote ratios. OpenEvolve is compared where its package can be imported or LVMH_PEER_PYTHON
names an interpreter that has it (``pip install openevolve`` in an environment of its own).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import iteration, streams
from harness.data.egolife import import_egolife
from sandbox.interface import SandboxError
from sandbox.open import Kind

SANDBOXES: tuple[Kind, ...] = ("docker", "bubblewrap")
SHARED = Path(os.environ.get("LVMH_SHARED", Path(__file__).resolve().parents[2] / "shared"))


def peer() -> float | None:
    """Milliseconds of one iteration of OpenEvolve, or None where it is not installed."""
    python = os.environ.get("LVMH_PEER_PYTHON", sys.executable)
    found = subprocess.run(
        [python, "-m", "benchmarks.peer_openevolve", "40"], capture_output=True, text=True, check=False, timeout=300
    )
    return float(found.stdout.strip().splitlines()[-1]) if found.returncode == 0 else None


def main() -> None:
    """Run and print everything."""
    theirs = peer()
    if theirs is None:
        print("OpenEvolve: not installed here, no ratio (pip install openevolve, or set LVMH_PEER_PYTHON)")
    for sandbox in SANDBOXES:
        try:
            of_stages(sandbox, theirs)
            print(f"{sandbox}: first answer from a pooled container {streams.first_answer(sandbox):.1f} ms")
            egolife(sandbox)
        except SandboxError as error:
            print(f"{sandbox}: not measured, {error}")
    memory()


def of_stages(sandbox: Kind, theirs: float | None) -> None:
    """One iteration with a candidate that changes nothing."""
    found = iteration.milliseconds(sandbox)
    whole = found.pop("iteration")
    ratio = "" if theirs is None else f", {whole / theirs:.2f} of OpenEvolve's {theirs:.1f} ms"
    print(f"{sandbox}: iteration with a no-op candidate, median {whole:.1f} ms{ratio}")
    print("   " + ", ".join(f"{name} {value:.1f}" for name, value in found.items()))


def egolife(sandbox: Kind) -> None:
    """The real stream, where its files are beside the checkout."""
    source = SHARED / "data" / "egolife"
    if not source.is_dir():
        print(f"{sandbox}: EgoLife not measured, its files are not at {source}")
        return
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "egolife")
        import_egolife(source, folder)
        seconds, windows, questions = streams.stream(sandbox, folder, "v01")
    print(f"{sandbox}: {windows} windows and {questions} questions through V1, reader included, in {seconds:.2f} s")


def memory() -> None:
    """The memory layer, in a process of its own, so that its peak is nobody else's."""
    source = SHARED / "data" / "egolife"
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch, "egolife")
        if source.is_dir():
            import_egolife(source, folder)
        else:
            print(f"memory: the real stream is not measured, its files are not at {source}")
        named = [str(folder)] if source.is_dir() else []
        sys.stdout.flush()
        subprocess.run([sys.executable, "-m", "benchmarks.memory", *named], check=True)


if __name__ == "__main__":
    main()
