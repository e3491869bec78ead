"""``replies.db``: every model call of a run, its intent written before it is sent, its reply after.

A received reply is never bought again; a call whose reply did not come is booked at its reservation. What the
run spent is the sum over this file. One process writes it at a time.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.display import visible
from harness.errors import UserError
from harness.models.identity import digest_of
from harness.models.interface import Role, Usage
from harness.models.quirks import Learned
from harness.models.vectors import StoredVector, places, sealed

REPLIES = "replies.db"
"""The file's name in a run's folder."""
VERSION = 1
TABLES = """
CREATE TABLE calls (
    id INTEGER PRIMARY KEY,
    role TEXT NOT NULL, scope TEXT NOT NULL, digest TEXT NOT NULL, ordinal INTEGER NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('intent', 'reply', 'lost', 'refused')),
    model TEXT NOT NULL, endpoint TEXT NOT NULL, started REAL NOT NULL,
    requests INTEGER NOT NULL, prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL,
    reasoning_tokens INTEGER NOT NULL, cached_tokens INTEGER NOT NULL, dollars REAL NOT NULL,
    estimated INTEGER NOT NULL, seconds REAL NOT NULL,
    note TEXT NOT NULL DEFAULT '', request BLOB NOT NULL, reply BLOB, seal TEXT NOT NULL DEFAULT '',
    UNIQUE (role, scope, digest, ordinal)
);
CREATE TABLE learned (
    endpoint TEXT NOT NULL, model TEXT NOT NULL, parameter TEXT NOT NULL, remedy TEXT NOT NULL,
    message TEXT NOT NULL, at REAL NOT NULL,
    UNIQUE (endpoint, model, parameter, remedy)
);
"""
VECTORS = """
CREATE TABLE IF NOT EXISTS vectors (
    digest TEXT PRIMARY KEY, vector BLOB NOT NULL, prompt_tokens INTEGER NOT NULL, dollars REAL NOT NULL,
    estimated INTEGER NOT NULL, seconds REAL NOT NULL
);
"""
COSTS = "requests, prompt_tokens, completion_tokens, reasoning_tokens, cached_tokens, dollars, estimated"
Booked = dict[Role, tuple[Usage, float]]
"""Usage and seconds by role."""


@dataclass(frozen=True, slots=True)
class CallRecord:
    """One call as stored. The costs of ``intent`` and ``lost`` are the reservation's; of ``refused``, nothing."""

    role: Role
    scope: str
    ordinal: int
    state: str
    """``intent`` (being sent), ``reply``, ``lost`` or ``refused``."""
    model: str
    endpoint: str
    usage: Usage
    seconds: float
    note: str
    """Why it was lost or refused."""
    request: Mapping[str, Any]
    reply: Mapping[str, Any] | None


