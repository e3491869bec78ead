"""A small pool of pre-started, single-use channels: a candidate never waits for a container to start.

One thread of its own starts every channel, because a sandboxed process may be tied to the thread that started it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from sandbox import wire
from sandbox.interface import Channel, SandboxError
from sandbox.prelude import Prelude
from sandbox.text import one_line

START_SECONDS = 30.0
START_ATTEMPTS = 3
REFILL_SECONDS = 0.06
"""So long after one was taken the next is started, unless somebody waits: a smoke run is over by then, and a start
beside it would slow it."""


def prepare(channel: Channel, prelude: Prelude) -> None:
    """Send our code into a fresh interpreter and wait until it has imported everything.

    Raises SandboxError, the channel closed, with the last line that was printed inside.
    """
    deadline = time.monotonic() + START_SECONDS
    try:
        channel.send(prelude.line, deadline)
        message = wire.parse(channel.receive(65_536, deadline))
        if message.get("kind") == "ready":
            return
        reason = str(message)
    except (OSError, EOFError, ValueError) as error:
        reason = f"{type(error).__name__} {error}".strip()
    last = channel.close().log.strip().splitlines()[-1:] or [reason]
    raise SandboxError(f"the runner did not start: {one_line(last[0], 300)}")


class Pool:
    """Keeps ``size`` channels ready (0: each is made when it is asked for); ``start`` makes one, prepared, and raises
    SandboxError."""

    def __init__(self, start: Callable[[], Channel], size: int) -> None:
        self._start = start
        self._size = size
        self._ready: deque[Channel] = deque()
        self._retired: deque[Channel] = deque()
        self._resume = 0.0
        self._error: SandboxError | None = None
        self._wanted = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._fill, name="sandbox-pool", daemon=True)
        self._thread.start()

    def take(self) -> Channel:
        """A prepared channel, at once where one is ready. Raises SandboxError."""
        with self._changed:
            self._wait()
            channel = self._ready.popleft()
            self._resume = time.monotonic() + REFILL_SECONDS
            self._changed.notify_all()
            return channel

    def retire(self, channel: Channel) -> None:
        """End a channel whose ending nobody waits for."""
        with self._changed:
            if not self._closed:
                self._retired.append(channel)
                self._changed.notify_all()
                return
        channel.close()

    def wait(self) -> None:
        """Until a channel is ready; it stays in the pool. Raises SandboxError."""
        with self._changed:
            self._wait()

    def _wait(self) -> None:
        self._wanted += 1
        self._changed.notify_all()
        try:
            self._changed.wait_for(lambda: self._ready or self._error or self._closed)
        finally:
            self._wanted -= 1
        if self._closed:
            raise SandboxError("the sandbox is closed")
        if not self._ready:
            assert self._error is not None
            error, self._error = self._error, None
            self._changed.notify_all()
            raise SandboxError(str(error))

    def close(self) -> None:
        """Stop the thread and end every channel that is still waiting."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self._thread.join()
        _end(self._ready)
        self._ready.clear()

    def _fill(self) -> None:
        while True:
            with self._changed:
                while not (self._closed or self._retired or self._patience() == 0):
                    self._changed.wait(self._patience())
                retired = list(self._retired)
                self._retired.clear()
                if self._closed and not retired:
                    return
            if retired:
                _end(retired)
                continue
            try:
                channel = self._attempt()
            except Exception as error:  # whoever waits must be told, whatever it was
                with self._changed:
                    self._error = SandboxError(str(error) or type(error).__name__)
                    self._changed.notify_all()
                continue
            with self._changed:
                self._ready.append(channel)
                self._changed.notify_all()

    def _patience(self) -> float | None:
        """Seconds until another channel is to be made; None: none is, after an error until somebody was told of it."""
        if self._error is None and len(self._ready) < self._wanted:
            return 0
        if self._error is None and len(self._ready) < self._size:
            return max(0, self._resume - time.monotonic())
        return None

    def _attempt(self) -> Channel:
        for attempt in range(START_ATTEMPTS):
            try:
                return self._start()
            except SandboxError:
                if attempt + 1 == START_ATTEMPTS or self._closed:
                    raise
                time.sleep(0.2 * (attempt + 1))
        raise AssertionError("unreachable")


def _end(channels: Iterable[Channel]) -> None:
    for channel in channels:
        with contextlib.suppress(SandboxError):
            channel.close()
