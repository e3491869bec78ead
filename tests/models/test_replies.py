"""The reply store: intents before replies, nothing bought twice, read without a trace."""

import hashlib
import os
import sqlite3
from typing import Any

import pytest

from harness.errors import UserError
from harness.models.interface import Role, Usage
from harness.models.quirks import Learned
from harness.models.replies import ReplyStore, open_read_only, read_booked, read_calls, read_learned

WORST = Usage(1, 100, 50, dollars=0.5, estimated=True)
REAL = Usage(1, 90, 5, 3, 40, 0.125)
TO = ("m", "http://127.0.0.1/v1")


def intend(store: Any, scope: Any = "0001/propose/0", digest: Any = "d", role: Any = Role.RESEARCHER) -> Any:
    return store.intend(role, scope, digest, TO, {"q": 1}, WORST, 60.0)


def snapshot(folder: Any) -> Any:
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(folder.iterdir())}


@pytest.fixture
def path(tmp_path: Any) -> Any:
    return tmp_path / "replies.db"


@pytest.fixture
def store(path: Any) -> Any:
    opened = ReplyStore(path, now=lambda: 1000.0)
    yield opened
    opened.close()


def test_a_reply_is_found_again_under_its_key_only(store: Any) -> None:
    assert store.find(Role.RESEARCHER, "0001/propose/0", "d") is None
    store.store(intend(store), REAL, 2.5, {"text": "hi"})
    record = store.find(Role.RESEARCHER, "0001/propose/0", "d")
    assert record is not None
    assert (record.reply, record.usage, record.seconds, record.state) == ({"text": "hi"}, REAL, 2.5, "reply")
    assert record.request == {"q": 1}
    assert store.find(Role.REVIEWER, "0001/propose/0", "d") is None
    assert store.find(Role.RESEARCHER, "0002/propose/0", "d") is None
    assert store.find(Role.RESEARCHER, "0001/propose/0", "e") is None


def test_spend_is_the_sum_over_the_store(store: Any, path: Any) -> None:
    store.store(intend(store), REAL, 2.0, {})
    store.lost(intend(store, digest="e"), WORST, 3.0, "time-out")
    store.refused(intend(store, digest="f"), 1.0, "status 400")
    intend(store, role=Role.REVIEWER)
    expected = {Role.RESEARCHER: (REAL + WORST, 6.0), Role.REVIEWER: (WORST, 60.0)}
    assert store.booked() == expected
    assert read_booked(path) == expected


def test_attempts_are_numbered(store: Any, path: Any) -> None:
    store.lost(intend(store), WORST, 1, "a")
    store.lost(intend(store), WORST, 1, "b")
    store.store(intend(store), REAL, 1, {"text": "c"})
    intend(store, scope="0002/review/0")
    assert [(c.ordinal, c.state, c.note) for c in read_calls(path, "0001/")] == [
        (0, "lost", "a"),
        (1, "lost", "b"),
        (2, "reply", ""),
    ]
    assert [c.scope for c in read_calls(path)][-1] == "0002/review/0"


def test_an_intent_of_an_earlier_process_is_lost_at_its_reservation(path: Any) -> None:
    first = ReplyStore(path)
    intend(first)
    first.close()
    second = ReplyStore(path)
    assert second.booked() == {Role.RESEARCHER: (WORST, 60.0)}
    assert [(c.state, c.note) for c in read_calls(path)] == [("lost", "interrupted")]
    second.store(intend(second), REAL, 1, {"text": "x"})
    assert [c.ordinal for c in read_calls(path)] == [0, 1]
    second.close()


def test_a_quirk_is_recorded_once(store: Any, path: Any) -> None:
    fact = Learned("seed", "left out", "Unsupported parameter: 'seed'")
    store.learn("http://x/v1", "m", fact)
    store.learn("http://x/v1", "m", fact)
    assert store.learned("http://x/v1", "m") == (fact,)
    assert store.learned("http://y/v1", "m") == ()
    assert read_learned(path) == ((("http://x/v1", "m"), fact),)


def test_every_commit_reaches_the_disk(store: Any) -> None:
    assert store._db.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert store._db.execute("PRAGMA synchronous").fetchone() == (2,)


def test_reading_creates_and_changes_nothing(store: Any, path: Any) -> None:
    store.store(intend(store), REAL, 1, {})
    live = snapshot(path.parent)  # with a write-ahead log, as after a kill
    assert "replies.db-wal" in live
    assert read_booked(path)[Role.RESEARCHER][0] == REAL
    assert snapshot(path.parent) == live
    store.close()
    closed = snapshot(path.parent)
    assert list(closed) == ["replies.db"]
    assert read_booked(path)[Role.RESEARCHER][0] == REAL
    assert len(read_calls(path)) == 1
    assert snapshot(path.parent) == closed


def test_no_file_is_no_spend_and_no_file(path: Any) -> None:
    assert (read_booked(path), read_learned(path), read_calls(path)) == ({}, (), ())
    assert not path.exists()


@pytest.mark.parametrize("damage", ["garbage", "page", "version"])
def test_a_damaged_file_is_one_line_and_stays_as_it_is(path: Any, damage: Any) -> None:
    store = ReplyStore(path)
    for number in range(200):
        store.store(intend(store, digest=str(number)), REAL, 1, {"text": os.urandom(500).hex()})
    store.close()
    if damage == "version":
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA user_version = 99")
        db.close()
    else:
        data = bytearray(path.read_bytes())
        at = 0 if damage == "garbage" else 4096
        data[at : at + 4096] = b"\xa5" * 4096
        path.write_bytes(data)
    before = snapshot(path.parent)
    for attempt in (lambda: ReplyStore(path), lambda: read_booked(path)):
        with pytest.raises(UserError) as caught:
            attempt()
        assert str(path) in str(caught.value)
        assert "\n" not in str(caught.value)
    assert snapshot(path.parent) == before


def test_an_empty_file_left_by_a_kill_is_taken_over(path: Any) -> None:
    path.touch()
    assert read_booked(path) == {}
    ReplyStore(path).close()
    with open_read_only(path) as db:
        assert db.execute("SELECT count(*) FROM calls").fetchone() == (0,)


def test_no_folder_is_one_line(tmp_path: Any) -> None:
    with pytest.raises(UserError, match="check that the run folder exists"):
        ReplyStore(tmp_path / "none" / "replies.db")


def test_a_full_disk_is_one_line(path: Any) -> None:
    store = ReplyStore(path)
    pages = store._db.execute("PRAGMA page_count").fetchone()[0]
    store._db.execute(f"PRAGMA max_page_count = {pages + 1}")
    with pytest.raises(UserError, match="free some space"):
        for number in range(100):
            store.store(intend(store, digest=str(number)), REAL, 1, {"text": os.urandom(4000).hex()})
    store.close()
