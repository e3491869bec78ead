"""What the reading commands tell in a terminal: of a run whose every text is hostile, and at the widths people have."""

from __future__ import annotations

import io
import json
import unicodedata
from dataclasses import fields
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from rich.table import Table

from harness.agents.recipes import Recipe
from harness.cli import cli
from harness.cli.options import print_table
from harness.cli.tables import print_log, print_status
from harness.display import HIDDEN
from harness.errors import UserError
from harness.opening import _same

FACTS = {
    "run": "one", "created": "2026-01-01", "profile": "offline", "offline": True, "data": "lifelog-0",
    "data_path": "data/lifelog-4",
    "data_digest": "d" * 64, "parent": "v00", "seed": 0, "remembers": "", "sandbox": "none", "runtime_digest": "r" * 64,
    "iterations_closed": 3, "iterations_asked": 50, "last_stage": "0004 develop", "frontier": [0, 2],
    "outcomes": {"promoted": 1, "develop": 2}, "validations": 2, "test_uses": 1,
    "test_accuracy": {"first": 0.345, "final": 0.451}, "spent": {}, "search_tokens": 0, "search_dollars": 0.0,
    "seconds": {"develop": 12.4, "intake": 0.2}, "learned": [],
}  # fmt: skip


def row(k: int, title: str, dev: float | None, validation: float | None) -> dict[str, object]:
    return {
        "iteration": k, "parent": 0, "title": title, "outcome": "develop", "rules": ["D01"],
        "cause": "the first reason; another one", "dev_accuracy": 0.4, "dev_delta": dev, "validation_accuracy": 0.4,
        "validation_delta": validation, "tokens_per_question": None if dev is None else 1_234.5,
    }  # fmt: skip


def console(width: int) -> Console:
    return Console(width=width, record=True, file=io.StringIO(), highlight=False)


def words(out: Console) -> str:
    return " ".join(out.export_text().split())


@pytest.mark.parametrize("command", [("status",), ("log",), ("show", "1"), ("show", "0"), ("frontier",), ("audit",)])
@pytest.mark.parametrize("width", ["80", "200"])
def test_nothing_hostile_reaches_the_terminal(hostile_run: Path, command: tuple[str, ...], width: str) -> None:
    done = CliRunner(env={"COLUMNS": width}).invoke(cli, [*command, "--run", str(hostile_run)])
    assert done.exit_code == 0, done.output
    loud = {c for c in done.output if c != "\n" and unicodedata.category(c) in HIDDEN}
    assert not loud, loud


def test_an_attempt_says_what_it_was_made_from_and_what_to_ask_next(hostile_run: Path) -> None:
    told = json.loads(CliRunner().invoke(cli, ["show", "1", "--run", str(hostile_run), "--json"]).output)
    assert [parent["iteration"] for parent in told["made_from"]] == [0]
    said = CliRunner().invoke(cli, ["show", "1", "--run", str(hostile_run)]).output
    assert "attempt 0001" in said and "made from" in said and "harness diff 0 1" in said
    with pytest.raises(UserError, match=r"no attempt 99; it has 0 to .* harness log"):
        CliRunner().invoke(cli, ["show", "99", "--run", str(hostile_run)], catch_exceptions=False)


def test_the_log_says_which_attempt_gained_most() -> None:
    rows = [row(1, "one", 0.102, None), row(2, "two", -0.01, 0.049), row(3, "three", None, None)]
    for width in (80, 200):
        out = console(width)
        print_log(out, rows, FACTS)
        said = words(out)
        assert "most gained in development: 0001 one, +10.2 points" in said
        assert "most gained in validation: 0002 two, +4.9 points" in said
        assert "first 34.5 %, final 45.1 %" in said
        assert ("│ 1,234 │" in said) == (width == 200)
        assert ("D01 the first reason │" in said) == (width == 200) and "another one" not in said


def test_the_status_says_where_the_time_went_and_how_to_go_on() -> None:
    out = console(80)
    print_status(out, FACTS)
    said = words(out)
    assert "iterations 3 of 50" in said and "0004 develop; where the run was stopped, the same command goes on" in said
    assert "13, pauses included: develop 12" in said and "1 promoted, 2 rejected at develop" in said
    assert "no model was asked: 0 tokens, 0 US dollars" in said and "not language-model results" in said
    assert "newest stage" not in _status(iterations_closed=50)


def _status(**other: object) -> str:
    out = console(80)
    print_status(out, {**FACTS, **other})
    return words(out)


@given(st.integers(30, 200), st.integers(1, 12), st.integers(0, 3))
def test_a_figure_is_never_cut(width: int, columns: int, rows: int) -> None:
    table = Table(*(f"c{column}" for column in range(columns)))
    figures = [[f"{1_000_000_000 + 100 * row + column}" for column in range(columns)] for row in range(rows)]
    for cells in figures:
        table.add_row(*cells)
    out = console(width)  # at the least there is room for two columns
    print_table(out, table)
    assert {cell for cells in figures for cell in cells} <= set(out.export_text().split())


def test_a_run_without_iterations_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match="--iterations 1 or more"):
        CliRunner().invoke(cli, ["run", "--iterations", "0"], catch_exceptions=False)
    with pytest.raises(UserError, match="no run in runs/ of this folder; name one with --run"):
        CliRunner().invoke(cli, ["log"], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


def test_the_words_of_the_titles_are_told() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "policies.md").read_text("utf-8")
    told = [line.split(" | ")[:2] for line in text.partition("## Recipes")[2].splitlines() if line.startswith("| ")]
    assert told[1:] == [[f"| {part.name}", str(part.default)] for part in fields(Recipe)]


def test_the_commands_are_told_whole_at_80_columns() -> None:
    done = CliRunner().invoke(cli, ["--help"], terminal_width=80)
    commands = done.output.partition("Commands:")[2]
    assert "  doctor" in commands and "..." not in commands, commands


def test_a_run_of_another_runtime_says_what_to_go_on_with() -> None:
    with pytest.raises(UserError, match="go on with the version of the harness that made it, or give the new run"):
        _same("one", ("runtime", "a", "b"))
    with pytest.raises(UserError, match=r"another seed .* go on with the same, or"):
        _same("one", ("seed", 1, 2))
