"""Over the real stream, 4,455 windows and 405 questions: nobody sees a window that ends after the question.

Three spies: one returns all that it holds, one reads ahead from fd 0 in its child, and one whose child watches a
shared map that the parent goes on filling in ``observe``. Each sees exactly the windows with end <= t_q. With the
barrier switched off the last two see later ones; so it is the barrier that stops them.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.data.native import load
from policies.contract import Budget, Query, Setup
from sandbox.bundle import make_bundle
from sandbox.interface import QuestionOutcome, Shard, ShardOutcome
from sandbox.session import Session
from sandbox.stream import _Stream
from tests.conftest import Laboratory, RefusingHost, policy
from tests.sandbox.test_causality import LeakySession, LeakyStream

pytestmark = pytest.mark.egolife

HOLDER = policy(
    """
    held, asked, number = {w.index: w.end for w in self.windows}, {query.id}, int(query.id)
    if number % 8 == 0:
        gc.unfreeze()  # the runner keeps what the parent made from the collector's list
        for thing in gc.get_objects():
            if type(thing) is Window:
                held[thing.index] = thing.end
            elif type(thing) is Query:
                asked.add(thing.id)
    unread = len(bytes(self.lines._buffer).strip(bytes(1))) + len(self.lines._waiting)
    found = {"count": len(held), "end": max(held.values()), "asked": sorted(asked), "unread": unread}
    if number % 50 == 0:
        found["memory"] = max(memory())
    return Answer("A", "x", (), found)
    """,
    init="""
    self.lines = next(thing for thing in gc.get_objects() if type(thing).__name__ == 'Lines')
    self.planted = b"[%d,1.0,%.1f,[" % (7, 0.5)  # shows that memory() finds
    """,
    top="""
    import gc, re
    WIRE = re.compile(rb"\\[[0-9]{1,9},[0-9.]{1,12},([0-9.]{1,12}),\\[")
    def memory():
        "Ends of all windows that lie in this process in the form in which they are sent, also in freed memory."
        with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", 0) as held:
            for line in maps:
                span, rights = line.split()[:2]
                if rights.startswith("rw"):
                    first, last = (int(end, 16) for end in span.split("-"))
                    held.seek(first)
                    yield from map(float, WIRE.findall(held.read(last - first)))
    """,
)
READER = policy(
    """
    ends = [w.end for w in self.windows]
    try:
        yield Embed(("now",))
    except Refused:
        pass
    ahead = bytes(self.lines._buffer).strip(bytes(1))
    ahead += b"".join(repr(message).encode() for message in self.lines._waiting)
    os.set_blocking(0, False)
    until = time.monotonic() + SPAN
    while time.monotonic() < until and not later(ahead):
        try:
            ahead += os.read(0, 65536)
        except BlockingIOError:
            time.sleep(0.002)
    os.set_blocking(0, True)
    found = {"count": len(ends), "end": max(ends + later(ahead)), "unread": len(ahead)}
    return Answer("A", "x", (), found)
    """,
    top="""
    import gc, re
    def later(ahead):
        return [float(end) for end in re.findall(rb"\\[[0-9]+,[0-9.]+,([0-9.]+),\\[", ahead)]
    """,
    init="self.lines = next(thing for thing in gc.get_objects() if type(thing).__name__ == 'Lines')",
)
WATCHER = policy(
    """
    try:
        yield Embed(("now",))
    except Refused:
        pass
    before = self.seen()
    self.flag.value = WATCH
    until = time.monotonic() + SPAN
    while time.monotonic() < until and self.seen() == before:
        time.sleep(0.002)
    self.flag.value = STOP
    while self.flag.value != IDLE:
        time.sleep(0.001)
    end, count = self.seen()
    return Answer("A", "x", (), {"count": count, "end": end})
    """,
    top="""
    import ctypes, json, mmap, struct, threading
    IDLE, WATCH, STOP = range(3)
    def go_on(policy):
        "A thread of the parent, itself blocked in waitpid: what comes in at fd 0 is observed while a child watches."
        flag = policy.flag
        while True:
            while flag.value != WATCH:
                time.sleep(0.002)
            ahead = b""
            os.set_blocking(0, False)
            while flag.value == WATCH:
                try:
                    ahead += os.read(0, 65536)
                except BlockingIOError:
                    time.sleep(0.002)
                *lines, ahead = ahead.split(b"\\n")
                for message in map(json.loads, lines):
                    if message["kind"] == "observe":
                        policy.observe([Window(*row) for row in message["windows"]])
            os.set_blocking(0, True)
            flag.value = IDLE
    """,
    init="""
    self.shared = mmap.mmap(-1, 4096)
    self.flag = ctypes.c_int.from_buffer(self.shared, 64)
    self.seen = lambda: struct.unpack_from("dq", self.shared)
    threading.Thread(target=go_on, args=(self,), daemon=True).start()
    """,
    observe="struct.pack_into('dq', self.shared, 0, max(w.end for w in self.windows), len(self.windows))",
)
SPIES = pytest.mark.parametrize("spy", [READER, WATCHER], ids=["reader", "watcher"])


@pytest.fixture(scope="module")
def stream(egolife_folder: Path) -> Shard:
    """The whole stream with every question of both splits; the query's id is its place in time."""
    data = load(egolife_folder)
    asked = [question for split in data.splits for question in data.questions(split)]
    asked.sort(key=lambda question: (question.time, question.id))
    queries = [Query(f"{n:03d}", q.type, q.question, dict(q.choices), q.time) for n, q in enumerate(asked)]
    (video,) = data.videos.values()
    assert (len(video.windows), len(queries)) == (4_455, 405)
    return Shard("egolife", video.windows, tuple(queries))


