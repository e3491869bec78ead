"""A prompt in an attempt's sandbox, on a real terminal: same walls, and no escape of a candidate reaches the screen."""

from __future__ import annotations

import os
import pty
import select
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.config import resolve
from harness.errors import UserError
from harness.outcomes import TakenIn
from harness.replay.shell import Terminal, shell
from harness.state.manifest import DataRef, RunManifest
from harness.state.store import RunStore
from principles.h0 import install
from sandbox.bundle import make_bundle
from tests.conftest import BACK_ENDS
from tests.endtoend.conftest import command, environment

NOISY = r"""
import os
print("\x1b]0;owned\x07\x1b[2J\u202ehello\x9b1m")
os.write(1, b"\x1b[31mraw")
class Policy:
    def __init__(self, setup):
        self.names = __import__("helper").NAMES
"""
FILES = {"policy.py": NOISY.encode(), "helper.py": b"NAMES = 7\n", "table.json": b"{}\n"}
SECONDS = 90.0


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose starting policy is hostile to terminals."""
    folder = tmp_path_factory.mktemp("shell") / "one"
    hashes = install(folder, ())
    config = resolve({"data": "nowhere", "sandbox": "bubblewrap"}, {}, None).model_dump(mode="json")
    made = RunManifest(
        name="one", created="2026-01-01T00:00:00+00:00", seed=7, parent="v00", profile="offline", config=config,
        runtime_digest="r" * 64, sandbox="bubblewrap 0", h0=hashes, data=DataRef(name="d", digest="d", path="nowhere"),
    )  # fmt: skip
    with RunStore.create(folder, made) as store:
        tree = store.lineage.intake(FILES)
        commit = store.lineage.commit(tree, (), "start", {"Iteration": "0"}, 1.0)
        refs = {"refs/heads/main": commit}
        taken = TakenIn(
            summary="s", refs=refs, tree=tree, commit=commit, branch="main", bundle=make_bundle(FILES).digest
        )
        store.commit_stage(0, "intake", taken, summary="s", refs=refs)
        store.commit_stage(1, "intake", taken.model_copy(update={"bundle": "b"}), summary="s")
    return folder


class Screen:
    """A terminal with the command in it."""

    def __init__(self, *arguments: str) -> None:
        self._terminal, other = pty.openpty()
        env = environment({"TERM": "dumb", "INPUTRC": os.devnull, "HARNESS_SECRET": "x"})
        self.process = subprocess.Popen(
            command(*arguments), stdin=other, stdout=other, stderr=other, env=env, start_new_session=True,
            preexec_fn=_take_terminal,
        )  # fmt: skip
        os.close(other)
        self.shown = b""

    def wait(self, sign: str) -> str:
        """What is shown up to the next ``sign``; what comes after it is kept for later."""
        deadline = time.monotonic() + SECONDS
        while sign.encode() not in self.shown:
            assert time.monotonic() < deadline, self.shown
            if select.select([self._terminal], [], [], 1.0)[0]:
                try:
                    self.shown += os.read(self._terminal, 65_536)
                except OSError:  # how a terminal tells that nobody has it open any more
                    assert sign.encode() in self.shown, self.shown
        seen, _, self.shown = self.shown.partition(sign.encode())
        assert not set(seen) & set(b"\x1b\x07\x9b"), seen
        return seen.decode()

    def type(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def tell(self, line: str, prompt: str = ">>> ") -> str:
        """What a line prints, without its echo."""
        self.type(f"{line}\n")
        return self.wait(f"\n{prompt}").partition("\n")[2].replace("\r", "")

    def end(self) -> int:
        code = self.process.wait(SECONDS)
        os.close(self._terminal)
        return code


def _take_terminal() -> None:
    """Ctrl-C is a signal only in a session whose terminal this is."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@pytest.fixture
def screen(request: pytest.FixtureRequest) -> Iterator[Callable[..., Screen]]:
    made: list[Screen] = []

    def start(*arguments: str) -> Screen:
        made.append(Screen(*arguments))
        return made[-1]

    yield start
    for one in made:
        if one.process.poll() is None:
            one.process.kill()
            one.process.wait()


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_a_prompt_inside_the_walls(kind: str, run: Path, sandboxes: Any, screen: Callable[..., Screen]) -> None:
    sandboxes(kind)  # skips, or fails in CI, where it does not work
    on = screen("replay", "0", "--run", str(run), "--shell", "--sandbox", kind)
    head = on.wait(">>> ")
    assert f"attempt 0 in {kind}" in head and "no network" in head and "helper.py, policy.py, table.json" in head
    assert "hello" not in head, "nothing of the candidate was executed yet"
    assert on.tell("6 * 7").strip() == "42"
    assert on.tell('open("candidate/helper.py").read()').strip() == repr("NAMES = 7\n")
    assert on.tell('files["table.json"]').strip() == repr("{}\n")
    loaded = on.tell("module = load()")
    assert loaded.strip() == r"\x1b]0;owned\x07\x1b[2J\u202ehello\x9b1m" + "\n" + r"\x1b[31mraw"
    assert on.tell("module.Policy(setup).names").strip() == "7"
    on.tell("def twice(x):", "... ")
    on.tell("    return 2 * x", "... ")
    on.tell("")
    on.type("broken(")
    on.type("\x03")
    on.wait("\n>>> ")
    assert on.tell("twice(21)").strip() == "42"
    assert "Operation not permitted" in on.tell("import socket; socket.socket()")
    assert on.tell(f"import os; os.path.exists({str(run)!r}), os.getuid()").strip() == "(False, 65534)"
    assert "Error" in on.tell('open("/opt/x", "w")')
    assert on.tell('"HARNESS_SECRET" in os.environ').strip() == "False"
    assert "EOFError" in on.tell("input()")
    on.type("import time; time.sleep(300)\n")
    time.sleep(0.5)
    on.type("\x03")
    on.wait("interrupted: the sandbox is closed")
    assert on.end() == 0


@pytest.mark.parametrize("kind", BACK_ENDS)
def test_how_a_prompt_ends(kind: str, run: Path, sandboxes: Any) -> None:
    sandboxes(kind)
    for last, sign in (("exit()", "exit() or Ctrl-D ends"), ("import os; os._exit(3)", "the sandbox is gone")):
        said: list[str] = []
        typed = iter(["1 + 1", last])
        shell(run, 0, kind, Terminal(said.append, lambda prompt, typed=typed: next(typed)))  # type: ignore[misc]
        assert "2" in said and any(sign in line for line in said), said
        assert ("gone" in said[-1]) == ("_exit" in last), said


def test_what_cannot_be_opened_says_why(run: Path) -> None:
    for k, word in ((7, "has no candidate"), (1, "not what was taken in")):
        with pytest.raises(UserError, match=word):
            shell(run, k, "", Terminal(print, input))
    for wrong in (["--shell"], ["0", "--shell", "--live"], ["0", "--shell", "--stage", "gate"]):
        done = CliRunner().invoke(cli, ["replay", *wrong, "--run", str(run)])
        assert isinstance(done.exception, UserError) and "--shell" in str(done.exception)
