"""At a question the process, and the pipe into it, hold exactly the windows with end <= t_q.

Three spies: one prints all that it holds, one reads ahead from fd 0, one watches from the child a shared map that a
thread of the parent fills from fd 0. With the barrier switched off the last two see the future; so the barrier, and
not their weakness, is what stops them.
"""

from __future__ import annotations

import re
import time
from typing import Any

import pytest

from policies.contract import Budget, Query, Setup
from sandbox.bundle import make_bundle
from sandbox.interface import Channel, QuestionOutcome, Shard, ShardOutcome
from sandbox.session import Session
from sandbox.stream import _Stream
from tests.conftest import Laboratory, RefusingHost, make_shard, policy

HOLDER = policy(
    """
    import gc
    gc.unfreeze()  # the runner keeps what the parent made from the collector's list
    held = repr([o.captions for o in gc.get_objects() if type(o) is Window])
    held += repr([w.captions for w in self.windows]) + repr(globals())
    return Answer("A", "x", (), {"held": sorted(set(re.findall(r"caption-\\d+", held)))})
    """,
    top="import re",
)
READER = policy(
    """
    try:
        yield Embed(("now",))
    except Refused:
        pass
    os.set_blocking(0, False)
    ahead = b""
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        try:
            ahead += os.read(0, 65536)
        except BlockingIOError:
            time.sleep(0.01)
    os.set_blocking(0, True)
    held = repr([w.captions for w in self.windows]).encode() + ahead
    return Answer("A", "x", (), {"held": sorted(set(re.findall(r"caption-\\d+", held.decode(errors="replace"))))})
    """,
    top="import re",
)
WATCHER = policy(
    """
    try:
        yield Embed(("now",))
    except Refused:
        pass
    self.open.value = 1
    time.sleep(0.3)
    held = repr([w.captions for w in self.windows]).encode() + bytes(self.shared)
    return Answer("A", "x", (), {"held": sorted(set(re.findall(r"caption-\\d+", held.decode(errors="replace"))))})
    """,
    top="""
    import ctypes, mmap, re, threading
    def fill(shared, opened):
        "In the parent, which is blocked in waitpid: move what comes in at fd 0 into the shared map."
        while not opened.value:
            time.sleep(0.002)
        os.set_blocking(0, False)
        until = time.monotonic() + 0.25
        while time.monotonic() < until:
            try:
                shared.write(os.read(0, 65536))
            except BlockingIOError:
                time.sleep(0.005)
        os.set_blocking(0, True)
        opened.value = 0
        threading.Thread(target=fill, args=(shared, opened), daemon=True).start()
    """,
    init="""
    self.shared = mmap.mmap(-1, 1 << 20)
    self.flag = mmap.mmap(-1, 4096)
    self.open = ctypes.c_int.from_buffer(self.flag)
    threading.Thread(target=fill, args=(self.shared, self.open), daemon=True).start()
    """,
)


def held_at(outcome: ShardOutcome) -> list[set[int]]:
    found = []
    for question in outcome.questions:
        assert question.answer is not None, question
        held: Any = question.answer.diagnostics["held"]
        found.append({int(re.sub(r"\D", "", name)) for name in held})
    return found


def allowed(shard: Shard) -> list[set[int]]:
    return [{w.index for w in shard.windows if w.end <= query.time} for query in shard.queries]


class LeakySession(Session):
    """Writes the windows that are still to come behind the open question, as soon as it asks for something."""

    behind = b""

    def _serve(self, message: Any, query: Query | None, timer: Any) -> None:
        super()._serve(message, query, timer)
        if query is not None:
            time.sleep(0.05)
            self._channel.send(self.behind, time.monotonic() + 1)


class LeakyStream(_Stream):
    """The stream without its barrier."""

    def _session(self, channel: Channel) -> Session:
        return LeakySession(channel, self._sandbox.limits, self._host, self._deadline)

    def _ask(self, session: Session, query: Query, sent: int) -> QuestionOutcome:
        assert isinstance(session, LeakySession)
        session.behind = b"".join(self._commands(sent, len(self._shard.windows)))
        return super()._ask(session, query, sent)


def unbarred(lab: Laboratory, source: str, shard: Shard) -> ShardOutcome:
    bundle = make_bundle({"policy.py": source})
    return LeakyStream(lab.sandbox, bundle, shard, Setup(Budget(), 1), RefusingHost()).run()


@pytest.mark.parametrize("spy", [HOLDER, READER, WATCHER], ids=["holder", "reader", "watcher"])
def test_a_spy_sees_nothing_after_the_question(lab: Laboratory, spy: str) -> None:
    shard = make_shard(3, 9, settle_every=4, batch=2)
    outcome = lab.run(spy, shard)
    assert held_at(outcome) == allowed(shard)


@pytest.mark.parametrize("spy", [READER, WATCHER], ids=["reader", "watcher"])
def test_without_the_barrier_it_would(lab: Laboratory, spy: str) -> None:
    shard = make_shard(3, 9, settle_every=4, batch=2)
    outcome = unbarred(lab, spy, shard)
    first = outcome.questions[0]
    assert first.answer is not None, outcome
    assert len(first.answer.diagnostics["held"]) == 9


def test_a_question_at_the_very_end_of_a_window_sees_it(lab: Laboratory) -> None:
    shard = make_shard(4, 4)
    outcome = lab.run(policy("return Answer('A', 'x', tuple(w.index for w in self.windows))"), shard)
    assert [question.answer and question.answer.evidence for question in outcome.questions] == [
        (0,), (0, 1), (0, 1, 2), (0, 1, 2, 3),
    ]  # fmt: skip


def test_the_bundle_of_questions_asked_later_is_not_inside(lab: Laboratory) -> None:
    """A question's text comes with the question, not before."""
    shard = make_shard(3)
    body = """
    import gc
    gc.unfreeze()
    ids = sorted({o.id for o in gc.get_objects() if type(o) is Query} | {query.id})
    return Answer("A", "x", (), {"ids": ids})
    """
    outcome = lab.run(policy(body), shard)
    assert [question.answer and question.answer.diagnostics["ids"] for question in outcome.questions] == [
        ["q0"], ["q1"], ["q2"],
    ]  # fmt: skip


def test_answers_do_not_depend_on_what_was_asked_before(lab: Laboratory) -> None:
    """A subset of the questions in a fresh container gets the same answers, also from a policy that draws."""
    body = """
    self.windows.clear() if query.id == "q0" else None
    import numpy
    draw = [random.random(), float(numpy.random.rand()), hash("text"), sorted({"a", "b", "c"}) == list({"a", "b", "c"})]
    return Answer("A", "x", (), {"draw": draw, "windows": len(self.windows)})
    """
    shard = make_shard(4, 12)
    whole = lab.run(policy(body), shard)
    again = lab.run(policy(body), shard)
    part = lab.run(policy(body), Shard("part", shard.windows, shard.queries[2:]))
    assert [q.answer for q in whole.questions] == [q.answer for q in again.questions]
    assert [q.answer for q in whole.questions[2:]] == [q.answer for q in part.questions]