class ReplyStore:
    """The writing side. Thread-safe. Any method raises UserError where the file or the disk fails."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """Open or create ``path``; intents that an earlier process left behind become lost calls."""
        self._path, self._now = path, now
        self._lock = threading.RLock()
        if path.exists() and path.stat().st_size:
            with open_read_only(path):
                pass  # checked before anything is written to it
        with _clear_errors(path):
            self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10)
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                self._db.execute("PRAGMA synchronous = FULL")
                if not self._db.execute("PRAGMA user_version").fetchone()[0]:
                    self._db.executescript(f"BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {VERSION}; COMMIT;")
                self._db.executescript(VECTORS)
                if "seal" not in _columns(self._db):  # a file of before there were seals
                    self._db.execute("ALTER TABLE calls ADD COLUMN seal TEXT NOT NULL DEFAULT ''")
                self._db.execute("UPDATE calls SET state = 'lost', note = 'interrupted' WHERE state = 'intent'")
            except sqlite3.Error:
                self._db.close()
                raise

    def find(self, role: Role, scope: str, digest: str) -> CallRecord | None:
        """The stored reply to this request, if one was received."""
        where = "WHERE role = ? AND scope = ? AND digest = ? AND state = 'reply' ORDER BY ordinal LIMIT 1"
        with self._lock, _clear_errors(self._path):
            return next(_records(self._db, where, (role, scope, digest)), None)

    def refusal(self, role: Role, scope: str, digest: str) -> str | None:
        """Why the endpoint refused this request, where it did."""
        where = "WHERE role = ? AND scope = ? AND digest = ? AND state = 'refused' ORDER BY ordinal DESC LIMIT 1"
        with self._lock, _clear_errors(self._path):
            found = next(_records(self._db, where, (role, scope, digest)), None)
        return None if found is None else found.note

    def intend(
        self, role: Role, scope: str, digest: str, to: tuple[str, str], request: Any, worst: Usage, seconds: float
    ) -> int:
        """Write that a call is about to be sent to ``to`` (model, endpoint), at its reservation; returns its row."""
        with self._lock, _clear_errors(self._path):
            row = self._db.execute(
                f"INSERT INTO calls (role, scope, digest, ordinal, state, model, endpoint, started, {COSTS}, seconds,"
                " request) SELECT ?, ?, ?, coalesce(max(ordinal) + 1, 0), 'intent', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
                " FROM calls WHERE role = ? AND scope = ? AND digest = ?",
                (role, scope, digest, *to, self._now(), *_costs(worst), seconds, _pack(request), role, scope, digest),
            ).lastrowid
            assert row is not None
            return row

    def store(self, row: int, usage: Usage, seconds: float, reply: Mapping[str, Any]) -> None:
        """Write the reply and what it came to."""
        self._finish(row, "reply", usage, seconds, "", _pack(reply))

    def store_vectors(self, row: int, usage: Usage, seconds: float, vectors: Mapping[str, StoredVector]) -> None:
        """Write the vectors of one call by their digests, and what it came to, together."""
        rows = [(digest, v.vector, v.prompt_tokens, v.dollars, v.estimated, v.seconds) for digest, v in vectors.items()]
        with self._lock, _clear_errors(self._path):
            self._db.execute("BEGIN IMMEDIATE")
            try:
                self._db.executemany("INSERT OR IGNORE INTO vectors VALUES (?, ?, ?, ?, ?, ?)", rows)
                self.store(row, usage, seconds, {"vectors": len(rows), "sha256": sealed(vectors)})
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def vectors(self, digests: Iterable[str]) -> dict[str, StoredVector]:
        """Those of ``digests`` that are stored."""
        columns = "vector, prompt_tokens, dollars, estimated, seconds"
        found = {}
        with self._lock, _clear_errors(self._path):
            for digest in digests:
                row = self._db.execute(f"SELECT {columns} FROM vectors WHERE digest = ?", (digest,)).fetchone()
                if row is not None:
                    vector, tokens, dollars, estimated, seconds = row
                    found[digest] = StoredVector(vector, tokens, dollars, bool(estimated), seconds)
        return found

    def lost(self, row: int, worst: Usage, seconds: float, note: str) -> None:
        """The call was sent and no usable reply came: it stays booked at ``worst``."""
        self._finish(row, "lost", worst, seconds, note, None)

    def refused(self, row: int, seconds: float, note: str) -> None:
        """The endpoint refused the call or was not reached: nothing was bought."""
        self._finish(row, "refused", Usage(), seconds, note, None)

    def _finish(self, row: int, state: str, usage: Usage, seconds: float, note: str, reply: bytes | None) -> None:
        assignments = ", ".join(f"{column} = ?" for column in COSTS.split(", "))
        with self._lock, _clear_errors(self._path):
            self._db.execute(
                f"UPDATE calls SET state = ?, {assignments}, seconds = ?, note = ?, reply = ?, seal = ? WHERE id = ?",
                (state, *_costs(usage), seconds, note, reply, _seal(state, _costs(usage), note, reply), row),
            )

    def booked(self) -> Booked:
        """What the run came to so far."""
        with self._lock, _clear_errors(self._path):
            return booked(self._db)

    def learned(self, endpoint: str, model: str) -> tuple[Learned, ...]:
        """Parameters that this model at this endpoint is known to refuse."""
        with self._lock, _clear_errors(self._path):
            return tuple(fact for where, fact in learned(self._db) if where == (endpoint, model))

    def learn(self, endpoint: str, model: str, fact: Learned) -> None:
        """Record a refused parameter; a second record of the same is ignored."""
        with self._lock, _clear_errors(self._path):
            values = (endpoint, model, fact.parameter, fact.remedy, fact.message, self._now())
            self._db.execute("INSERT OR IGNORE INTO learned VALUES (?, ?, ?, ?, ?, ?)", values)

    def close(self) -> None:
        """Close the file; its write-ahead log is folded in."""
        with self._lock, _clear_errors(self._path):
            self._db.close()


# ---------------------------------------------------------------- reading


@contextmanager
def open_read_only(path: Path) -> Iterator[sqlite3.Connection]:
    """A checked connection for reading that neither creates nor changes a file beside ``path``.

    A write-ahead log can only be read with a shared-memory file beside it, so with one, a copy is read.
    Raises UserError: missing, corrupt, or of another version.
    """
    log = path.with_name(path.name + "-wal")
    with _clear_errors(path), tempfile.TemporaryDirectory() as scratch:
        if not path.is_file():
            raise UserError(f"{path}: there is no such file")
        address = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        if log.exists() and log.stat().st_size:
            copy = Path(scratch, REPLIES)
            shutil.copyfile(path, copy)
            shutil.copyfile(log, f"{copy}-wal")
            address = copy.as_uri()
        with closing(sqlite3.connect(address, uri=True, isolation_level=None)) as db:
            if (verdict := db.execute("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
                raise sqlite3.DatabaseError(verdict)
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version not in (0, VERSION):
                raise UserError(f"{path}: is of version {version}, this program reads version {VERSION}")
            yield db


def read_booked(path: Path) -> Booked:
    """What a run came to, from its file; nothing is created. A run without the file spent nothing."""
    if not path.exists():
        return {}
    with open_read_only(path) as db:
        return booked(db)


def read_learned(path: Path) -> tuple[tuple[tuple[str, str], Learned], ...]:
    """((endpoint, model), fact) of every refused parameter that a run met."""
    if not path.exists():
        return ()
    with open_read_only(path) as db:
        return tuple(learned(db))


def read_calls(path: Path, scope: str = "") -> tuple[CallRecord, ...]:
    """All calls whose scope begins with ``scope``, in the order in which they were sent."""
    if not path.exists():
        return ()
    with open_read_only(path) as db:
        return tuple(_records(db, "WHERE substr(scope, 1, ?) = ? ORDER BY id", (len(scope), scope)))


def copy_replies(source: Path, target: Path, scopes: Iterable[str]) -> None:
    """A store at ``target`` with the calls of ``source`` whose scope begins with one of ``scopes``, and all vectors.

    A source that is not there is an empty one. Raises UserError.
    """
    ReplyStore(target).close()
    if not source.exists():
        return
    with open_read_only(source) as old, _clear_errors(target), closing(sqlite3.connect(target)) as new:
        columns = _columns(old)
        for scope in scopes if columns else ():
            listed, marks = ", ".join(columns), ", ".join("?" * len(columns))
            rows = old.execute(f"SELECT {listed} FROM calls WHERE substr(scope, 1, ?) = ?", (len(scope), scope))
            new.executemany(f"INSERT INTO calls ({listed}) VALUES ({marks})", rows)
        if _columns(old, "vectors"):
            new.executemany("INSERT INTO vectors VALUES (?, ?, ?, ?, ?, ?)", old.execute("SELECT * FROM vectors"))
        new.commit()


def checked_calls(path: Path) -> Iterator[tuple[Usage, str]]:
    """What each call is booked at, in the order sent, and one line on what is wrong with its record, else empty.

    Raises UserError where the file cannot be read at all. A run without the file made no call.
    """
    if not path.exists():
        return
    with open_read_only(path) as db:
        if not _has_tables(db):
            return
        seal = "seal" if "seal" in _columns(db) else "''"
        columns = f"role, scope, ordinal, digest, state, note, request, reply, {seal}, {COSTS}"
        for row in db.execute(f"SELECT {columns} FROM calls ORDER BY id"):
            role, scope, ordinal, digest, state, note, request, reply, seal, *costs = row
            problem = _problem(db, digest, request, reply)
            if seal and seal != _seal(state, costs, note, reply):
                problem = problem or "is not what was written"
            yield _usage(costs), f"the {role}'s call {ordinal} at {scope} {problem}" if problem else ""


def _problem(db: sqlite3.Connection, digest: str, request: bytes, reply: bytes | None) -> str:
    try:
        asked, said = _unpack(request), None if reply is None else _unpack(reply)
        if digest_of(asked["model"], asked) != digest:
            return "holds another request than its key names"
        if said and "sha256" in said:
            stored = "SELECT vector, prompt_tokens, dollars, estimated, seconds FROM vectors WHERE digest = ?"
            rows = {d: db.execute(stored, (d,)).fetchone() for d in places(asked["model"], tuple(asked["texts"]))}
            if None in rows.values() or sealed({d: StoredVector(*row) for d, row in rows.items()}) != said["sha256"]:
                return "has vectors that are not what was written"
    except (sqlite3.DatabaseError, KeyError, TypeError, AttributeError):
        return "is damaged"
    return ""


def booked(db: sqlite3.Connection) -> Booked:
    """Sums by role."""
    if not _has_tables(db):
        return {}
    sums = ", ".join(f"sum({column})" for column in COSTS.split(", "))
    rows = db.execute(f"SELECT role, sum(seconds), {sums} FROM calls GROUP BY role")
    return {Role(role): (_usage(costs), seconds) for role, seconds, *costs in rows}


def learned(db: sqlite3.Connection) -> Iterator[tuple[tuple[str, str], Learned]]:
    """Every refused parameter, oldest first."""
    if _has_tables(db):
        for endpoint, model, *fact in db.execute(
            "SELECT endpoint, model, parameter, remedy, message FROM learned ORDER BY at"
        ):
            yield (endpoint, model), Learned(*fact)


def _has_tables(db: sqlite3.Connection) -> bool:
    """A process killed while it made the file leaves an empty one."""
    return bool(db.execute("PRAGMA user_version").fetchone()[0])


def _columns(db: sqlite3.Connection, table: str = "calls") -> list[str]:
    """Names of a table's columns; none where there is no such table."""
    return [row[1] for row in db.execute(f"PRAGMA table_info({table})")]


