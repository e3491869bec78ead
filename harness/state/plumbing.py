"""Git as a tool that reads hostile data: one clean environment, full object ids, long-lived processes.

Nothing of the user's or the system's configuration applies, no hook runs, no replacement object is followed and no
object is ever fetched. Trees are only read as data: never checked out, archived or compared by git itself.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from harness.display import visible
from harness.errors import UserError

OID = re.compile(r"[0-9a-f]{40}")
OLDEST = (2, 34)
"""First git whose ``update-ref --stdin`` reports each step at once."""
PATIENCE = 30.0
"""Seconds of silence after which a git process is given up."""
FLAGS = (
    "--no-replace-objects",
    "--literal-pathspecs",
    "-c", f"core.hooksPath={os.devnull}",
    "-c", "core.fsmonitor=false",
    "-c", "core.alternateRefsCommand=",
    "-c", "protocol.allow=never",
    "-c", "gc.auto=0",
)  # fmt: skip


class LineageError(UserError):
    """The repository of a run cannot be read or written. One line: what, where, what to do."""


def environment() -> dict[str, str]:
    """The whole environment of a git process; nothing else of this process's environment is passed on."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
    }


def full_id(oid: str) -> str:
    """``oid`` if it is a full object id; git is never given anything else to name an object. Raises LineageError."""
    if OID.fullmatch(oid) is None:
        raise LineageError(f"{oid[:60]!a} is not a full object id of 40 hexadecimal digits")
    return oid


class Git:
    """Git on one bare repository. Thread-safe. ``close`` ends its processes; using it again starts them anew."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.RLock()
        self._running: dict[str, _Conversation] = {}
        self._version_seen = False

    def run(self, *arguments: str) -> bytes:
        """Standard output of one git command. Raises LineageError with git's last line."""
        try:
            done = subprocess.run(
                self._command(*arguments), env=environment(), stdin=subprocess.DEVNULL, capture_output=True, check=False
            )
        except OSError as error:
            raise LineageError(f"git cannot be run ({error.strerror}); install git 2.34 or newer") from None
        if done.returncode != 0:
            raise LineageError(f"{self.path}: git {arguments[0]} failed: {_last_line(done.stderr)}")
        return done.stdout

    def info(self, oid: str) -> tuple[str, int] | None:
        """Type and size of an object, read from its header alone; None where there is no such object."""
        with self._lock, self._talk("cat-file", "--batch-check=%(objecttype) %(objectsize)") as git:
            words = git.ask(full_id(oid)).split()
        return None if words[-1:] == ["missing"] else (words[0], int(words[1]))

    def read(self, oid: str, kind: str, most: int) -> bytes:
        """The content of an object of that type and at most ``most`` bytes. Raises LineageError otherwise."""
        found = self.info(oid)
        if found is None:
            raise LineageError(f"{self.path}: object {oid} is missing; the repository is damaged")
        if found[0] != kind or found[1] > most:
            raise LineageError(f"{self.path}: object {oid} is a {found[0]} of {found[1]} bytes, not a small {kind}")
        with self._lock, self._talk("cat-file", "--batch=%(objecttype) %(objectsize)") as git:
            size = int(git.ask(oid).split()[1])
            return git.take(size + 1)[:-1]

    def set_refs(self, wanted: Mapping[str, str | None]) -> None:
        """Set (or with None remove) references in one transaction of git. Raises LineageError."""
        if not wanted:
            return
        self._check_version()
        with self._lock, self._talk("update-ref", "--stdin") as git:
            git.ask("start")
            for name, oid in sorted(wanted.items()):
                git.tell(f"delete {name}" if oid is None else f"update {name} {full_id(oid)}")
            git.ask("commit")

    def refs(self) -> dict[str, str]:
        """Every reference and the object it names."""
        listing = self.run("for-each-ref", "--format=%(objectname) %(refname)").decode("utf-8", "replace")
        return {name: oid for oid, name in (line.split(" ", 1) for line in listing.splitlines())}

    def close(self) -> None:
        """End the long-lived processes."""
        with self._lock:
            for conversation in self._running.values():
                conversation.end()
            self._running.clear()

    def _command(self, *arguments: str) -> list[str]:
        return ["git", f"--git-dir={self.path}", *FLAGS, *arguments]

    @contextmanager
    def _talk(self, *arguments: str) -> Iterator[_Conversation]:
        """The long-lived process with these arguments; whatever goes wrong in between ends it."""
        name = " ".join(arguments)
        conversation = self._running.get(name)
        if conversation is None or conversation.ended():
            try:
                conversation = _Conversation(self._command(*arguments))
            except OSError as error:
                raise LineageError(f"git cannot be run ({error.strerror}); install git 2.34 or newer") from None
            self._running[name] = conversation
        try:
            yield conversation
        except (OSError, EOFError, ValueError, IndexError):
            complaint = self._running.pop(name).end() or "no answer"
            raise LineageError(f"{self.path}: git {arguments[0]} failed: {complaint}") from None
        except BaseException:
            self._running.pop(name).end()
            raise

    def _check_version(self) -> None:
        if self._version_seen:
            return
        words = self.run("version").decode("ascii", "replace").split()
        numbers = re.findall(r"\d+", words[2] if len(words) > 2 else "")
        if tuple(int(n) for n in numbers[:2]) < OLDEST:
            raise LineageError(f"git {'.'.join(numbers)} is too old; install git 2.34 or newer")
        self._version_seen = True


class _Conversation:
    """One git process that answers line by line. In a session of its own: Ctrl-C is the harness's to answer."""

    def __init__(self, command: list[str]) -> None:
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            command, env=environment(), stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, start_new_session=True
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        self._kept = bytearray()

    def ended(self) -> bool:
        return self._process.poll() is not None

    def tell(self, line: str) -> None:
        data = line.encode("ascii") + b"\n"
        while data:
            data = data[os.write(self._in, data) :]

    def ask(self, line: str) -> str:
        self.tell(line)
        while (end := self._kept.find(b"\n")) < 0:
            self._more()
        return self.take(end + 1).decode("ascii", "replace").rstrip("\n")

    def take(self, size: int) -> bytes:
        while len(self._kept) < size:
            self._more()
        taken = bytes(self._kept[:size])
        del self._kept[:size]
        return taken

    def _more(self) -> None:
        if not select.select([self._out], [], [], PATIENCE)[0]:
            raise TimeoutError
        data = os.read(self._out, 65_536)
        if not data:
            raise EOFError
        self._kept += data

    def end(self) -> str:
        """Kill the process; the last line that it complained with."""
        self._process.kill()
        return _last_line(self._process.communicate()[1])


def _last_line(complaint: bytes) -> str:
    lines = complaint.decode("utf-8", "replace").strip().splitlines()
    return visible(lines[-1], 300) if lines else ""
