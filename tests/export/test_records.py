"""Records as JSON Lines: every attempt, stable names, nothing that tells a gold answer, inert in a terminal."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.data.native import load
from harness.errors import UserError
from harness.state.store import RunStore

FIELDS = {
    "format", "run", "number", "parent", "title", "hypothesis", "why", "expected", "outcome", "cause", "rules",
    "on_frontier", "tree", "commit", "outcome_commit", "branch", "revisions", "stages", "figures", "dev_delta",
    "dev_delta_by_type", "validation_p", "search_tokens", "search_dollars", "lesson", "lesson_by", "offline",
}  # fmt: skip


def export(run: Path, out: Path) -> list[dict[str, object]]:
    done = CliRunner().invoke(cli, ["export", "records", "--run", str(run), "--out", str(out)])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in out.read_text("ascii").splitlines()]


def test_every_attempt_is_a_line(finished: Path, few_data: Path, tmp_path: Path) -> None:
    rows = export(finished, tmp_path / "records.jsonl")
    assert [row["number"] for row in rows] == [0, 1] and all(row.keys() == FIELDS for row in rows)
    with RunStore.open(finished, write=False) as store:
        (attempt,) = store.attempts()
    assert rows[1]["title"] == attempt.title and rows[1]["lesson"] == attempt.lesson and rows[1]["parent"] == 0
    stages = rows[1]["stages"]
    assert isinstance(stages, list) and stages[0]["stage"] == "propose" and "seconds" in stages[0]["cost"]
    figures = rows[0]["figures"]
    assert isinstance(figures, dict) and figures["development"]["questions"] == 5
    text = (tmp_path / "records.jsonl").read_text()
    data = load(few_data)
    for split in ("development", "validation", "test"):
        assert not [q.id for q in data.questions(split) if q.id in text or q.question in text]
    assert not re.search(r'"(correct|gold|oracle|choice|evidence|items)"', text)


def test_a_hostile_run_is_inert(hostile_run: Path, tmp_path: Path) -> None:
    rows = export(hostile_run, tmp_path / "records.jsonl")
    assert [(row["number"], row["outcome"]) for row in rows] == [
        (0, "start"), (1, "promoted"), (2, "develop"), (3, "static"), (4, "malformed"), (5, "unfinished"),
    ]  # fmt: skip
    assert [row["on_frontier"] for row in rows] == [True, True, False, False, False, False]
    raw = (tmp_path / "records.jsonl").read_bytes()
    assert set(raw) <= {10, *range(32, 127)} and not re.search(rb"\\ud[89a-f]", raw)
    assert "\x1b[31mred" in str(rows[1]["title"]), "the text itself is kept"


def test_what_is_there_stays(hostile_run: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("there", "link"):
        done = CliRunner().invoke(cli, ["export", "records", "--run", str(hostile_run), "--out", str(tmp_path / name)])
        assert isinstance(done.exception, UserError) and "is there already" in str(done.exception)
    assert (tmp_path / "there").read_text() == "mine" and not (tmp_path / "nowhere").exists()
    done = CliRunner().invoke(
        cli, ["export", "records", "--run", str(hostile_run), "--out", str(tmp_path / "no" / "x")]
    )
    assert isinstance(done.exception, UserError) and "cannot be written" in str(done.exception)


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from tests.report.conftest import make_run

    return make_run(tmp_path_factory.mktemp("hostile"))
