"""The stream up to a question, then the question, as the sandbox's runner puts them; Read is served here."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Generator, Iterable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.evaluation.reading import check_read
from harness.export.package.modules import HERE, PACKAGE
from harness.models.reader import LexicalReader
from policies.contract import (
    Answer,
    Budget,
    Frames,
    FramesReply,
    NoModel,
    NotPermitted,
    Query,
    Read,
    ReadReply,
    Refused,
    Reply,
    Request,
    Setup,
    Utterance,
    Window,
)

SETTLE_EVERY = 64
"""Windows between two settle calls, as in the measurement."""
Reader = Callable[[Read], str | None]


def answer(windows: Iterable[Window], query: Query, read: Reader | None = None) -> Answer:
    """The policy's answer to one question about a stream.

    ``windows`` in any order; those that end after ``query.time`` (seconds, as theirs) are not shown. ``read`` serves
    the policy's Read requests with a letter of the choices, or None; left out, the deterministic lexical reader does.
    Raises what the policy raises, ValueError and TypeError for an answer that is none.
    """
    if len(query.choices) < 2:
        raise ValueError("a question needs two choices or more")
    setup = _setup()
    seen = sorted((w for w in windows if w.end <= query.time), key=lambda w: (w.end, w.start, w.index))
    server = Server(query, setup.budget, read or _lexical)
    random.seed(setup.seed)
    import_module("numpy").random.seed(setup.seed % 2**32)
    policy = import_module(f"{PACKAGE}.policy").Policy(setup)
    for first in range(0, len(seen), SETTLE_EVERY):
        batch = seen[first : first + SETTLE_EVERY]
        _drive(policy.observe(batch), server.construct)
        if len(batch) == SETTLE_EVERY:
            _drive(policy.settle(), server.construct)
    found = _drive(policy.answer(query), server.serve)
    return _checked(found, query, {window.index for window in seen}, setup.budget)


def read_windows(path: str | Path) -> list[Window]:
    """Windows from JSON Lines: ``start``, ``end``, ``captions``, ``transcript`` (``speaker``, ``text``), ``frames``.

    Times are seconds. Each gets its place in the stream (in order of end and start, from 0) as its index. Raises
    OSError, and ValueError with the line.
    """
    rows: list[tuple[float, float, tuple[str, ...], tuple[Utterance, ...], bool]] = []
    for number, line in enumerate(Path(path).read_bytes().split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            said = tuple(Utterance(str(u.get("speaker", "")), str(u["text"])) for u in row.get("transcript", ()))
            captions = tuple(str(text) for text in row.get("captions", ()))
            rows.append((float(row["start"]), float(row["end"]), captions, said, bool(row.get("frames"))))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{path}:{number}: no window ({type(error).__name__}: {error})") from None
    rows.sort(key=lambda row: (row[1], row[0]))
    return [Window(index, *row) for index, row in enumerate(rows)]


class Server:
    """Serves the requests of one question under the budget that the policy was measured with."""

    def __init__(self, query: Query, budget: Budget, read: Reader) -> None:
        self._query, self._budget, self._reader = query, budget, read
        self._reads = 0

    def construct(self, request: Request) -> Reply | Refused:
        """While no question is open."""
        if isinstance(request, Read | Frames):
            return NotPermitted(f"{type(request).__name__} is served only while a question is open")
        return NoModel(f"no model is configured for {type(request).__name__}")

    def serve(self, request: Request) -> Reply | Refused:
        """While the question is open: Read; of frames there are none; all else needs a model that is not here."""
        if isinstance(request, Frames):
            return FramesReply(())
        if not isinstance(request, Read):
            return NoModel(f"no model is configured for {type(request).__name__}")
        try:
            check_read(request, self._query, self._budget, self._reads, ())
        except Refused as refusal:
            return refusal
        self._reads += 1
        choice = self._reader(request)
        return ReadReply(choice if choice in request.choices else None, choice or "")


def _lexical(request: Read) -> str | None:
    return LexicalReader().read(request).choice


def _setup() -> Setup:
    found = json.loads((HERE / "setup.json").read_text("utf-8"))
    return Setup(Budget(**found["budget"]), found["seed"])


def _drive(outcome: Any, serve: Callable[[Any], Reply | Refused]) -> Any:
    """Run a method to its end, serving what it yields where it is a generator."""
    if not isinstance(outcome, Generator):
        return outcome
    try:
        wanted = next(outcome)
        while True:
            if isinstance(wanted, list | tuple):
                wanted = outcome.send([serve(request) for request in wanted])
            elif isinstance(reply := serve(wanted), Refused):
                wanted = outcome.throw(reply)
            else:
                wanted = outcome.send(reply)
    except StopIteration as stop:
        return stop.value


def _checked(found: Any, query: Query, seen: set[int], budget: Budget) -> Answer:
    if not isinstance(found, Answer):
        raise TypeError(f"answer() returned {type(found).__name__}, not an Answer")
    if found.choice is not None and found.choice not in query.choices:
        raise ValueError("the answer is none of the choices")
    evidence: Sequence[int] = found.evidence
    if len(evidence) > budget.evidence or not seen.issuperset(evidence):
        raise ValueError("the evidence names windows that were not seen, or too many")
    return found
