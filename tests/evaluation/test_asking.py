"""One question put into a stream: nothing later is seen, the letter is the reader's, words come from a model alone."""

from collections.abc import Mapping

import pytest

from harness.data.native import Dataset
from harness.errors import UserError
from harness.evaluation.asking import Asked, ask, query_id
from harness.models.hub import ModelHub, offline_models
from harness.models.interface import Models
from policies.contract import Budget, Query, Setup
from sandbox.bundle import make_bundle
from sandbox.interface import Sandbox
from tests.conftest import policy
from tests.evaluation.conftest import ModelServer

LAST = policy(
    "reply = yield Read(query.question, query.choices, self.windows[-1].captions[0])\n"
    "again = yield Read(query.question, query.choices, 'frames', part='verification')\n"
    "return Answer(again.choice or reply.choice, 'last', (self.windows[-1].index,), {'seen': len(self.windows)})"
)
CHOICES = {"A": "nothing", "B": "thing3"}


def put(
    dataset: Dataset, sandbox: Sandbox, models: Models, time: float, choices: Mapping[str, str], text: str = LAST
) -> Asked:
    query = Query(query_id("video1", "T", "What?", choices, time), "T", "What was taken?", choices, time)
    return ask(make_bundle({"policy.py": text}), dataset.videos["video1"], query, Setup(Budget(), 1), sandbox, models)


def test_only_what_ended_before_is_seen(dataset: Dataset, sandbox: Sandbox) -> None:
    for time, seen in ((119.9, 3), (120.0, 4), (149.9, 4), (1_200.0, 40)):
        found = put(dataset, sandbox, offline_models(), time, CHOICES)
        assert found.answer.diagnostics["seen"] == seen and found.answer.evidence == (seen - 1,)
    assert put(dataset, sandbox, offline_models(), 120.0, CHOICES).answer.choice == "B"
    with pytest.raises(UserError, match="nothing of video1"):
        put(dataset, sandbox, offline_models(), 29.9, CHOICES)


def test_without_choices_and_without_a_model_nothing_is_said(dataset: Dataset, sandbox: Sandbox) -> None:
    found = put(dataset, sandbox, offline_models(), 120.0, {})
    assert found.answer.choice is None and found.said == "" and found.answer.evidence == (3,)
    assert found.meter.answering.requests == 0


def test_without_choices_the_model_is_asked_in_words(
    dataset: Dataset, sandbox: Sandbox, models: ModelHub, server: ModelServer
) -> None:
    server.behave = lambda body: (200, f"Said {len(server.requests)}.")
    found = put(dataset, sandbox, models, 120.0, {})
    assert found.said == "Said 2." and found.answer.choice is None
    first, second = (request["messages"][-1]["content"] for request in server.requests)
    assert "thing3" in str(first) and "What was taken?" in str(first)
    assert "Answer from the text alone: Said 1." in str(second)
    assert found.meter.answering.prompt_tokens == 100 and found.meter.verification.prompt_tokens == 100


def test_a_policy_that_fails_is_told_of(dataset: Dataset, sandbox: Sandbox) -> None:
    with pytest.raises(UserError, match=r"CRASH.*on purpose"):
        put(dataset, sandbox, offline_models(), 120.0, CHOICES, policy("raise ValueError('on purpose')"))
