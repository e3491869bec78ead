"""What is sent into a fresh interpreter before a candidate: the runner, the wire, the contract and the blocks.

Nothing of ours is installed inside, so the image stays as it is while the code changes; the code's digest is part of
the runtime's.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from sandbox import lemma_index, wire

BOOTSTRAP = """\
import json, os, resource, sys
for limit in sys.argv[2:]:
    name, value = limit.split("=")
    resource.setrlimit(getattr(resource, name), (int(value), int(value)))
os.register_at_fork = lambda **hooks: None
line, end = bytearray(1 << 22), 0
while not end or line[end - 1] != 10:
    got = os.readv(0, [memoryview(line)[end:]])
    if not got:
        os._exit(0)
    end += got
prelude = json.loads(bytes(memoryview(line)[:end]))
sys.path.append(sys.argv[1])
scope = {"__name__": "sandbox.bootstrap"}
exec(compile(prelude["files"]["sandbox/loader.py"], "sandbox/loader.py", "exec"), scope)
scope["run"](prelude)
"""
"""The program given to ``python -c``; arguments: the wheels' folder, then limits such as ``RLIMIT_NPROC=64``.

It reads into one block of memory, as the runner does, so that where objects lie does not depend on how the host's bytes
came in pieces: with addresses not randomised (``seccomp.ADDR_NO_RANDOMIZE``) they are the same in every run.

The library's hooks around a fork (new random seed, locks of threads and logs) are left out: the process has one thread,
a question's draws are to follow from the seed, and they cost a tenth of the shortest answer.
"""

ENVIRONMENT: Mapping[str, str] = {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1", "LANG": "C.UTF-8"}
"""All of the environment inside, but for what a back end's interpreter needs to start."""

_HERE = Path(__file__).parent
_OWN = ("sandbox/loader.py", "sandbox/wire.py", "sandbox/runner.py", "policies/contract.py")


@dataclass(frozen=True, slots=True)
class Prelude:
    """``line`` is sent first; ``digest`` (sha256, hexadecimal) covers it and the bootstrap."""

    line: bytes
    digest: str


@cache
def prelude() -> Prelude:
    """Read the sources once per process."""
    top = _HERE.parent
    blocks = [path for path in (top / "policies" / "blocks").rglob("*") if path.suffix in (".py", ".json")]
    paths = [top / name for name in _OWN] + sorted(blocks)
    files = {path.relative_to(top).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    files |= {"sandbox/__init__.py": "", "policies/__init__.py": "", lemma_index.PATH: lemma_index.lemma_index()}
    line = wire.encode({"files": dict(sorted(files.items()))})
    assert len(line) <= 1 << 22, "the bootstrap reads no longer line"
    return Prelude(line, hashlib.sha256(BOOTSTRAP.encode() + line).hexdigest())


def command(python: str, wheels: str, limits: Mapping[str, int] | None = None) -> list[str]:
    """The interpreter's command line inside the sandbox."""
    settings = [f"{name}={value}" for name, value in (limits or {}).items()]
    return [python, "-s", "-P", "-S", "-B", "-c", BOOTSTRAP, wheels, *settings]
