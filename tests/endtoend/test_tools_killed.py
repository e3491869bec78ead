"""The author with tools in the real command, killed in the middle of both conversations: nothing is bought twice."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

from harness.outcomes import Proposed
from harness.state.store import RunStore
from tests.agents.player import Player
from tests.agents.test_team import IDEA, LOOKING, WRITING
from tests.endpoint import endpoint
from tests.endtoend.conftest import command, environment

__all__ = ["endpoint"]
KILLED_AT = (3, 8)
"""Requests at which the process is killed, counted over all its starts: research, and runs in the sandbox."""


def test_killed_while_it_converses(endpoint: Any, few_data: Path, tmp_path: Path) -> None:
    roles = "".join(
        f'[profiles.test.roles.{role}]\nmodel = "{role}"\nbase_url = "{endpoint.url}"\n'
        for role in ("researcher", "implementer")
    )
    (tmp_path / "harness.toml").write_text(f'[author]\nform = "tools"\n[caps]\ndollars = inf\n{roles}')
    play = Player({"researcher": LOOKING, "implementer": WRITING})
    running: list[subprocess.Popen[bytes]] = []

    def say(body: dict[str, Any]) -> Any:
        if len(endpoint.requests) in KILLED_AT:
            running[-1].kill()
        return play(body)

    endpoint.say = say
    arguments = (
        "run",
        "--profile",
        "test",
        "--data",
        str(few_data),
        "--name",
        "one",
        "--iterations",
        "1",
    )
    for _ in range(len(KILLED_AT) + 1):
        running.append(subprocess.Popen(command(*arguments), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE))
        output, _ = running[-1].communicate(timeout=300)
    assert running[-1].returncode == 0, output.decode()
    sent = Counter(json.dumps(body, sort_keys=True) for body in endpoint.requests)
    assert len(sent) == len(LOOKING) + len(WRITING)
    assert sum(sent.values()) - len(sent) == len(KILLED_AT)  # the calls in flight, each once more
    with RunStore.open(tmp_path / "runs" / "one", write=False) as store:
        proposed = store.stage(1, "propose", Proposed)
        (attempt,) = store.attempts()
        assert proposed and proposed.proposal and proposed.proposal.hypothesis.title == IDEA["title"]
        assert attempt.expected == {"accuracy": "+8 points", "tokens": "half", "latency": "same"}
        assert attempt.dev_delta is not None and attempt.tokens_per_question is not None  # measured, beside it
        assert store.manifest.config["author"]["correctness"] is False
