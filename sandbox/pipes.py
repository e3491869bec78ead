"""A channel over the three pipes of a local process."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time

from sandbox.text import log_text


class Pipes:
    """Deadlined, bounded reading and writing. Prints are drained whenever the host waits, so nothing can block."""

    def __init__(self, process: subprocess.Popen[bytes], log_bytes: int, drain_bytes: int) -> None:
        """Keep ``log_bytes`` of what is printed; after ``drain_bytes`` the print pipe is closed."""
        assert process.stdin and process.stdout and process.stderr
        self._process = process
        self._stdin, self._stdout, self._stderr = process.stdin, process.stdout, process.stderr
        self._log_bytes = log_bytes
        self._drain_left = drain_bytes
        self._log = bytearray()
        self._buffer = bytearray()
        self.ended = False
        """Whether the other end was found closed."""
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``. Raises TimeoutError, BrokenPipeError."""
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._stdin.fileno(), view) :]
            except BlockingIOError:
                self._wait(self._stdin.fileno(), select.POLLOUT, deadline)
            except BrokenPipeError:
                self.ended = True
                raise

    def receive(self, limit: int, deadline: float) -> bytes:
        """The next line without its newline. Raises TimeoutError, EOFError, ValueError (over ``limit`` bytes)."""
        start = 0
        while (end := self._buffer.find(b"\n", start)) < 0:
            start = len(self._buffer)
            if start > limit:
                raise ValueError("line over its limit")
            self._fill(deadline)
        if end > limit:
            raise ValueError("line over its limit")
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def _fill(self, deadline: float) -> None:
        while True:
            self._wait(self._stdout.fileno(), select.POLLIN, deadline)
            with contextlib.suppress(BlockingIOError):
                part = os.read(self._stdout.fileno(), 65_536)
                if not part:
                    self.ended = True
                    raise EOFError
                self._buffer += part
                return

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        """Until ``descriptor`` is ready; prints are taken in meanwhile."""
        poll = select.poll()
        poll.register(descriptor, event)
        prints = -1 if self._stderr.closed else self._stderr.fileno()
        if prints >= 0:
            poll.register(prints, select.POLLIN)
        while True:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            ready = [number for number, _ in poll.poll(min(left * 1000 + 1, 60_000))]
            if prints in ready and not self._drain():
                poll.unregister(prints)
                self._stderr.close()
                prints = -1
            if descriptor in ready:
                return

    def _drain(self) -> bool:
        """Take in prints that are there; False where no more will be taken."""
        try:
            part = os.read(self._stderr.fileno(), 65_536)
        except BlockingIOError:
            return True
        room = self._log_bytes - len(self._log)
        self._log += part[: max(room, 0)]
        self._drain_left -= len(part)
        return bool(part) and self._drain_left > 0

    def shut(self) -> None:
        """Close the ends that carry the protocol."""
        for stream in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                stream.close()

    def log(self) -> str:
        """What was printed, as far as kept; to be asked when the process is gone."""
        while not self._stderr.closed and self._drain_left > 0:
            before = self._drain_left
            if not self._drain() or self._drain_left == before:
                break
        with contextlib.suppress(OSError):
            self._stderr.close()
        return log_text(bytes(self._log), self._log_bytes)
