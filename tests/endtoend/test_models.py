"""A run with models, played by a real HTTP server: what is asked, what is paid, what a malformed reply leads to."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from harness.outcomes import Gated, Proposed
from harness.state.store import RunStore
from policies import library
from tests.endtoend.conftest import Finished, command, environment, facts

Command = Callable[..., Finished]
USAGE = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}


class Cast:
    """One endpoint that plays author, reviewer and answer model, and keeps every request it was sent."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        self.broken = False
        self.delay = 0.0
        self.lock = threading.Lock()
        cast = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                if self.path.endswith("/models"):
                    self._send(200, {"object": "list", "data": [{"id": "actor", "object": "model"}]})
                else:
                    self._send(404, {"error": {"message": "no such model"}})

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                with cast.lock:
                    cast.requests.append(body)
                time.sleep(cast.delay)
                message = {"role": "assistant", "content": cast.reply(json.loads(body))}
                choice = {"index": 0, "finish_reason": "stop", "message": message}
                whole = {"id": "1", "object": "chat.completion", "created": 0, "model": "actor", "usage": USAGE}
                try:
                    self._send(200, {**whole, "choices": [choice]})
                except OSError:
                    return  # the client was killed

            def _send(self, status: int, document: Any) -> None:
                data = json.dumps(document).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *arguments: Any) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"

    def reply(self, body: dict[str, Any]) -> str:
        """The same request, the same reply."""
        text = "\n".join(str(message["content"]) for message in body["messages"])
        if "independent reviewer" in text:
            nonce = re.search(r'"nonce": "([^"]+)"', text)
            assert nonce is not None
            return json.dumps({"nonce": nonce[1], "verdict": "approve", "rules": [], "reason": "does what it says"})
        if "researcher and implementer" in text:
            return "I would rather not." if self.broken else self.candidate(text)
        return json.dumps({"answer": "B", "choice": "B", "letter": "B"})

    def candidate(self, prompt: str) -> str:
        """V1 with a smaller context, another one for each prompt."""
        number = 2_000 + sum(map(ord, prompt)) % 9_000
        code = library.load("v01")["policy.py"].decode()
        code += f"\n\nCONTEXT_CHARS = {number}\n"
        head = "TITLE: structured records\nWHAT: keep five fields\nWHY: smaller\nACCURACY: +5\nTOKENS: -10 %\n"
        return f"{head}LATENCY: none\nRULE: none\n```python\n{code}\n```"


@pytest.fixture
def cast() -> Iterator[Cast]:
    started = Cast()
    yield started
    started.server.shutdown()
    started.server.server_close()


def arguments(data: Path, iterations: int = 2) -> tuple[str, ...]:
    return (
        *("run", "--iterations", str(iterations), "--data", str(data), "--name", "one"),
        *("--sandbox", "bubblewrap", "--profile", "openai"),
    )


def settings(cast: Cast) -> dict[str, str]:
    return {"OPENAI_BASE_URL": cast.url, "HARNESS_MODEL": "actor", "HARNESS_AUTHOR_FORM": "file"}


def test_every_role_is_asked_and_every_token_booked(
    cast: Cast, harness: Command, small_data: Path, tmp_path: Path
) -> None:
    done = harness(*arguments(small_data), env=settings(cast))
    assert done.returncode == 0, done.stderr
    assert "cap" in done.stdout and "offline" not in done.stdout
    with RunStore.open(tmp_path / "runs" / "one", write=False) as store:
        review = store.stage(1, "reviewer", Gated)
        assert review is not None and review.verdict.decided_by == "actor"
        proposed = store.stage(1, "propose", Proposed)
        assert proposed is not None and proposed.proposal is not None and proposed.proposal.author == "actor"
    status = json.loads(harness("status", "--json").stdout)
    database = sqlite3.connect(f"file:{tmp_path / 'runs' / 'one' / 'replies.db'}?mode=ro", uri=True)
    tables = {row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    database.close()
    assert tables
    assert not status["offline"]
    assert status["search_tokens"] <= 57 * len(cast.requests)
    texts = "\n".join(cast.requests)
    gold = (small_data / "gold" / "validation.jsonl").read_text().splitlines()
    assert gold and not any(json.loads(row)["id"] in texts for row in gold)


def test_a_malformed_author_is_recorded_and_never_adopted(
    cast: Cast, harness: Command, small_data: Path, tmp_path: Path
) -> None:
    cast.broken = True
    done = harness(*arguments(small_data, 1), env=settings(cast))
    assert done.returncode == 0, done.stderr
    with RunStore.open(tmp_path / "runs" / "one", write=False) as store:
        proposed = store.stage(1, "propose", Proposed)
        assert proposed is not None and proposed.malformed is not None
        assert proposed.malformed.attempts == 3 and "rather not" in proposed.malformed.raw
        assert store.attempts()[0].outcome == "malformed"


def test_no_received_reply_is_bought_again(cast: Cast, small_data: Path, tmp_path: Path) -> None:
    cast.delay = 0.005
    env = environment(settings(cast))
    kills = 0
    while kills < 8:
        running = subprocess.Popen(
            command(*arguments(small_data)), cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        try:
            output, _ = running.communicate(timeout=1.6 + 0.3 * kills)
        except subprocess.TimeoutExpired:
            running.kill()
            running.communicate()
            kills += 1
            continue
        assert running.returncode == 0, output.decode()
        break
    final = subprocess.run(
        command(*arguments(small_data)), cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert final.returncode == 0, final.stderr
    asked = len(cast.requests)
    cast.requests.clear()
    calm = tmp_path / "calm"
    calm.mkdir()
    done = subprocess.run(
        command(*arguments(small_data)), cwd=calm, env=env, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    # A call that was in flight when its process died may be sent again: at most one for each worker and kill.
    assert kills >= 3 and len(cast.requests) <= asked <= len(cast.requests) + 2 * kills
    rough, whole = facts(tmp_path / "runs" / "one"), facts(calm / "runs" / "one")
    for found in (rough, whole):  # a call lost in flight is booked at its reservation: spend may differ by that
        found["attempts"] = [[*row[:4], row[6]] for row in found["attempts"]]
    assert rough == whole


def test_endpoint_down_and_wrong_names(cast: Cast, harness: Command, small_data: Path, tmp_path: Path) -> None:
    for change, word in (
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "127.0.0.1:9"),
        ({"HARNESS_MODEL": "nobody"}, "nobody"),
        ({"OPENAI_BASE_URL": "https://api.openai.com/v1"}, "OPENAI_API_KEY"),
        ({"HARNESS_CAPS_DOLLARS": "many"}, "HARNESS_CAPS_DOLLARS"),
    ):
        done = harness(*arguments(small_data), env={**settings(cast), **change})
        assert done.returncode == 2 and word in done.stderr, (change, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1
        assert not (tmp_path / "runs").exists()


def test_a_cap_stops_the_run_and_nothing_more_is_sent(cast: Cast, harness: Command, small_data: Path) -> None:
    capped = {**settings(cast), "HARNESS_CAPS_REQUESTS": "20"}
    done = harness(*arguments(small_data), env=capped)
    assert done.returncode == 0 and "cap" in done.stdout, done.stdout + done.stderr
    assert len(cast.requests) <= 20
    assert harness(*arguments(small_data), env=settings(cast)).returncode == 0