def _records(db: sqlite3.Connection, where: str, values: tuple[object, ...]) -> Iterator[CallRecord]:
    if not _has_tables(db):
        return
    columns = f"role, scope, ordinal, state, model, endpoint, seconds, note, request, reply, {COSTS}"
    for row in db.execute(f"SELECT {columns} FROM calls {where}", values):
        role, scope, ordinal, state, model, endpoint, seconds, note, request, reply, *costs = row
        usage = _usage(costs)
        sent, received = _unpack(request), None if reply is None else _unpack(reply)
        yield CallRecord(Role(role), scope, ordinal, state, model, endpoint, usage, seconds, note, sent, received)


# ---------------------------------------------------------------- values


def _costs(usage: Usage) -> tuple[float, ...]:
    return (
        usage.requests,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.reasoning_tokens,
        usage.cached_tokens,
        usage.dollars,
        int(usage.estimated),
    )


def _usage(costs: list[Any]) -> Usage:
    requests, prompt, completion, reasoning, cached, dollars, estimated = costs
    return Usage(requests, prompt, completion, reasoning, cached, dollars, bool(estimated))


def _seal(state: str, costs: Iterable[float], note: str, reply: bytes | None) -> str:
    """Digest of how a call ended, so that a changed figure or reply is seen."""
    ended = json.dumps([state, *map(float, costs), note]).encode() + b"\n" + (reply or b"")
    return hashlib.sha256(ended).hexdigest()


def _pack(value: Any) -> bytes:
    return zlib.compress(json.dumps(value).encode(), 3)


def _unpack(blob: bytes) -> Any:
    try:
        return json.loads(zlib.decompress(blob))
    except (zlib.error, ValueError):
        raise sqlite3.DatabaseError("a stored request or reply is damaged") from None


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    """SQLite's and the disk's errors as one line."""
    try:
        yield
    except sqlite3.Error as error:
        reason = visible(str(error), 200)
        if "locked" in reason:
            advice = "another process is writing it; wait for it or stop it"
        elif "full" in reason:
            advice = "free some space and run again; nothing that was bought is lost"
        elif "readonly" in reason or "unable to open" in reason:
            advice = "check that the run folder exists and can be written"
        else:
            advice = "the file is damaged; restore it from a copy, or move it away (its replies would be bought again)"
        raise UserError(f"{path}: {reason}; {advice}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from None
