"""A run with models, played by a real HTTP server: what is asked, what is paid, what a malformed reply leads to."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.outcomes import Gated, Proposed
from harness.state.store import RunStore
from policies import library
from tests.endpoint import Endpoint, endpoint
from tests.endtoend.conftest import Finished, command, environment, facts

__all__ = ["endpoint"]
Command = Callable[..., Finished]
USAGE = {"prompt_tokens": 50, "completion_tokens": 7, "total_tokens": 57}
KILLED_AFTER = (0.1, 0.3, 0.5, 0.8)
"""Shares of a calm run's requests at which the process is killed: several calls may be under way at once."""


class Cast:
    """Plays author, reviewer and answer model. The same request, the same reply."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.broken = endpoint, False
        endpoint.listed = ("actor",)
        endpoint.say = lambda body: {"finish_reason": "stop", "message": {"content": self.reply(body)}, "usage": USAGE}

    def reply(self, body: dict[str, Any]) -> str:
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
def cast(endpoint: Endpoint) -> Cast:
    return Cast(endpoint)


def arguments(data: Path, iterations: int = 1) -> tuple[str, ...]:
    return (
        *("run", "--iterations", str(iterations), "--data", str(data), "--name", "one"),
        *("--sandbox", "bubblewrap", "--profile", "openai"),
    )


def settings(cast: Cast) -> dict[str, str]:
    return {"OPENAI_BASE_URL": cast.endpoint.url, "HARNESS_MODEL": "actor", "HARNESS_AUTHOR_FORM": "file"}


def test_every_role_is_asked_and_every_token_booked(
    cast: Cast, harness: Command, few_data: Path, tmp_path: Path
) -> None:
    done = harness(*arguments(few_data), env=settings(cast))
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
    assert status["search_tokens"] <= 57 * len(cast.endpoint.requests)
    texts = json.dumps(cast.endpoint.requests, ensure_ascii=False)
    gold = (few_data / "gold" / "validation.jsonl").read_text().splitlines()
    assert gold and not any(json.loads(row)["id"] in texts for row in gold)


def test_a_malformed_author_is_recorded_and_never_adopted(
    cast: Cast, harness: Command, few_data: Path, tmp_path: Path
) -> None:
    cast.broken = True
    done = harness(*arguments(few_data), env=settings(cast))
    assert done.returncode == 0, done.stderr
    with RunStore.open(tmp_path / "runs" / "one", write=False) as store:
        proposed = store.stage(1, "propose", Proposed)
        assert proposed is not None and proposed.malformed is not None
        assert proposed.malformed.attempts == 3 and "rather not" in proposed.malformed.raw
        assert store.attempts()[0].outcome == "malformed"


def test_no_received_reply_is_bought_again(cast: Cast, few_data: Path, tmp_path: Path) -> None:
    env, asked = environment(settings(cast)), cast.endpoint.requests
    calm = tmp_path / "calm"
    calm.mkdir()
    running: list[subprocess.Popen[bytes]] = []

    def run(folder: Path) -> int:
        running.append(subprocess.Popen(command(*arguments(few_data)), cwd=folder, env=env, stdout=subprocess.PIPE))
        running[-1].communicate(timeout=300)
        return running[-1].returncode

    assert run(calm) == 0
    needed, play = len(asked), cast.endpoint.say
    assert needed > 20
    asked.clear()
    kills = [int(share * needed) for share in KILLED_AFTER]

    def say(body: dict[str, Any]) -> Any:
        with cast.endpoint.lock:
            if kills and len(asked) >= kills[0]:
                kills.pop(0)
                running[-1].kill()
        return play(body)

    cast.endpoint.say = say
    while kills:
        assert run(tmp_path) < 0
    assert run(tmp_path) == 0
    # A call that was in flight when its process died may be sent again: at most one for each worker and kill.
    assert needed <= len(asked) <= needed + 2 * len(KILLED_AFTER)
    one, whole = facts(tmp_path / "runs" / "one"), facts(calm / "runs" / "one")
    for found in (one, whole):  # a call lost in flight is booked at its reservation: spend may differ by that
        found["attempts"] = [[*row[:4], row[6]] for row in found["attempts"]]
    assert one == whole


def test_endpoint_down_and_wrong_names(cast: Cast, harness: Command, few_data: Path, tmp_path: Path) -> None:
    for change, word in (
        ({"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}, "127.0.0.1:9"),
        ({"HARNESS_MODEL": "nobody"}, "nobody"),
        ({"OPENAI_BASE_URL": "https://api.openai.com/v1"}, "OPENAI_API_KEY"),
        ({"HARNESS_CAPS_DOLLARS": "many"}, "HARNESS_CAPS_DOLLARS"),
    ):
        done = harness(*arguments(few_data), env={**settings(cast), **change})
        assert done.returncode == 2 and word in done.stderr, (change, done.stderr)
        assert len(done.stderr.strip().splitlines()) == 1
        assert not (tmp_path / "runs").exists()


def test_a_cap_stops_the_run_and_nothing_more_is_sent(cast: Cast, harness: Command, few_data: Path) -> None:
    capped = {**settings(cast), "HARNESS_CAPS_REQUESTS": "20"}
    done = harness(*arguments(few_data), env=capped)
    assert done.returncode == 0 and "cap" in done.stdout, done.stdout + done.stderr
    assert len(cast.endpoint.requests) <= 20
    assert harness(*arguments(few_data), env=settings(cast)).returncode == 0
