"""A container's stdin, stdout and stderr over one raw socket of the engine.

The engine sends output in frames: one byte for the stream (1 stdout, 2 stderr), three zero bytes, the length as four
bytes big-endian, the payload (Docker Engine API, "Attach to a container, stream format").
"""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import time

from sandbox.text import log_text

_HEADER = 8
_CHUNK = 1 << 18
_AHEAD = 4 << 20
"""Protocol bytes kept while sending; beyond that the sandbox has to wait for its reader."""
_WOULD_BLOCK = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


class Attached:
    """Deadlined, bounded reading and writing. Prints are taken in whenever the host waits, so nothing can block."""

    def __init__(self, connection: socket.socket, log_bytes: int, print_bytes: int) -> None:
        """Keep ``log_bytes`` of what is printed; printing more than ``print_bytes`` ends the channel."""
        self._socket = connection
        self._log_bytes = log_bytes
        self._print_left = print_bytes
        self._log = bytearray()
        self._lines = bytearray()
        self._header = bytearray()
        self._stream = 0
        self._frame_left = 0
        self._over = False
        self.ended = False
        self.gone = False
        """Whether the other side was seen to have ended or to take no more."""
        connection.setblocking(False)

    def send(self, data: bytes, deadline: float) -> None:
        """Write all of ``data``. Raises TimeoutError, BrokenPipeError."""
        view = memoryview(data)
        while view:
            if self.ended:
                raise BrokenPipeError("the container has ended")
            try:
                view = view[self._socket.send(view) :]
            except _WOULD_BLOCK:
                self._wait(deadline, writing=True)
            except OSError as error:
                self.gone = True
                raise BrokenPipeError(str(error)) from None

    def receive(self, limit: int, deadline: float) -> bytes:
        """The next line without its newline. Raises TimeoutError, EOFError, ValueError (over a limit)."""
        start = 0
        while (end := self._lines.find(b"\n", start)) < 0:
            start = len(self._lines)
            if start > limit or self._over:
                raise ValueError("output over its limit")
            if self.ended:
                raise EOFError
            if not self._take():
                self._wait(deadline, writing=False)
        if end > limit:
            raise ValueError("output over its limit")
        line = bytes(self._lines[:end])
        del self._lines[: end + 1]
        return line

    def shut(self) -> None:
        """Close the socket both ways. The engine then drops what it holds back, so that a kill cannot hang."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        with contextlib.suppress(OSError):
            self._socket.close()

    def last_words(self, seconds: float) -> None:
        """End the container's input and take in what it still prints, for at most so long."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        deadline = time.monotonic() + seconds
        with contextlib.suppress(OSError):
            while not self.ended and not self._over and time.monotonic() < deadline:
                if not self._take():
                    self._wait(deadline, writing=False)

    def log(self) -> str:
        """What was printed, as far as kept."""
        return log_text(bytes(self._log), self._log_bytes)

    def _wait(self, deadline: float, writing: bool) -> None:
        """Until something can be done; takes in what came while waiting to write."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        reading = not self._over and (not writing or len(self._lines) < _AHEAD)
        poll = select.poll()
        poll.register(self._socket, (select.POLLIN if reading else 0) | (select.POLLOUT if writing else 0))
        ready = poll.poll(min(left * 1000 + 1, 60_000))
        if writing and reading and any(event & (select.POLLIN | select.POLLHUP) for _, event in ready):
            self._take()

    def _take(self) -> bool:
        """Read what is there; False where nothing is."""
        try:
            data = self._socket.recv(_CHUNK)
        except _WOULD_BLOCK:
            return False
        except OSError:
            data = b""
        if not data:
            self.ended = self.gone = True
            return True
        self._split(memoryview(data))
        return True

    def _split(self, data: memoryview) -> None:
        while data:
            if self._frame_left == 0:
                taken = min(_HEADER - len(self._header), len(data))
                self._header += data[:taken]
                data = data[taken:]
                if len(self._header) < _HEADER:
                    return
                self._stream = self._header[0]
                self._frame_left = int.from_bytes(self._header[4:], "big")
                self._header.clear()
            part = data[: self._frame_left]
            data = data[len(part) :]
            self._frame_left -= len(part)
            if self._stream == 1:
                self._lines += part
            else:
                self._log += part[: max(self._log_bytes - len(self._log), 0)]
                self._print_left -= len(part)
                self._over = self._print_left < 0
