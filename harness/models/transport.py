"""The HTTP client under the ``openai`` package: bounded replies, a bound on the whole exchange, no redirects."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openai import DefaultHttpxClient

REPLY_BYTES = 16 * 1024 * 1024
"""Largest reply body that is read."""
GRACE = 1.0
"""Seconds that the package's own time-outs have to say what went wrong, before the exchange is given up."""


class Unreadable(Exception):
    """The reply came but was not read to its end: too large, too slow, or packed."""


def bounded_http_client(reply_bytes: int, loopback: bool) -> DefaultHttpxClient:
    """A client that reads at most ``reply_bytes`` of a reply within the request's read time-out.

    The package's own time-outs hold between two bytes, so that a server that drips its reply, or the head of it,
    would never time out: the exchange has a thread of its own, which is left behind where it does not end. A
    redirect is not followed: the key is for the configured host. Loopback endpoints ignore proxy variables.
    """
    # Imported here: a run without models should not pay for it (about a second).
    from openai import DefaultHttpxClient

    class Bounded(DefaultHttpxClient):
        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            seconds = (request.extensions.get("timeout") or {}).get("read") or 600.0
            ended: queue.SimpleQueue[Any] = queue.SimpleQueue()

            def exchange() -> None:
                try:
                    ended.put(self._exchange(request, time.monotonic() + seconds, options))
                except BaseException as error:  # to be raised where it is waited for
                    ended.put(error)

            threading.Thread(target=exchange, name="model-call", daemon=True).start()
            try:
                result = ended.get(timeout=seconds + GRACE)
            except queue.Empty:
                raise Unreadable("the reply did not end in time") from None
            if isinstance(result, BaseException):
                raise result
            return result

        def _exchange(self, request: Any, ends: float, options: dict[str, Any]) -> Any:
            response = super().send(request, stream=True, **options)
            try:
                body = self._read(response, ends)
            finally:
                response.close()
            return type(response)(response.status_code, headers=response.headers, content=body, request=request)

        @staticmethod
        def _read(response: Any, ends: float) -> bytes:
            if response.headers.get("content-encoding", "identity").lower() != "identity":
                raise Unreadable("the reply is compressed although that was not asked for")
            body = bytearray()
            for chunk in response.iter_raw():
                body += chunk
                if len(body) > reply_bytes:
                    raise Unreadable(f"the reply is larger than {reply_bytes} bytes")
                if time.monotonic() > ends:
                    raise Unreadable("the reply did not end in time")
            return bytes(body)

    return Bounded(follow_redirects=False, trust_env=not loopback, headers={"Accept-Encoding": "identity"})
