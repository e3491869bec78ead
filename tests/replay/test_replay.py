"""Attempts executed again from their records: the same where nothing was touched, and what was touched is named."""

from __future__ import annotations

import json
import shutil
import sqlite3
import subprocess
import zlib
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from harness.auditing import verify_run
from harness.cli import cli
from harness.config import resolve
from harness.errors import UserError
from harness.outcomes import Measured, TakenIn
from harness.replay.comparing import differences
from harness.replay.replaying import Order, replay
from harness.state.store import RunStore
from tests.endpoint import Endpoint, endpoint
from tests.endtoend.conftest import command, environment, few_data, small_data
from tests.endtoend.test_models import Cast, arguments, settings
from tests.replay.unreadable import replay_unreadable

__all__ = ["endpoint", "few_data", "small_data"]
CRASHING = """
from policies.contract import Answer


class Policy:
    def __init__(self, setup):
        self.setup = setup

    def observe(self, windows):
        pass

    def settle(self):
        pass

    def answer(self, query):
        raise ValueError("on purpose")
"""


def run(home: Path, *options: str, env: dict[str, str] | None = None) -> Path:
    done = subprocess.run(
        command(*options), cwd=home, env=environment(env), capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return home / "runs" / "one"


@pytest.fixture(scope="module")
def finished(few_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two iterations without models; read by several tests, changed by none."""
    home = tmp_path_factory.mktemp("replayed")
    options = ("--iterations", "2", "--data", str(few_data), "--name", "one", "--sandbox", "bubblewrap")
    return run(home, "run", *options)


def test_attempts_replay_while_their_records_cannot_be_read(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "one"
    shutil.copytree(finished, copy)
    for k in (0, 2):
        found = replay_unreadable(copy, k, Order())
        assert found.differences == () and len(found.stages) > 5, found


def test_all_attempts_replay_with_one_command(finished: Path, tmp_path: Path) -> None:
    done = CliRunner().invoke(cli, ["replay", "--all", "--run", str(finished)])
    assert done.exit_code == 0 and done.output.endswith("3 replayed: 3 as recorded, 0 different, 0 could not be\n")
    copy = tmp_path / "one"
    shutil.copytree(finished, copy)
    with sqlite3.connect(copy / "run.db") as db:  # what attempts 1 and 2 are executed from is damaged
        db.execute("UPDATE stage SET outcome = outcome || ' ' WHERE iteration = 1 AND stage = 'remember'")
    db.close()
    done = CliRunner().invoke(cli, ["replay", "--all", "--run", str(copy), "--stage", "gate", "--json"])
    assert done.exit_code == 2, done.output
    first, *others = json.loads(done.output)
    assert first["same"] and [row["attempt"] for row in others] == [1, 2]
    assert all("outcome of audit line" in row["error"] for row in others)
    for wrong in (["--all", "1"], ["--all", "--live"], []):
        assert isinstance(CliRunner().invoke(cli, ["replay", *wrong, "--run", str(finished)]).exception, UserError)


@pytest.mark.docker
def test_an_attempt_replays_on_the_other_back_end(finished: Path, sandboxes: Any) -> None:
    sandboxes("docker")  # skips, or fails in CI, where it does not work
    found = replay(finished, 1, Order(sandbox="docker"))
    assert found.differences == () and any(note.startswith("sandbox") for note in found.notes)


def test_what_cannot_be_replayed_says_why(finished: Path, tmp_path: Path) -> None:
    for k, order, word in (
        (9, Order(), "no attempt 9"),
        (1, Order(data=tmp_path), "--data"),
        (1, Order(live=resolve({}, {}, None)), "--live"),
    ):
        with pytest.raises(UserError, match=word):
            replay(finished, k, order)


def test_the_first_difference_names_stage_question_and_field(finished: Path) -> None:
    with RunStore.open(finished, write=False) as store:
        measured = store.stage(0, "develop", Measured)
    assert measured is not None
    items = list(measured.evaluation.items)
    items[1] = items[1].model_copy(update={"choice": "Z", "seconds": 99.0})
    evaluation = measured.evaluation.model_copy(update={"items": tuple(items), "wall_seconds": 1e6})
    (found,) = differences({"develop": measured}, {"develop": measured.model_copy(update={"evaluation": evaluation})})
    assert (found.stage, found.question, found.field, found.now) == ("develop", items[1].question, "choice", "'Z'")
    assert "develop" in found.line() and items[1].question in found.line()


def test_reviews_are_told_by_stage(finished: Path) -> None:
    told = CliRunner().invoke(cli, ["audit", "1", "--run", str(finished), "--stage", "dynamic", "--json"])
    (review,) = json.loads(told.output)["reviews"]
    assert (review["stage"], review["decided_by"]) == ("dynamic", "dynamic tests") and review["cost"]["seconds"] > 0
    plain = CliRunner().invoke(cli, ["audit", "--run", str(finished)])
    assert plain.exit_code == 0 and "0001" in plain.output and "by loop" in plain.output


def test_a_changed_byte_is_named(finished: Path, tmp_path: Path) -> None:
    assert verify_run(finished).problems == ()
    with RunStore.open(finished, write=False) as store:
        taken = store.stage(1, "intake", TakenIn)
        assert taken is not None
        blob = store.lineage.entries(taken.tree)[0].oid

    def flip(path: Path, at: int) -> None:
        path.chmod(0o644)
        content = bytearray(path.read_bytes())
        content[at] ^= 1
        path.write_bytes(content)

    def outcome(folder: Path) -> None:
        with sqlite3.connect(folder / "run.db") as db:
            db.execute("UPDATE stage SET outcome = replace(outcome, 'development', 'deweloppent') WHERE number = 4")

    changes = {
        "audit.jsonl: line 3": lambda folder: flip(
            folder / "audit.jsonl", len((folder / "audit.jsonl").read_bytes()) // 50
        ),
        "memory.jsonl": lambda folder: flip(folder / "memory.jsonl", -1),
        "outcome of audit line 4": outcome,
        blob: lambda folder: flip(folder / "lineage.git" / "objects" / blob[:2] / blob[2:], 30),
        "constitution.md": lambda folder: flip(folder / "h0" / "constitution.md", 40),
    }
    for number, (word, change) in enumerate(changes.items()):
        folder = tmp_path / str(number)
        shutil.copytree(finished, folder)
        change(folder)
        problems = verify_run(folder).problems
        assert problems and word.split(":")[0] in " ".join(problems), (word, problems)


def test_attempts_of_models_replay_without_asking(endpoint: Endpoint, few_data: Path, tmp_path: Path) -> None:
    """A candidate, then nothing usable, then one that crashes; then a reply is changed, and one is taken away."""
    cast, asked = Cast(endpoint), []
    play = endpoint.say

    def say(body: dict[str, Any]) -> Any:
        text = "\n".join(str(message["content"]) for message in body["messages"])
        if "researcher and implementer" not in text:
            return play(body)
        asked.append(text)
        if len(asked) == 1:
            return play(body)
        if len(asked) < 5:
            return "I would rather not."
        head = "TITLE: crash\nWHAT: crash\nWHY: crash\nACCURACY: 0\nTOKENS: 0\nLATENCY: 0\nRULE: none\n"
        return f"{head}```python\n{CRASHING}\n```"

    endpoint.say = say
    folder = run(tmp_path, *arguments(few_data, 3), env=settings(cast))
    with RunStore.open(folder, write=False) as store:
        outcomes = [attempt.outcome for attempt in store.attempts()]
    assert outcomes[1:] == ["malformed", "smoke"]
    assert verify_run(folder).problems == ()
    endpoint.requests.clear()
    for k in (1, 2, 3):
        assert replay(folder, k, Order()).differences == ()
    assert endpoint.requests == []
    what_was_never_measured(folder)
    assert endpoint.requests == []
    with pytest.raises(UserError, match="has no model"):  # whatever endpoint the folder names
        cli.main(["replay", "2", "--run", str(folder), "--live"], standalone_mode=False)
    assert endpoint.requests == []
    own = resolve({"profile": "openai"}, settings(cast), None)
    live = replay(folder, 2, Order(live=own))  # this time something usable comes back
    assert live.differences[0].stage == "propose" and endpoint.requests
    endpoint.requests.clear()

    with sqlite3.connect(folder / "replies.db") as db:
        row, blob = db.execute("SELECT id, reply FROM calls WHERE scope LIKE '0002/propose%'").fetchone()
        said = json.loads(zlib.decompress(blob))
        changed = zlib.compress(json.dumps({**said, "raw": "I would rather.", "text": "I would rather."}).encode())
        db.execute("UPDATE calls SET reply = ? WHERE id = ?", (changed, row))
    db.close()
    problems = verify_run(folder).problems
    assert len(problems) == 1 and "0002/propose" in problems[0] and "replies.db" in problems[0]
    with pytest.raises(UserError, match=r"call \d at 0002/propose\S* is not what was written"):
        replay(folder, 2, Order())
    assert replay(folder, 3, Order(part="gate")).differences == ()  # other attempts are not concerned
    with sqlite3.connect(folder / "replies.db") as db:
        db.execute("DELETE FROM calls WHERE scope LIKE '0003/propose%'")
    db.close()
    with pytest.raises(UserError, match="0003/propose"):
        replay(folder, 3, Order())
    assert endpoint.requests == []


def what_was_never_measured(folder: Path) -> None:
    """Attempt 3 crashed at smoke: its development figure can be had, as none of the run's; a held-out one cannot."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    found = replay(folder, 3, Order(part="develop"))
    assert found.beyond is not None and found.beyond.ended == "smoke" and found.beyond.measured.rejected
    assert found.beyond.measured.evaluation.accuracy == 0 and len(found.beyond.measured.evaluation.items) == 5
    told = CliRunner().invoke(cli, ["replay", "3", "--stage", "develop", "--run", str(folder)])
    assert told.exit_code == 0 and "rejected at smoke" in told.output and "not part of the run" in told.output
    with pytest.raises(UserError, match="never came to validate: it ended at smoke"):
        replay(folder, 3, Order(part="validate"))
    with pytest.raises(UserError, match="has no candidate"):
        replay(folder, 2, Order(part="develop"))
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before
