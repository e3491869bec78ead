"""Runs inside the sandbox, in the place of a policy: a Python prompt beside a candidate's files.

Nothing of the candidate is imported before ``load()`` is called. The prompt speaks to the host as a policy does, by
requests: what is to be shown goes out as a Generate, what the user types comes back as its reply.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import pkgutil
import platform
import sys
from code import InteractiveConsole
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from policies.contract import Answer, Generate, GenerateReply, Message, Query, Setup, Window
from sandbox import runner

FOLDER = "under_test/"
"""Where the candidate's files stand among those that were sent."""
NAMES = "names.json"
INTERRUPT = "\x03"
"""In place of a line: what was typed of the statement is dropped."""
MOST = 200_000
"""Bytes shown of what one statement prints."""


class Policy:
    """Windows are not looked at: the first call of ``observe`` is the conversation."""

    def __init__(self, setup: Setup) -> None:
        names = json.loads(_sent(NAMES))
        self._files = {name: _sent(FOLDER + name) for name in names}
        self._names: dict[str, Any] = {
            "__name__": "__console__",
            "files": {name: content.decode("utf-8", "replace") for name, content in self._files.items()},
            "load": self.load,
            "setup": setup,
            "exit": _exit,
        }

    def observe(self, windows: Sequence[Window]) -> Generator[Generate, GenerateReply, None]:
        """Until ``exit()``."""
        sys.stdin = io.StringIO()  # else input() would read what the host sends
        Path("candidate").mkdir()
        for name, content in self._files.items():
            Path("candidate", name).write_bytes(content)
        record = os.open("printed", os.O_RDWR | os.O_CREAT)
        for stream in (1, 2):  # what programs print is shown as well
            os.dup2(record, stream)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)  # in the order in which it is printed
        console = InteractiveConsole(self._names)
        said, more = f"Python {platform.python_version()}; {', '.join(self._files)} in {Path.cwd()}/candidate\n", False
        while True:
            reply = yield Generate((Message("user", said), Message("assistant", "more" if more else "")), 1)
            try:
                if reply.text == INTERRUPT:
                    console.resetbuffer()
                    more = False
                else:
                    more = console.push(reply.text)
            except SystemExit:
                return
            said = _printed(record)

    def settle(self) -> None:
        """Nothing."""

    def answer(self, query: Query) -> Answer:
        """None is asked."""
        raise NotImplementedError

    def load(self) -> Any:
        """Import the candidate, which executes it, and return its module ``policy``."""
        for name in [name for name in sys.modules if name.partition(".")[0] == runner.PACKAGE]:
            del sys.modules[name]
        return runner.load(
            [[name, hashlib.sha256(data).hexdigest(), base64.b64encode(data)] for name, data in self._files.items()]
        )


def _printed(record: int) -> str:
    """What was printed since it was last asked for."""
    runner.flush()
    os.lseek(record, 0, os.SEEK_SET)
    found = os.read(record, MOST)
    os.ftruncate(record, 0)
    os.lseek(record, 0, os.SEEK_SET)
    return found.decode("utf-8", "replace")


def _sent(name: str) -> bytes:
    content = pkgutil.get_data(runner.PACKAGE, name)
    assert content is not None
    return content


def _exit() -> NoReturn:
    """Close the sandbox."""
    raise SystemExit
