"""Run a bundle over a shard: the stream with its barriers, and what becomes of each question.

Before a question at t_q exactly the windows with ``end <= t_q`` were sent, and nothing is written behind it until
it is settled: causality is a fact of the transport.
"""

from __future__ import annotations

import contextlib
import itertools
import time
from collections.abc import Iterator

from policies.contract import Query, Setup
from sandbox import wire
from sandbox.interface import (
    Bundle,
    Channel,
    Ending,
    Host,
    QuestionOutcome,
    Sandbox,
    SandboxError,
    Shard,
    ShardOutcome,
    Verdict,
)
from sandbox.session import Failure, Session
from sandbox.text import one_line

MAX_RESTARTS = 5
"""Fresh containers after failures other than time-outs (which ``Limits.timeouts`` bounds)."""
MAX_SANDBOX_FAILURES = 2
_SETTLE = wire.encode({"kind": "settle"})


def run_shard(sandbox: Sandbox, bundle: Bundle, shard: Shard, setup: Setup, host: Host) -> ShardOutcome:
    """Every question of the shard gets exactly one outcome, in the shard's order.

    A question that hangs or breaks the protocol costs its container; the stream then starts again in a fresh one. A
    failure in the constructor, in ``observe`` or in ``settle`` costs all later questions. Raises BundleError where
    the bundle is not what its digest says, ValueError where the shard is out of order.
    """
    return _Stream(sandbox, bundle, shard, setup, host).run()


