"""Requests out of all three methods: served in order, refusals as errors, time of the services not counted."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from policies.contract import (
    Build,
    BuildReply,
    Embed,
    EmbedReply,
    Frame,
    Frames,
    FramesReply,
    Generate,
    GenerateReply,
    NotPermitted,
    OverBudget,
    Query,
    Read,
    ReadReply,
    Refused,
    Reply,
    Request,
)
from tests.conftest import Laboratory, make_shard, policy


@dataclass
class FullHost:
    """Serves everything, slowly where told."""

    seconds: float = 0.0
    asked: list[tuple[Request, Query | None]] = field(default_factory=list)

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        self.asked.append((request, query))
        time.sleep(self.seconds)
        match request:
            case Build():
                return BuildReply({"echo": request.messages[0].content, "deep": [1, 2.5, None, True, {"é": "☃"}]})
            case Read():
                return NotPermitted("no question is open") if query is None else ReadReply("B", "(B)\u2028")
            case Generate():
                return OverBudget("enough\nsaid") if request.max_tokens > 100 else GenerateReply("text", [1])
            case Embed():
                return EmbedReply(2, tuple("AAA=" for _ in request.texts))
            case Frames():
                return FramesReply(tuple(Frame(f"f{t}", t) for t in request.times))


EVERYTHING = policy(
    """
    read = yield Read(query.question, query.choices, "context", "be brief", (), "verification")
    try:
        yield Generate((Message("user", "x"),), 500)
        raise AssertionError
    except OverBudget as error:
        refused = str(error)
    many = yield [Embed(("a", "b")), Generate((Message("user", "x"),), 500), Frames((1.5, 2)), Embed((3,))]
    try:
        yield Frames(("soon",))
    except BadRequest as error:
        bad = str(error)
    nothing = yield []
    return Answer(read.choice, "r", (), {
        "built": self.built, "refused": refused, "many": [type(reply).__name__ for reply in many], "bad": bad,
        "frames": [frame.time for frame in many[2].frames], "vectors": many[0].vectors, "nothing": nothing,
        "denied": self.denied,
    })
    """,
    init="self.built = []; self.denied = []",
    observe="""
    reply = yield Build((Message("system", windows[0].captions[0]),), {"type": "object"})
    self.built.append(reply.value)
    try:
        yield Read("?", {"A": "x"}, "")
    except NotPermitted as error:
        self.denied.append(str(error))
    """,
)


def test_all_requests_from_observe_and_answer(lab: Laboratory) -> None:
    host = FullHost()
    outcome = lab.run(EVERYTHING, make_shard(2, 4), host)
    answer = outcome.questions[1].answer
    assert answer is not None, outcome
    assert answer.choice == "B"
    found: Any = answer.diagnostics
    assert [value["echo"] for value in found["built"]] == ["caption-0-é", "caption-2-é"]
    assert found["built"][0]["deep"] == [1, 2.5, None, True, {"é": "☃"}]
    assert found["refused"] == "enough\nsaid"
    assert found["many"] == ["EmbedReply", "OverBudget", "FramesReply", "BadRequest"]
    assert (found["frames"], found["vectors"], found["nothing"]) == ([1.5, 2.0], ["AAA=", "AAA="], [])
    assert found["bad"] == "Frames.times: not a number"
    assert found["denied"] == ["no question is open"] * 2
    building = [query for request, query in host.asked if isinstance(request, Build)]
    reading = [query.id for request, query in host.asked if isinstance(request, Read) and query]
    assert building == [None, None]
    assert reading == ["q0", "q1"]


def test_many_requests_of_many_bytes_go_in_several_lines(lab: Laboratory) -> None:
    body = """
    replies = yield [Embed(("x" * 30_000,)) for _ in range(150)]
    return Answer("A", "x", (), {"n": sum(isinstance(reply, EmbedReply) for reply in replies)})
    """
    host = FullHost()
    outcome = lab.run(policy(body), make_shard(1), host)
    assert outcome.questions[0].answer is not None, outcome
    assert outcome.questions[0].answer.diagnostics == {"n": 150}


def test_a_request_over_its_limit_is_refused_inside(lab: Laboratory) -> None:
    body = """
    try:
        yield Embed(("x" * 1_100_000,))
    except BadRequest as error:
        return Answer("A", "x", (), {"why": str(error)})
    """
    outcome = lab.run(policy(body), make_shard(1), FullHost())
    assert outcome.questions[0].answer is not None, outcome
    assert "1048576" in outcome.questions[0].answer.diagnostics["why"]


def test_what_is_no_request_is_the_policys_error(lab: Laboratory) -> None:
    outcome = lab.run(policy("yield 'please'"), make_shard(1), FullHost())
    assert outcome.questions[0].detail.startswith("TypeError: yielded str, not a request")


def test_an_uncaught_refusal_is_a_crash_with_its_name(lab: Laboratory) -> None:
    outcome = lab.run(policy("yield Generate((Message('user', 'x'),), 500)"), make_shard(1), FullHost())
    assert outcome.questions[0].verdict == "CRASH"
    assert "OverBudget: enough" in outcome.questions[0].detail


def test_time_in_the_hosts_services_is_not_the_policys(lab: Laboratory) -> None:
    """Six requests of 0.7 s under limits of 2.5 and 3.5 s, in answer and in observe."""
    body = "for _ in range(6):\n    yield Embed(('x',))\n"
    shard = make_shard(1, 2)
    outcome = lab.run(policy(f"{body}return Answer('A', 'x')", observe=body), shard, FullHost(0.7))
    question = outcome.questions[0]
    assert question.verdict == "OK", outcome
    assert question.served_seconds >= 4.2
    assert question.seconds - question.served_seconds < 2.5
    assert outcome.observe_seconds < 2.5


def test_requests_without_end_are_stopped_by_the_policys_own_time(lab: Laboratory) -> None:
    outcome = lab.run(policy("while True:\n    yield Embed(('x',))"), make_shard(1), FullHost())
    assert outcome.questions[0].verdict == "TIMEOUT"


def test_settle_comes_every_n_windows_and_is_never_tied_to_questions(lab: Laboratory) -> None:
    source = policy(
        "return Answer('A', 'x', (), {'log': self.log})", init="self.log = []", observe="self.log.append(len(windows))"
    ).replace("def settle(self):\n        pass", "def settle(self):\n        self.log.append('settle')")
    one = lab.run(source, make_shard(1, 10, settle_every=4, batch=3)).questions[-1].answer
    many = lab.run(source, make_shard(5, 10, settle_every=4, batch=3)).questions[-1].answer
    assert one and one.diagnostics["log"] == [3, 1, "settle", 3, 1, "settle", 2]
    assert many and many.diagnostics["log"] == [2, 2, "settle", 2, 2, "settle", 2]


def test_own_modules_by_relative_absolute_and_bare_name_and_data(lab: Laboratory) -> None:
    files = {
        "policy.py": """
