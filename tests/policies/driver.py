"""Runs a policy in process by the rule of the transport: nothing behind a question until it is settled."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from policies.contract import Answer, Query, Refused, Window

Serve = Callable[[Any], Any]


def drive(result: Any, serve: Serve) -> Any:
    """The value of a plain or generator method; refusals are thrown in, or stand in a list."""
    if not inspect.isgenerator(result):
        return result
    try:
        asked = next(result)
        while True:
            if isinstance(asked, list):
                asked = result.send([serve(one) for one in asked])
                continue
            reply = serve(asked)
            asked = result.throw(reply) if isinstance(reply, Refused) else result.send(reply)
    except StopIteration as stop:
        return stop.value


def run(
    policy: Any, windows: Sequence[Window], queries: Sequence[Query], serve: Serve, batch: int = 64
) -> dict[str, Answer]:
    """Answers by query id; each question is put once exactly the windows with end <= t_q were observed."""
    answers: dict[str, Answer] = {}
    seen = 0
    for query in sorted(queries, key=lambda q: (q.time, q.id)):
        while seen < len(windows) and windows[seen].end <= query.time:
            last = seen
            while last < len(windows) and last - seen < batch and windows[last].end <= query.time:
                last += 1
            drive(policy.observe(tuple(windows[seen:last])), serve)
            drive(policy.settle(), serve)
            seen = last
        answers[query.id] = drive(policy.answer(query), serve)
    return answers
