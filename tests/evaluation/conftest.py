"""Evaluations built by hand, a data set on disk, a model behind a real HTTP server, and a real sandbox."""

import base64
import json
import os
import struct
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal

import pytest

from harness.config import resolve
from harness.data.native import Dataset, Gold, Question, Video, load
from harness.data.write import DatasetParts, write
from harness.evaluation.outcomes import OFFLINE_READER, Cost, Evaluation, Item
from harness.models.hub import ModelHub
from policies.contract import Utterance, Window
from sandbox import open_sandbox
from sandbox.interface import Limits, Sandbox, SandboxError, Verdict

KINDS: tuple[Literal["bubblewrap", "docker"], ...] = ("bubblewrap", "docker")


def make_item(number: int, correct: bool, **changes: object) -> Item:
    values: dict[str, object] = {
        "question": f"q{number:04d}",
        "video": "v1",
        "type": "EventRecall",
        "verdict": Verdict.OK,
        "choice": "A" if correct else "B",
        "correct": correct,
        "route": "reader",
        "evidence": (0,),
        "hit": None,
        "answering": Cost(requests=1, prompt_tokens=100),
    }
    return Item.model_validate(values | changes)


def make_evaluation(items: Sequence[Item] | str, **changes: object) -> Evaluation:
    """``items`` may be a string of 1 (right) and 0 (wrong)."""
    if isinstance(items, str):
        items = [make_item(number, mark == "1") for number, mark in enumerate(items)]
    values: dict[str, object] = {
        "policy": "p" * 64,
        "split": "development",
        "data": "d" * 64,
        "runtime_digest": "r" * 64,
        "sandbox": "bubblewrap",
        "reader": OFFLINE_READER,
        "items": tuple(items),
    }
    return Evaluation.model_validate(values | changes)


@pytest.fixture
def item() -> Callable[..., Item]:
    return make_item


@pytest.fixture
def evaluation() -> Callable[..., Evaluation]:
    return make_evaluation


# ---------------------------------------------------------------- a data set


def window(index: int, caption: str, length: float = 30.0) -> Window:
    utterances = (Utterance("Ann", f"I said {index}"),)
    return Window(index, index * length, (index + 1) * length, (caption,), utterances, False)


def ask(number: int, video: str, time: float, answer: str = "A", kind: str = "EventRecall") -> tuple[Question, Gold]:
    """The answer's text names the window that ends right before ``time``, where the oracle time lies."""
    seen = int(time // 30) - 1
    texts = [f"thing{seen}", f"wrong{number}", f"other{number}", f"false{number}"]
    letters = ["A", "B", "C", "D"]
    at = letters.index(answer)
    texts[0], texts[at] = texts[at], texts[0]
    question = Question(
        f"item-{number}", video, kind, f"What was used at {number}?", dict(zip(letters, texts, strict=True)), time
    )
    return question, Gold(answer, ((seen * 30.0 + 5, seen * 30.0 + 10),))


@pytest.fixture(scope="session")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """Two videos of 40 windows; window k tells of thing k. 12 development questions, 4 for validation."""
    videos = [
        Video(f"video{v}", 1_200.0, tuple(window(k, f"Ann takes thing{k} from the shelf.") for k in range(40)))
        for v in (1, 2)
    ]
    development = [
        ask(n, f"video{1 + n % 2}", 100.0 + 80 * n, "ABCD"[n % 4], "EventRecall" if n < 6 else "TaskMaster")
        for n in range(12)
    ]
    validation = [ask(n, "video1", 300.0 + n, "B") for n in range(100, 104)]
    parts = DatasetParts("tiny", {"made": "by hand"}, videos, {"development": development, "validation": validation})
    folder = tmp_path_factory.mktemp("data") / "tiny"
    write(parts, folder)
    return load(folder)


# ---------------------------------------------------------------- a model behind HTTP


class ModelServer:
    """Chat completions and embeddings over HTTP. ``behave`` turns a request into (status, content)."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.behave: Callable[[dict[str, Any]], tuple[int, str]] = lambda body: (200, '{"answer": "A"}')
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                outer.requests.append(body)
                status, content = outer.behave(body)
                data = json.dumps(
                    outer.reply(self.path, body, content) if status == 200 else {"error": content}
                ).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def reply(self, path: str, body: dict[str, Any], content: str) -> dict[str, Any]:
        if path.endswith("/embeddings"):
            vector = base64.b64encode(struct.pack("<3f", 1.0, 0.5, -2.0)).decode()
            data = [{"index": k, "embedding": vector} for k in range(len(body["input"]))]
            return {"data": data, "model": "served", "usage": {"prompt_tokens": 7, "total_tokens": 7}}
        usage = {"prompt_tokens": 100, "completion_tokens": 3, "total_tokens": 103}
        finish = "length" if content == "CUT" else "stop"
        message = {"role": "assistant", "content": content}
        return {
            "model": "served",
            "choices": [{"index": 0, "finish_reason": finish, "message": message}],
            "usage": usage,
        }

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[ModelServer]:
    started = ModelServer()
    yield started
    started.close()


@pytest.fixture
def models(server: ModelServer, tmp_path: Path) -> Iterator[ModelHub]:
    """All roles at the server, replies stored under ``tmp_path``."""
    env = {
        "HARNESS_MODEL": "local",
        "HARNESS_EMBED_MODEL": "local-embed",
        "OPENAI_BASE_URL": server.url,
        "OPENAI_API_KEY": "k",
    }
    hub = ModelHub(resolve({"profile": "openai"}, env, None), tmp_path)
    yield hub
    hub.close()


# ---------------------------------------------------------------- a sandbox


@pytest.fixture(scope="session")
def sandbox() -> Iterator[Sandbox]:
    """A real back end with short limits: bubblewrap, which starts faster, else Docker."""
    limits, missing = Limits(answer_seconds=3.0, observe_seconds=30.0), []
    for kind in KINDS:
        try:
            opened = open_sandbox(kind, limits, pool_size=2)
        except SandboxError as error:
            missing.append(f"{kind}: {error}")
            continue
        yield opened
        opened.close()
        return
    (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no sandbox here. " + " ".join(missing))
