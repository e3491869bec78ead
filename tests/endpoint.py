"""A model behind a real HTTP server, through the real client."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.config import resolve
from harness.models.hub import ModelHub

Say = Callable[[dict[str, Any]], "str | dict[str, Any]"]
"""From the request's body to the reply: its text, a whole choice with finish reason and perhaps ``usage``, or a status
with its body and perhaps ``headers``. It may take its time."""
Point = Callable[[str], list[float]]
"""From a text to its vector."""


class Endpoint:
    """Answers every chat completion and every embedding by a function; keeps what was asked."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.say: Say = lambda body: ""
        self.listed: tuple[str, ...] = ()
        """Models that it says it has; none: it lists nothing."""
        self.lock = threading.Lock()
        self.point: Point = lambda text: [1.0]
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                if outer.listed and self.path.endswith("/models"):
                    return self.give({"object": "list", "data": [{"id": name} for name in outer.listed]})
                return self.give({"error": {"message": "not found"}}, 404)

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with outer.lock:
                    outer.requests.append(body)
                if self.path.endswith("/embeddings"):
                    rows = [{"index": at, "embedding": outer.point(text)} for at, text in enumerate(body["input"])]
                    return self.give({"object": "list", "model": "m", "data": rows, "usage": {"prompt_tokens": 10}})
                said = outer.say(body)
                if isinstance(said, dict) and "status" in said:
                    return self.give(said["body"], said["status"], said.get("headers", {}))
                choice = said if isinstance(said, dict) else {"finish_reason": "stop", "message": {"content": said}}
                choice["message"] = {"role": "assistant", **choice["message"]}
                usage = choice.pop("usage", {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})
                reply = {"id": "1", "object": "chat.completion", "model": "m", "choices": [{"index": 0, **choice}]}
                return self.give({**reply, "usage": usage})

            def give(self, reply: dict[str, Any], status: int = 200, headers: Mapping[str, str] | None = None) -> None:
                data = json.dumps(reply).encode()
                try:
                    self.send_response(status)
                    for name, value in {"Content-Type": "application/json", **(headers or {})}.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(data)))
                    self.end_headers()
                    self.wfile.write(data)
                except OSError:
                    return  # the client was killed or has given up

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    started = Endpoint()
    yield started
    started.server.shutdown()
    started.server.server_close()


@pytest.fixture
def models(endpoint: Endpoint, tmp_path: Path) -> Iterator[ModelHub]:
    file = tmp_path / "harness.toml"
    file.write_text(
        f'[run]\nprofile = "test"\n[profiles.test.default]\nmodel = "m"\nbase_url = "{endpoint.url}"\n'
        "[caps]\ndollars = inf\n"
    )
    (tmp_path / "run").mkdir()
    hub = ModelHub(resolve({}, {}, file), tmp_path / "run")
    yield hub
    hub.close()
