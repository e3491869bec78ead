"""Answering without an answer model: the lexical reader and, over frames, the pixel reader.

Tokens are counted and replies remembered as if a model had been asked.
"""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Sequence

from harness.evaluation.outcomes import Cost
from harness.evaluation.prompts import render_read
from harness.models.counting import count_tokens
from harness.models.pixels import look
from harness.models.reader import LexicalReader
from policies.contract import Read, ReadReply

REMEMBERED = 65_536
"""Replies kept, by digest of the request. A candidate that changes one route repeats most Reads of its parent."""

MAINTAIN = re.compile(r"\bCurrent text answer is ([A-J])\b")
"""The source's own words to a model that verifies an answer by frames: it keeps that answer unless they refute it."""


class OfflineAnswers:
    """Serves ``Read`` where no answer model is configured. Safe to share between threads.

    The reader is a function of the request alone, so a remembered reply is the reply; like a stored reply of a
    model it costs what it cost when it was made.
    """

    def __init__(self, clock: Callable[[], float] = time.perf_counter) -> None:
        self._reader = LexicalReader()
        self._clock = clock
        self._known: dict[str, tuple[ReadReply, Cost]] = {}

    def answer(self, read: Read, digest: str, images: Sequence[bytes] = ()) -> tuple[ReadReply, Cost]:
        """Reply and cost; ``images`` are the frames that ``read`` refers to, as PNG or JPEG bytes.

        The tokens are those of the prompt that a model would have been sent, without its images.
        """
        key = "/".join([digest, *(hashlib.sha256(image).hexdigest() for image in images)])
        known = self._known.get(key)
        if known is not None:
            return known
        started = self._clock()
        reply = self._seen(read, images) or self._reader.read(read)
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
        self._known[key] = reply, cost
        return reply, cost

    def _seen(self, read: Read, images: Sequence[bytes]) -> ReadReply | None:
        """What the frames show, else the answer that was to be maintained; None where there is neither."""
        if not images:
            return None
        told = MAINTAIN.search(read.instructions)
        letter = look(read.question, read.choices, images) or (told[1] if told else None)
        return ReadReply(letter, letter) if letter is not None and letter in read.choices else None
