"""Read over HTTP: any number of choices, whatever the model says, is the right letter or none."""

from __future__ import annotations

from typing import Any

import pytest

from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.services import Services
from policies.contract import Budget, Query, Read, ReadReply
from tests.endpoint import endpoint, models

__all__ = ["endpoint", "models"]

LETTERS = "ABCDEFGHIJ"


def read(models: Any, choices: dict[str, str], scope: str = "0001") -> ReadReply:
    """Through the host's services; replies are stored by scope."""
    query = Query("q", "EventRecall", "What did Ann take?", choices, 100.0)
    host = Services(models, OfflineAnswers(), Budget(), "v1", 2, scope)
    reply = host.serve(Read(query.question, choices, "Ann takes it."), query)
    assert isinstance(reply, ReadReply), reply
    assert host.failure is None and host.questions["q"].unparsed == (reply.choice is None)
    return reply


@pytest.mark.parametrize("count", [2, 3, 5, 10])
@pytest.mark.parametrize("said", ['{"answer": "%s"}', "Based on the evidence, %s", "The answer is (%s).", "**%s**"])
def test_every_letter_of_the_question(endpoint: Any, models: Any, count: int, said: str) -> None:
    choices = {letter: f"thing {letter}{letter}" for letter in LETTERS[:count]}
    for letter in ("A", LETTERS[count - 1]):
        endpoint.say = lambda body, letter=letter: said % letter
        assert read(models, choices, letter).choice == letter
    prompt = endpoint.requests[-1]["messages"]
    assert f"one of {', '.join(choices)}." in prompt[0]["content"]
    assert all(f"\n{letter}. thing" in prompt[1]["content"] for letter in choices)


@pytest.mark.parametrize("said", ["", "A or B", "The answer is C.", "I am not sure", "A mug", "same", "x" * 10_000_000])
def test_none_where_it_would_be_a_guess(endpoint: Any, models: Any, said: str) -> None:
    """Also where two choices are the same, and a third letter is none of the question's."""
    endpoint.say = lambda body: said
    assert read(models, {"A": "same", "B": "Same"}).choice is None


def test_ten_megabytes_with_an_answer_at_their_end(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: "I look again. " * 700_000 + "\nThe answer is B."
    assert read(models, {"A": "x", "B": "y"}).choice == "B"