def spread(stream: Shard, step: int) -> Shard:
    """The same stream with every ``step``-th question, the first and the last among them."""
    return Shard(stream.key, stream.windows, stream.queries[::step])


def diagnostics(outcome: ShardOutcome) -> list[Mapping[str, Any]]:
    found = []
    for question in outcome.questions:
        assert question.answer is not None, question
        found.append(question.answer.diagnostics)
    assert outcome.restarts == 0
    return found


def eligible(shard: Shard) -> list[dict[str, float]]:
    """Number and latest end of the windows with end <= t_q, by question."""
    ends = [[window.end for window in shard.windows if window.end <= query.time] for query in shard.queries]
    return [{"count": len(held), "end": max(held)} for held in ends]


def test_one_that_returns_all_it_holds(lab: Laboratory, stream: Shard) -> None:
    found = diagnostics(lab.run(HOLDER, stream))
    assert len(found) == 405
    assert [{"count": held["count"], "end": held["end"]} for held in found] == eligible(stream)
    assert [held["asked"] for held in found] == [[query.id] for query in stream.queries]
    assert {held["unread"] for held in found} == {0}
    looked = [
        (held["memory"], query.time) for held, query in zip(found, stream.queries, strict=True) if "memory" in held
    ]
    assert len(looked) == 9
    assert all(0.5 <= end <= time for end, time in looked), looked


@SPIES
def test_one_that_reads_ahead_or_watches_sees_no_more(lab: Laboratory, stream: Shard, spy: str) -> None:
    shard = spread(stream, 10)
    assert len(shard.queries) == 41 and shard.queries[0] is stream.queries[0]
    found = diagnostics(lab.run(f"SPAN = 0.06\n{spy}", shard))
    assert [{"count": held["count"], "end": held["end"]} for held in found] == eligible(shard)
    assert {held.get("unread", 0) for held in found} == {0}


class FewAhead(LeakyStream):
    """The stream without its barrier; what it leaks fits into a pipe."""

    def _ask(self, session: Session, query: Query, sent: int) -> QuestionOutcome:
        assert isinstance(session, LeakySession)
        session.behind = b"".join(self._commands(sent, min(sent + 5, len(self._shard.windows))))
        return _Stream._ask(self, session, query, sent)


@SPIES
def test_without_the_barrier_they_see_later_windows(lab: Laboratory, stream: Shard, spy: str) -> None:
    shard = spread(stream, 100)
    bundle = make_bundle({"policy.py": f"SPAN = 1.0\n{spy}"})
    outcome = FewAhead(lab.sandbox, bundle, shard, Setup(Budget(), 1), RefusingHost()).run()
    later = [held["end"] > query.time for held, query in zip(diagnostics(outcome), shard.queries, strict=True)]
    assert later == [True] * 5