import json, pkgutil
from policies.contract import Answer
from . import helper
from candidate.helper import VALUE
import helper as same
from .json import loads
class Policy:
    def __init__(self, setup): pass
    def observe(self, windows): pass
    def settle(self): pass
    def answer(self, query):
        data = json.loads(pkgutil.get_data(__package__, "table.json"))
        found = {"v": VALUE, "same": same is helper, "data": data, "own": loads, "std": json.__file__}
        return Answer("A", "x", (), found)
""",
        "helper.py": "VALUE = 3",
        "json.py": "loads = 'own'",
        "random.py": "raise AssertionError('shadowed')",
        "table.json": '{"k": [1]}',
    }
    answer = lab.run(files, make_shard(1)).questions[0].answer
    assert answer is not None
    found = dict(answer.diagnostics)
    assert "json/__init__.py" in found.pop("std")
    assert found == {"v": 3, "same": True, "data": {"k": [1]}, "own": "own"}


def test_numpy_scalars_are_sent_as_numbers(lab: Laboratory) -> None:
    body = """
    import numpy
    return Answer("A", "x", (numpy.int64(1),), {"f": numpy.float32(0.5), "i": numpy.int32(3), "b": numpy.bool_(True)})
    """
    answer = lab.run(policy(body), make_shard(1)).questions[0].answer
    assert answer is not None
    assert (answer.evidence, dict(answer.diagnostics)) == ((1,), {"f": 0.5, "i": 3, "b": True})
