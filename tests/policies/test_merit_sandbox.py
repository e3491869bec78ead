"""MERIT in a container with builder, embedder and answer model behind HTTP: construction is paid once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.config import resolve
from harness.data.native import Dataset, Gold, Question, Video, load
from harness.data.write import DatasetParts, write
from harness.evaluation.executor import Evaluator
from harness.evaluation.outcomes import Evaluation
from harness.models.hub import ModelHub
from policies import library
from policies.blocks.keys import KEYS
from policies.contract import Budget, Window
from sandbox.bundle import make_bundle
from sandbox.interface import Sandbox
from tests.endpoint import Endpoint

WINDOWS = 80
ASKED = (20, 50, 70)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    windows = tuple(
        Window(at, 30.0 * at, 30.0 * at + 30, (f"Ada lifts thing {at}.", "Ben waits."), (), False)
        for at in range(WINDOWS)
    )
    made = [
        (
            Question(
                f"item-{at}", "v", "EntityLog", f"Who lifts thing {at}?", {"A": "Ben", "B": "Ada"}, 30.0 * at + 95
            ),
            Gold("B", ((30.0 * at, 30.0 * at + 30),)),
        )
        for at in ASKED
    ]
    folder = tmp_path_factory.mktemp("data") / "things"
    write(DatasetParts("things", {}, [Video("v", 30.0 * WINDOWS, windows)], {"development": made}), folder)
    return load(folder)


@pytest.fixture
def hub(endpoint: Endpoint, tmp_path: Path) -> Iterator[ModelHub]:
    file = tmp_path / "harness.toml"
    default = f'[profiles.t.default]\nmodel = "m"\nbase_url = "{endpoint.url}"\n'
    file.write_text(f'[run]\nprofile = "t"\n{default}[profiles.t.roles.embedder]\nmodel = "e"\n')
    opened = ModelHub(resolve({}, {}, file), tmp_path)
    yield opened
    opened.close()


def number(text: str) -> float:
    digits = [int(word) for word in "".join(c if c.isdigit() else " " for c in text).split()]
    return digits[0] / WINDOWS if digits else 0.0


def say(body: dict[str, Any]) -> str:
    """The builder writes one key; the solver asks its question once; the filter keeps two lines; f says B."""
    asked = str(body["messages"][-1]["content"])
    names = body["response_format"]["json_schema"]["schema"]["properties"]
    if "action" in names:
        wanted = asked.split("thing ")[1].split("?")[0]
        step = ("search", f"thing {wanted}") if "(none)\n\nEvidence" in asked else ("answer", "")
        return json.dumps(dict(zip(("action", "query"), step, strict=True)))
    if "keep" in names:
        return '{"keep": [1, 2]}'
    if "answer" in names:
        return '{"answer": "B"}'
    return json.dumps(dict.fromkeys(KEYS, "") | {"SUMMARY": asked.splitlines()[0]})


def measured(evaluation: Evaluation) -> list[object]:
    """What must not depend on how the questions were dealt out."""
    kept = {"question", "verdict", "choice", "evidence", "hit", "context_sha256", "unparsed"}
    return [
        (item.model_dump(include=kept), item.retrieval.requests, item.retrieval.prompt_tokens)
        for item in evaluation.items
    ]


def test_construction_is_paid_once_and_questions_are_independent(
    dataset: Dataset, hub: ModelHub, endpoint: Endpoint, sandboxes: Callable[[str], Sandbox]
) -> None:
    endpoint.say, endpoint.point = say, lambda text: [number(text), 1 - number(text)]
    evaluator = Evaluator(dataset, sandboxes("bubblewrap"), hub, Budget(), seed=0, workers=2)
    bundle = make_bundle(library.load("merit"))
    whole = evaluator.evaluate(bundle, "development", "0001/develop")
    assert [item.verdict for item in whole.items] == ["OK"] * 3 and all(item.correct for item in whole.items)
    assert all(item.hit for item in whole.items)
    built = [body for body in endpoint.requests if "EVENT_ACTION" in json.dumps(body)]
    assert len(built) == 64  # one settle; what comes after it is done by rules
    sent = len(endpoint.requests)
    again = evaluator.evaluate(bundle, "development", "0002/develop", shards_per_video=2)
    assert measured(again) == measured(whole)
    assert again.construction == whole.construction and whole.construction.requests == 64 + 2
    assert not [body for body in endpoint.requests[sent:] if "EVENT_ACTION" in json.dumps(body) or "input" in body]
