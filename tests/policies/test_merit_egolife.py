"""MERIT over the published EgoLife captions: what comes after a question changes no byte of its evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from policies.contract import Answer, Budget, NoModel, Query, Read, ReadReply, Setup, Window
from policies.merit.policy import Policy

Run = Callable[..., dict[str, Answer]]
QUESTIONS = 12
pytestmark = pytest.mark.egolife


def outcome(run: Run, windows: tuple[Window, ...], queries: tuple[Query, ...]) -> list[Any]:
    contexts: list[str] = []

    def serve(request: Any) -> Any:
        if not isinstance(request, Read):
            return NoModel("none")
        contexts.append(request.context)
        return ReadReply("A", "A")

    return [contexts, run(Policy(Setup(Budget(), 0)), windows, queries, serve)]


def test_a_poisoned_future_changes_nothing(egolife: Any, run: Run) -> None:
    queries = egolife.days(1, 2)[:QUESTIONS]
    last = queries[-1].time
    past = tuple(window for window in egolife.windows if window.end <= last)
    future = [window for window in egolife.windows if window.end > last][:200]
    said = tuple(f"{query.question} {' '.join(query.choices.values())}" for query in queries)
    poisoned = tuple(replace(window, captions=said, transcript=()) for window in future)
    base = outcome(run, past, queries)
    assert base == outcome(run, (*past, *poisoned), queries)
    assert all(len(context) <= Budget().context_chars for context in base[0])
    assert len(base[0]) == QUESTIONS and all(answer.evidence for answer in base[1].values())
    for query in queries:
        kept = tuple(window for window in past if window.end <= query.time)
        alone = outcome(run, (*kept, *(replace(w, captions=said) for w in past[len(kept) :])), (query,))
        assert alone == [[base[0][queries.index(query)]], {query.id: base[1][query.id]}]
