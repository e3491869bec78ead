"""What a search remembers: a failed idea told in other words, with memory and without; an earlier run taken over."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.outcomes import Inherited
from harness.state.store import RunStore
from tests.endpoint import Endpoint, endpoint
from tests.endtoend.conftest import Finished
from tests.gate.retold import FIRST, LOOP, METHOD

__all__ = ["endpoint"]
Command = Callable[..., Finished]
TOLD = (
    ("Best windows", "Choose the twelve windows that match the question best, not evenly spread ones", FIRST),
    ("Lexical ranking", "Rank captions by rare words shared with what is asked and pack the leading dozen", LOOP),
    ("Relevance first", "A method of its own orders everything seen by relevance before it is cut", METHOD),
)
WHY = {"why": "Ranking finds the words and \x1b[31mnot the\nmoment.", "advice": "Look at when things happened."}


class Stubborn:
    """An author who tells one idea again and again, each time otherwise; and an analyst."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.authored: list[str] = []
        self.analysed: list[str] = []
        self.lesson: str | dict[str, Any] = json.dumps(WHY)
        endpoint.say = self.say

    def say(self, body: dict[str, Any]) -> str | dict[str, Any]:
        prompt = str(body["messages"][0]["content"])
        if body["model"] == "analyst":
            assert body["response_format"]["json_schema"]["schema"]["required"] == ["why", "advice"]
            self.analysed.append(prompt)
            return self.lesson
        title, what, code = TOLD[len(self.authored) % len(TOLD)]
        self.authored.append(prompt)
        head = (
            f"TITLE: {title}\nWHAT: {what}\nWHY: because\nACCURACY: +9 points\nTOKENS: half\nLATENCY: same\nRULE: none"
        )
        return f"{head}\n```python\n{code}\n```"


@pytest.fixture
def stubborn(endpoint: Endpoint, tmp_path: Path) -> Stubborn:
    """Its settings let no idea pass the development bar: an idea fails however it measures."""
    roles = "".join(
        f'[profiles.test.roles.{role}]\nmodel = "{role}"\nbase_url = "{endpoint.url}"\nattempts = 1\n'
        for role in ("implementer", "analyst")
    )
    (tmp_path / "harness.toml").write_text(
        '[run]\nprofile = "test"\nseed = 4\nsandbox = "bubblewrap"\nworkers = 1\n[author]\nform = "file"\n'
        f"[gate]\nsmoke_questions = 2\n[promotion]\neta = 1.0\nsaving = 1.0\n[caps]\ndollars = inf\n{roles}"
    )
    return Stubborn(endpoint)


def plain(text: str) -> str:
    """Without the breaks of lines."""
    return " ".join(text.split())


def outcomes(folder: Path) -> list[tuple[str, tuple[str, ...]]]:
    with RunStore.open(folder, write=False) as store:
        return [(attempt.outcome, attempt.rules) for attempt in store.attempts()]


def test_a_failed_idea_in_other_words_is_refused_with_memory_and_repeated_without(
    stubborn: Stubborn, harness: Command, few_data: Path, tmp_path: Path
) -> None:
    runs, data = tmp_path / "runs", ("run", "--data", str(few_data))
    done = harness(*data, "--name", "with", "--iterations", "3")
    assert done.returncode == 0, done.stderr
    assert outcomes(runs / "with") == [("develop", ()), ("duplicates", ("D04",)), ("duplicates", ("D04",))]
    assert "idea of attempt 1 in other words" in plain(harness("show", "2", "--run", "with").stdout)
    assert "idea of attempt 1 in other words" in stubborn.authored[2]  # the author is told

    stubborn.authored.clear()
    done = harness(*data, "--name", "without", "--iterations", "2", env={"HARNESS_MEMORY_KIND": "none"})
    assert done.returncode == 0, done.stderr
    assert outcomes(runs / "without") == [("develop", ()), ("develop", ())]
    assert "Earlier attempts" not in stubborn.authored[1] and "Best windows" not in stubborn.authored[1]

    # The analyst is shown what was expected, measured and done; its lesson is cleaned, and shown with its name.
    assert len(stubborn.analysed) == 5
    assert "+9 points" in stubborn.analysed[0] and "development bar" in stubborn.analysed[0]
    assert "top(bm25_question(self.memory, query), 12)" in stubborn.analysed[0]
    shown = plain(harness("show", "1", "--run", "with").stdout)
    assert "not the moment. Look at when things happened. (by analyst)" in shown and "\x1b" not in shown

    # A later run takes over what this one learned, and replays without it.
    stubborn.authored.clear()
    done = harness(*data, "--name", "later", "--iterations", "1", "--remember-from", "with")
    assert done.returncode == 0, done.stderr
    assert outcomes(runs / "later") == [("duplicates", ("D04",))]
    assert "idea of attempt with:1 in other words" in plain(harness("show", "1", "--run", "later").stdout)
    assert "with:1 Best windows" in stubborn.authored[0] and "Look at when things happened" in stubborn.authored[0]
    with RunStore.open(runs / "with", write=False) as source, RunStore.open(runs / "later", write=False) as store:
        taken = store.stage(0, "inherit", Inherited)
        assert taken is not None and taken.comparable
        assert (taken.source, taken.head, taken.data_digest) == ("with", source.head, source.manifest.data.digest)
    shutil.rmtree(runs / "with")
    again = harness(*data, "--name", "later", "--iterations", "2", "--remember-from", "with")
    assert again.returncode == 0, again.stderr
    assert outcomes(runs / "later")[1] == ("duplicates", ("D04",))
