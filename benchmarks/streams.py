"""A pooled container's first answer, and the stream of a whole data set through one policy."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from harness.data.native import load
from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.services import Services
from harness.models.hub import offline_models
from policies import library
from policies.contract import Budget, Query, Read, ReadReply, Refused, Reply, Request, Setup
from sandbox.bundle import make_bundle
from sandbox.interface import Limits, Shard
from sandbox.open import Kind, open_sandbox
from sandbox.stream import run_shard

TRIVIAL = """\
from policies.contract import Answer, Read


class Policy:
    def __init__(self, setup):
        pass

    def observe(self, windows):
        pass

    def settle(self):
        pass

    def answer(self, query):
        reply = yield Read(query.question, query.choices, "")
        return Answer(reply.choice, "trivial")
"""


class FirstCall:
    """Answers every Read and keeps the moment of the first one."""

    def __init__(self) -> None:
        self.at = 0.0

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        self.at = self.at or time.perf_counter()
        return ReadReply("A", "")


def first_answer(sandbox: Kind, times: int = 20) -> float:
    """Median milliseconds from taking a pooled container to the first thing that its policy says.

    In between: the bundle is sent, verified and compiled, a question is put, and a child is forked for it.
    """
    box = open_sandbox(sandbox, Limits(), 2, "bench")
    try:
        bundle = make_bundle({"policy.py": TRIVIAL})
        query = Query("q", "EventRecall", "Where?", {"A": "here", "B": "there"}, 1.0)
        seconds = []
        for _ in range(times):
            time.sleep(0.8)  # the pool fills
            host = FirstCall()
            began = time.perf_counter()
            outcome = run_shard(box, bundle, Shard("v", (), (query,)), Setup(Budget(), 0), host)
            assert outcome.questions[0].verdict == "OK", outcome
            seconds.append(host.at - began)
        return 1000 * statistics.median(seconds)
    finally:
        box.close()


def stream(sandbox: Kind, folder: Path, policy: str) -> tuple[float, int, int]:
    """Seconds, windows and questions of one video's whole stream through a policy, in one pooled container.

    The questions of all splits are put in it, each at its time, and the reader is the host's own.
    """
    data = load(folder)
    asked = [question for split in data.splits for question in data.questions(split)]
    (video,) = {question.video for question in asked}
    queries = [Query(q.id, q.type, q.question, dict(q.choices), q.time) for q in asked]
    shard = Shard("bench", data.videos[video].windows, tuple(sorted(queries, key=lambda q: (q.time, q.id))))
    offline = OfflineAnswers()
    offline.answer(Read("", {"A": "", "B": ""}, ""), "")  # the token counter's table is loaded
    host = Services(offline_models(), offline, Budget(), video, len(shard.windows), "bench")
    bundle = make_bundle(library.load(policy))
    box = open_sandbox(sandbox, Limits(), 1, "bench")
    try:
        time.sleep(1.0)  # the pool fills
        began = time.perf_counter()
        outcome = run_shard(box, bundle, shard, Setup(Budget(), 0), host)
        seconds = time.perf_counter() - began
        assert {question.verdict for question in outcome.questions} == {"OK"}, outcome
        return seconds, len(shard.windows), len(outcome.questions)
    finally:
        box.close()
