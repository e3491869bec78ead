"""A real HTTP server that speaks the chat-completions protocol and misbehaves as told."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Answer:
    """One reply of the server. ``body`` is JSON unless it is bytes."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)
    hang: float = 0.0
    """Seconds before the status line."""
    drip: float = 0.0
    """Seconds between the single bytes of the body."""
    promise: int | None = None
    """Content-Length where it should differ from the truth."""


def completion(
    content: Any = "hello", finish: str = "stop", usage: Any = "default", model: str = "served", **message: Any
) -> Answer:
    body: dict[str, Any] = {
        "id": "x",
        "object": "chat.completion",
        "model": model,
        "choices": [
            {"index": 0, "finish_reason": finish, "message": {"role": "assistant", "content": content, **message}}
        ],
    }
    if usage == "default":
        usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
    if usage is not None:
        body["usage"] = usage
    return Answer(body=body)


def refusal(message: str, param: str | None = None, code: str | None = None, status: int = 400) -> Answer:
    return Answer(
        status, {"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}}
    )


class ModelServer:
    """Answers come from ``script`` (used up in order, the last one for ever) or from a function of the body.

    ``pages`` are what GET requests find.
    """

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.pages: dict[str, Answer] = {}
        self.looked_up: list[str] = []
        self.script: list[Answer] = [completion()]
        self.behave: Callable[[dict[str, Any]], Answer] | None = None
        self._lock = threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.looked_up.append(self.path)
                self._give(outer.pages.get(self.path, Answer(404, {"error": {"message": "not found"}})))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = outer._next(body, {k.lower(): v for k, v in self.headers.items()}, self.path)
                self._give(answer)

            def _give(self, answer: Answer) -> None:
                time.sleep(answer.hang)
                data = answer.body if isinstance(answer.body, bytes) else json.dumps(answer.body).encode()
                try:
                    self.send_response(answer.status)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(data) if answer.promise is None else answer.promise))
                    for name, value in answer.headers.items():
                        self.send_header(name, value)
                    self.end_headers()
                    for chunk in [data[i : i + 1] for i in range(len(data))] if answer.drip else [data]:
                        self.wfile.write(chunk)
                        self.wfile.flush()
                        time.sleep(answer.drip)
                    if answer.promise is not None:
                        self.close_connection = True
                except OSError:
                    self.close_connection = True

            def log_message(self, *args: Any) -> None:
                pass

        class Quiet(ThreadingHTTPServer):
            def handle_error(self, request: Any, client_address: Any) -> None:
                """A client that hangs up is what some tests are about."""

        self._server = Quiet(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def _next(self, body: dict[str, Any], headers: dict[str, str], path: str) -> Answer:
        with self._lock:
            self.requests.append({**body, "_path": path})
            self.headers.append(headers)
            if self.behave is not None:
                return self.behave(body)
            return self.script.pop(0) if len(self.script) > 1 else self.script[0]

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    started = ModelServer()
    yield started
    started.close()


class Clock:
    """Time that passes only by sleeping (and by real work not at all)."""

    def __init__(self) -> None:
        self.now = 0.0
        self.sleeps: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def say() -> Callable[..., Answer]:
    return completion


@pytest.fixture
def refuse() -> Callable[..., Answer]:
    return refusal


@pytest.fixture
def raw() -> type[Answer]:
    return Answer
