"""Answering without an answer model: the lexical reader, with its tokens counted and its replies remembered."""

from __future__ import annotations

import time
from collections.abc import Callable

from harness.evaluation.outcomes import Cost
from harness.evaluation.prompts import render_read
from harness.models.counting import count_tokens
from harness.models.reader import LexicalReader
from policies.contract import Read, ReadReply

REMEMBERED = 65_536
"""Replies kept, by digest of the request. A candidate that changes one route repeats most Reads of its parent."""


class OfflineAnswers:
    """Serves ``Read`` where no answer model is configured. Safe to share between threads.

    The reader is a function of the request alone, so a remembered reply is the reply; like a stored reply of a
    model it costs what it cost when it was made.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._reader = LexicalReader()
        self._clock = clock
        self._known: dict[str, tuple[ReadReply, Cost]] = {}

    def answer(self, read: Read, digest: str) -> tuple[ReadReply, Cost]:
        """Reply and cost; the tokens are those of the prompt that a model would have been sent."""
        known = self._known.get(digest)
        if known is not None:
            return known
        started = self._clock()
        reply = self._reader.read(read)
        seconds = self._clock() - started
        cost = Cost(
            requests=1,
            prompt_tokens=sum(count_tokens(message.content) for message in render_read(read)),
            completion_tokens=count_tokens(reply.text),
            seconds=seconds,
            estimated=True,
        )
        if len(self._known) >= REMEMBERED:
            self._known.clear()
        self._known[digest] = reply, cost
        return reply, cost
