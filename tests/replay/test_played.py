"""Replay of what models did with tools: revised attempts, a moved run, a run begun with what another one learned."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from harness import loop
from harness.auditing import verify_run
from harness.config import resolve
from harness.errors import UserError
from harness.opening import searching
from harness.outcomes import Inherited, Recalled
from harness.progress import Quiet
from harness.replay.replaying import Order, Replayed, replay, replay_all
from harness.rounds import intakes
from harness.state.store import RunStore
from tests.endpoint import Endpoint
from tests.endtoend.conftest import few_data, small_data
from tests.endtoend.test_agents import SCENES, settings
from tests.endtoend.troupe import Scene, Troupe

__all__ = ["few_data", "small_data"]
GATE = ("static", "duplicates", "smoke", "dynamic", "reviewer")


@pytest.fixture(scope="module")
def troupe() -> Iterator[Troupe]:
    endpoint = Endpoint()
    yield Troupe(endpoint)
    endpoint.server.shutdown()
    endpoint.server.server_close()


def search(home: Path, name: str, troupe: Troupe, scenes: list[Scene], source: str = "") -> Path:
    """A run of one iteration for each scene."""
    flags = {**settings(home, troupe.endpoint.url), "data": str(home / "few"), "memory.source": source}
    for k, troupe.scene in enumerate(scenes, 1):
        with searching(resolve(flags, {}, home / "harness.toml"), home / name, Quiet()) as opened:
            loop.run(opened, k)
    assert troupe.lacking == []
    return home / name


@pytest.fixture(scope="module")
def moved(troupe: Troupe, few_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run, a later one that began with what it learned, and their data; none is where it was made."""
    home = tmp_path_factory.mktemp("played")
    shutil.copytree(few_data, home / "few")
    first = search(home, "first", troupe, [SCENES["straight"][0], SCENES["revised"][0]])
    search(home, "later", troupe, [SCENES["mended"][0]], str(first))
    troupe.endpoint.requests.clear()
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    for name in ("first", "later", "few"):
        (home / name).rename(elsewhere / name)
    shutil.rmtree(home)
    return elsewhere


def test_a_moved_run_needs_its_data_named(moved: Path) -> None:
    with pytest.raises(UserError, match="--data"):
        replay(moved / "first", 1, Order())


def test_attempts_made_with_tools_and_revised_ones_replay_without_asking(moved: Path, troupe: Troupe) -> None:
    assert verify_run(moved / "first").problems == ()
    with RunStore.open(moved / "first", write=False) as store:
        assert [len(intakes(store, k)) for k in (1, 2)] == [1, 2]
    found = dict(replay_all(moved / "first", Order(data=moved)))
    assert list(found) == [0, 1, 2]
    for one in found.values():
        assert isinstance(one, Replayed) and one.differences == ()
        assert any(note.startswith("data") for note in one.notes)
    revised = found[2]
    assert isinstance(revised, Replayed) and {"reviewer", "revise-1", "reviewer-1"} <= set(revised.stages)
    gate = replay(moved / "first", 2, Order(part="gate", data=moved))  # the last round's
    assert gate.differences == () and set(gate.stages) == {f"{check}-1" for check in GATE}
    assert troupe.endpoint.requests == []


def test_a_changed_byte_anywhere_is_named_unless_it_holds_nothing(moved: Path, tmp_path: Path) -> None:
    """Room between the rows of a database holds nothing; git's configuration is no part of the record."""
    folder = tmp_path / "run"
    shutil.copytree(moved / "later", folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name not in ("run.lock", "config"))
    assert {"run.db", "replies.db", "audit.jsonl", "memory.jsonl", "run.json"} <= {path.name for path in files}
    draw = random.Random(0)
    for path in files:
        content, before = path.read_bytes(), held(path)
        for at in draw.sample(range(len(content)), 2):
            path.chmod(0o644)
            path.write_bytes(content[:at] + bytes([content[at] ^ 1 << draw.randrange(8)]) + content[at + 1 :])
            assert verify_run(folder).problems or held(path) == before, (path, at)
        path.write_bytes(content)
    assert verify_run(folder).problems == ()


def held(path: Path) -> object:
    """What a file says: all rows of a database, else its text."""
    if path.suffix != ".db":
        return path.read_bytes() if "refs" not in path.parts else path.read_bytes().lower()  # as git reads ids
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)) as db:
            tables = [name for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            return [db.execute(f"SELECT * FROM {name}").fetchall() for name in tables]
    except (sqlite3.Error, UnicodeError):
        return None


def test_a_run_that_began_with_what_another_learned_replays_without_the_other(moved: Path, troupe: Troupe) -> None:
    """Its attempt did not run at first and was mended."""
    with RunStore.open(moved / "later", write=False) as store:
        inherited = store.stage(0, "inherit", Inherited)
        assert inherited is not None and len(inherited.taken) == 2
        recalled = store.stage(1, "recall", Recalled)
        assert recalled is not None and recalled.attempts
    shutil.rmtree(moved / "first")
    for k in (0, 1):
        found = replay(moved / "later", k, Order(data=moved))
        assert found.differences == ()
    assert {"smoke", "revise-1", "smoke-1"} <= set(found.stages)
    assert troupe.endpoint.requests == []