class _Stream:
    def __init__(self, sandbox: Sandbox, bundle: Bundle, shard: Shard, setup: Setup, host: Host) -> None:
        _check_order(shard)
        self._sandbox = sandbox
        self._bundle = bundle
        self._shard = shard
        self._setup = setup
        self._host = host
        self._deadline = time.monotonic() + sandbox.limits.shard_seconds
        self._outcomes: list[QuestionOutcome] = []
        self._log = ""
        self._observe_seconds = 0.0
        self._restarts = 0
        self._timeouts = 0
        self._breaks = 0
        self._sandbox_failures = 0

    def run(self) -> ShardOutcome:
        while self._remaining():
            try:
                session = self._session(self._sandbox.open())
            except SandboxError as error:
                self._sandbox_failed(str(error))
                continue
            try:
                self._follow(session)
            except Failure as failure:
                self._deadline += session.served_seconds
                self._judge(failure, self._ended(session, failure), session.questions)
            except BaseException:
                session.close()
                raise
            else:
                self._keep(session.retire())
        return ShardOutcome(
            self._shard.key,
            tuple(self._outcomes),
            self._sandbox.runtime_digest,
            self._sandbox.label,
            self._log,
            self._observe_seconds,
            self._restarts,
        )

    def _remaining(self) -> tuple[Query, ...]:
        return self._shard.queries[len(self._outcomes) :]

    # ------------------------------------------------------------ one container

    def _session(self, channel: Channel) -> Session:
        return Session(channel, self._sandbox.limits, self._host, self._deadline)

    def _follow(self, session: Session) -> None:
        """The stream up to the last question, from its start."""
        session.start(self._bundle, self._setup)
        windows = self._shard.windows
        sent = 0
        for query in self._remaining():
            upto = sent
            while upto < len(windows) and windows[upto].end <= query.time:
                upto += 1
            session.saw(windows[sent:upto])
            self._observe_seconds += session.feed(list(self._commands(sent, upto)))
            sent = upto
            self._outcomes.append(self._ask(session, query, sent))

    def _ask(self, session: Session, query: Query, sent: int) -> QuestionOutcome:
        """Put the question; ``sent`` windows went before it, and no more will until it is settled."""
        return session.ask(query)

    def _commands(self, first: int, last: int) -> Iterator[bytes]:
        """Windows ``first`` to ``last`` (exclusive) in batches, cut where a settle is due."""
        every, size = self._shard.settle_every, self._shard.batch
        while first < last:
            due = (first // every + 1) * every
            stop = min(first + size, due, last)
            batch = [wire.window_to_json(window) for window in self._shard.windows[first:stop]]
            yield wire.encode({"kind": "observe", "windows": batch})
            if stop == due:
                yield _SETTLE
            first = stop

    def _keep(self, printed: str) -> None:
        self._log += printed[: max(self._sandbox.limits.log_bytes - len(self._log), 0)]

    # ------------------------------------------------------------ what a failure costs

    def _ended(self, session: Session, failure: Failure) -> tuple[Verdict, str]:
        """Ends the container, and asks the kernel and the engine how it ended."""
        before = session.oom_kills
        oom = session.ran_out_of_memory()
        ending: Ending | None = None
        with contextlib.suppress(SandboxError):
            ending = session.close()
            self._keep(ending.log)
        return _verdict(failure, ending, oom or (before == 0 and ending is not None and ending.oom))

    def _judge(self, failure: Failure, judgement: tuple[Verdict, str], asked: int) -> None:
        """Write down what it costs; the stream then starts again for the questions that are left."""
        verdict, detail = judgement
        if verdict is Verdict.SANDBOX_ERROR:
            self._sandbox_failed(detail)
            return
        if failure.query is not None:
            seconds, served = failure.seconds, failure.served_seconds
            self._outcomes.append(QuestionOutcome(failure.query.id, verdict, None, detail, seconds, served))
        if verdict is Verdict.TIMEOUT and time.monotonic() >= self._deadline:
            self._finish(verdict, "the time for the whole shard is used up")
        elif failure.query is None and asked == 0:
            self._finish(verdict, detail)
        elif verdict is Verdict.TIMEOUT and failure.query is not None:
            self._timeouts += 1
            if self._timeouts >= self._sandbox.limits.timeouts:
                self._finish(verdict, f"the shard ended after {self._timeouts} time-outs")
        else:
            self._breaks += 1
            if self._breaks > MAX_RESTARTS:
                self._finish(verdict, detail)
        self._restarts += bool(self._remaining())

    def _sandbox_failed(self, detail: str) -> None:
        self._sandbox_failures += 1
        if self._sandbox_failures > MAX_SANDBOX_FAILURES:
            self._finish(Verdict.SANDBOX_ERROR, detail)

    def _finish(self, verdict: Verdict, detail: str) -> None:
        """Give all questions that are left the same verdict."""
        self._outcomes += [QuestionOutcome(query.id, verdict, None, one_line(detail)) for query in self._remaining()]


def _verdict(failure: Failure, ending: Ending | None, oom: bool) -> tuple[Verdict, str]:
    """The verdict on a lost channel. What the kernel or the engine says goes before what the candidate showed."""
    if failure.verdict is Verdict.TIMEOUT:
        return failure.verdict, failure.detail
    if ending is None:
        return Verdict.SANDBOX_ERROR, "the back end could not say how the container ended"
    if oom and failure.verdict in (None, Verdict.CRASH):
        return Verdict.OOM, "the kernel ended it at its memory limit"
    if failure.verdict is not None:
        return failure.verdict, failure.detail
    if ending.exit_code is None:
        return Verdict.PROTOCOL, "it closed its channel and ran on"
    if ending.exit_code < 0:
        return Verdict.SANDBOX_ERROR, f"the sandbox was ended from outside by signal {-ending.exit_code}"
    return Verdict.CRASH, f"the process ended with status {ending.exit_code}"


def _check_order(shard: Shard) -> None:
    windows, queries = shard.windows, shard.queries
    if any((a.end, a.start, a.index) >= (b.end, b.start, b.index) for a, b in itertools.pairwise(windows)):
        raise ValueError(f"shard {shard.key}: windows are not in order of (end, start, index)")
    if any((a.time, a.id) >= (b.time, b.id) for a, b in itertools.pairwise(queries)):
        raise ValueError(f"shard {shard.key}: queries are not in order of (time, id)")
