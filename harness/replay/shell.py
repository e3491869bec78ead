"""A Python prompt inside the sandbox, beside an attempt's files: the same walls, and limits but for time.

The prompt is a bundle of its own in a fresh container, driven as a policy is; the runtime is untouched. So nothing
that is printed inside reaches the terminal as it is: the host gets text, and shows it with every escape made visible.
"""

from __future__ import annotations

import dataclasses
import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from harness.config import recorded
from harness.display import visible
from harness.errors import UserError
from harness.opening import opened_sandbox
from harness.replay.inside import FOLDER, INTERRUPT, NAMES
from harness.rounds import bundle as reviewed
from harness.rounds import taken_in
from harness.seeds import derive
from harness.state.store import RunStore
from policies.contract import Generate, GenerateReply, NoModel, Query, Refused, Reply, Request, Setup
from sandbox import wire
from sandbox.bundle import digest_of
from sandbox.interface import Bundle, Limits, Sandbox
from sandbox.session import Failure, Session

INSIDE = Path(__file__).with_name("inside.py")
SECONDS = 86_400.0
"""For the whole session. Not given: long enough to look around, short enough that a forgotten one ends."""
SHOWN = 200_000
"""Characters of one piece of text that are shown."""
Say = Callable[[str], None]
Ask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class Terminal:
    """Where it is shown and typed. ``ask`` takes the prompt; it raises EOFError to end, KeyboardInterrupt to drop."""

    say: Say
    ask: Ask


def shell(folder: Path, k: int, sandbox: str, terminal: Terminal) -> None:
    """Open attempt ``k`` of the run in ``folder`` until the user ends it. ``sandbox``: back end; empty: the run's own.

    Raises UserError: no candidate, a damaged record, no sandbox. The candidate is executed only where the user does,
    and only inside.
    """
    with RunStore.open(folder, write=False) as run:
        files = _files(run, k)
        manifest = run.manifest
    kind = sandbox or manifest.back_end
    section = {**manifest.config.get("run", {}), "sandbox": kind, "workers": 0}
    config = recorded({**manifest.config, "run": section}, os.environ)
    limits = dataclasses.replace(config.limits, observe_seconds=SECONDS, answer_seconds=SECONDS, shard_seconds=SECONDS)
    with _ctrl_c_is_ours():
        box = opened_sandbox(config, limits, 0, f"shell-{manifest.name}")
    try:
        terminal.say(visible(f"attempt {k} in {box.label}: no network, no data, no answers"))
        if box.runtime_digest != manifest.runtime_digest:
            told = f"runtime: the run's {manifest.runtime_digest[:12]}, here {box.runtime_digest[:12]}"
            terminal.say(visible(told))
        terminal.say('load() imports the candidate, files["policy.py"] is its text, exit() or Ctrl-D ends')
        setup = Setup(config.budget, derive(manifest.seed, 0, "policy"))
        _converse(box, limits, bundle(files), setup, terminal)
    finally:
        box.close()


def bundle(files: dict[str, bytes]) -> Bundle:
    """The prompt, with a candidate's files as data under names that no module of it has."""
    sent = {f"{FOLDER}{name}": content for name, content in files.items()}
    sent |= {"policy.py": INSIDE.read_bytes(), NAMES: json.dumps(sorted(files)).encode()}
    entries = tuple(sorted(sent.items()))
    return Bundle(entries, digest_of(entries))


def _files(run: RunStore, k: int) -> dict[str, bytes]:
    """The candidate as it was reviewed. Raises UserError."""
    taken = taken_in(run, k)
    if taken is None:
        raise UserError(f"attempt {k} of run {run.manifest.name} has no candidate; see: harness show {k}")
    return dict(reviewed(run, taken).files)


@contextmanager
def _ctrl_c_is_ours() -> Iterator[None]:
    """A terminal sends Ctrl-C to all of its processes. Threads and programs that are started in here do not get it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _converse(box: Sandbox, limits: Limits, prompt: Bundle, setup: Setup, terminal: Terminal) -> None:
    session = Session(box.open(), limits, _Typing(terminal), time.monotonic() + SECONDS)
    try:
        session.start(prompt, setup)
        session.feed([wire.encode({"kind": "observe", "windows": []})])
    except EOFError:
        terminal.say("")
    except KeyboardInterrupt:
        terminal.say("interrupted: the sandbox is closed")
    except Failure as failure:
        memory = session.ran_out_of_memory()
        terminal.say(f"the sandbox is gone: {'out of memory' if memory else visible(failure.detail)}")
    finally:
        session.close()


class _Typing:
    """Shows what comes out of the sandbox and sends in what is typed. Serves nothing else."""

    def __init__(self, terminal: Terminal) -> None:
        self._terminal = terminal

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        """One statement's output, then the next line. Lets EOFError through, which ends the session."""
        if not isinstance(request, Generate) or len(request.messages) != 2:
            return NoModel("this is a prompt: nothing is served here")
        said, more = (message.content for message in request.messages)
        if said:
            self._terminal.say(visible(said.removesuffix("\n").expandtabs(), SHOWN, keep_lines=True))
        try:
            line = self._terminal.ask("... " if more else ">>> ")
        except KeyboardInterrupt:
            self._terminal.say("")
            line = INTERRUPT
        return GenerateReply(line.encode("utf-8", "replace").decode())
