"""The event-anchor rewrite: the builder's records where there is a builder, the rule extractor's everywhere else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.config import resolve
from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.schema import check_schema, check_value
from harness.evaluation.services import Services
from harness.models.hub import ModelHub
from policies.blocks.events import EventMemory, Record
from policies.blocks.fields import fields_question
from policies.blocks.formats import five_fields
from policies.blocks.rewrite import FIVE_FIELDS, TEXT, Rewriter
from policies.contract import Budget, Build, BuildReply, ModelFailed, NoModel, Query, Refused, Utterance, Window
from tests.endpoint import Endpoint

WINDOWS = tuple(
    Window(at, 30.0 * at, 30.0 * at + 30, (f"I put mug {at} on the table.", "Ben: Ok."), (), False) for at in range(5)
)
VALUE = {
    "EVENT": "Ada waters the\nfern.",
    "PEOPLE": ["Ada", "two men", ""],
    "OBJECTS": ["fern", "can", "fern"],
    "PLACE": "balcony",
    "DIALOGUE": ["Ada: Ben likes it dry.", "Nobody answers"],
}
Serve = Callable[[Build], Any]


def build(serve: Serve, windows: tuple[Window, ...] = WINDOWS) -> tuple[EventMemory, Rewriter[Record]]:
    memory = EventMemory()
    rewriter = Rewriter(FIVE_FIELDS, memory.observe)
    rewriter.observe(windows)
    settle(rewriter, serve)
    return memory, rewriter


def settle(rewriter: Rewriter[Record], serve: Serve) -> None:
    asking = rewriter.settle()
    try:
        asked = next(asking)
        while True:
            asked = asking.send([serve(one) for one in asked])
    except StopIteration:
        pass


def rules(windows: tuple[Window, ...] = WINDOWS) -> EventMemory:
    memory = EventMemory()
    memory.observe(windows)
    return memory


def state(memory: EventMemory) -> list[Any]:
    """Everything a policy can read of a memory."""
    query = Query("q", "EntityLog", "Who put mug 3 on the table and said ok?", {"A": "Ada"}, 1e9)
    lines = [five_fields(memory, at) for at in range(len(memory))]
    return [[*memory.windows], [*memory.records], lines, fields_question(memory, query).tolist()]


def test_a_reply_becomes_the_record() -> None:
    memory, rewriter = build(lambda build: BuildReply(VALUE))
    assert memory.records[0] == Record(
        "Ada waters the fern.", ("Ada", "two men"), "fern, can", "balcony", "Ada: Ben likes it dry. Nobody answers"
    )
    assert five_fields(memory, 0) == (
        "[DAY1 00:00] | EVENT: Ada waters the fern. | PEOPLE: Ada | OBJECTS: fern, can | PLACE: balcony"
        " | DIALOGUE: Ada: Ben likes it dry. Nobody answers"
    )
    assert rewriter.label == "model" and len(memory) == 5


def test_a_transcript_is_the_dialogue_and_is_not_copied_by_a_model() -> None:
    said = (Utterance("Ada", "Ben likes\nit dry."), Utterance("", "Nobody answers"))
    asked: list[Build] = []

    def serve(request: Build) -> BuildReply:
        asked.append(request)
        return BuildReply({name: VALUE[name] for name in request.schema["properties"]})

    memory, rewriter = build(serve, (Window(0, 0.0, 30.0, ("I put mug 0 on the table.",), said, False), WINDOWS[1]))
    assert list(asked[0].schema["properties"]) == ["EVENT", "PEOPLE", "OBJECTS", "PLACE"]
    assert list(asked[1].schema["properties"]) == [*asked[0].schema["properties"], "DIALOGUE"]
    assert ["DIALOGUE" in request.messages[0].content for request in asked] == [False, True]
    assert asked[0].messages[-1].content == "I put mug 0 on the table.\nAda: Ben likes\nit dry.\nNobody answers"
    assert [record.dialogue for record in memory.records] == ["Ada: Ben likes it dry. Nobody answers"] * 2
    assert rewriter.label == "model"


def test_dialogue_is_indexed_without_its_speakers_and_people_are_names() -> None:
    memory, _ = build(lambda build: BuildReply(VALUE))
    assert memory.overlap("DIALOGUE", ["ada"]).tolist() == [0.0] * 5
    assert memory.overlap("DIALOGUE", ["ben", "dry", "nobody"]).tolist() == [3.0] * 5
    assert memory.overlap("PEOPLE", ["ada"]).tolist() == [1.0] * 5
    assert not memory.is_name("men") and not memory.is_name("two")


def test_the_request_holds_the_window_and_a_schema_that_fits() -> None:
    asked: list[Build] = []

    def serve(request: Build) -> BuildReply:
        asked.append(request)
        return BuildReply(VALUE)

    long = Window(5, 150.0, 180.0, ("word " * TEXT,), (), False)
    build(serve, (*WINDOWS, long))
    assert len(asked) == 6
    assert asked[2].messages[-1].content == "I put mug 2 on the table.\nBen: Ok."
    assert len(asked[5].messages[-1].content) == TEXT
    check_schema(asked[0].schema)
    check_value(VALUE, asked[0].schema)


@pytest.mark.parametrize("refusal", [NoModel("none"), ModelFailed("no JSON")])
def test_where_the_builder_fails_the_rules_write_the_same_as_ever(refusal: Refused) -> None:
    memory, rewriter = build(lambda build: refusal)
    assert state(memory) == state(rules()) and rewriter.label == "rules" and rewriter.by_rules == 5


def test_one_failure_costs_one_window() -> None:
    def serve(request: Build) -> BuildReply | Refused:
        return ModelFailed("cut off") if "mug 1" in request.messages[-1].content else BuildReply(VALUE)

    memory, rewriter = build(serve)
    assert memory.records[1] == rules().records[1]
    assert [record.place for record in memory.records] == ["balcony", "table", "balcony", "balcony", "balcony"]
    assert rewriter.label == {"model": 4, "rules": 1}


def test_a_reply_that_says_nothing_is_no_rewrite() -> None:
    empty = {"EVENT": " \n", "PEOPLE": ["Ada"], "OBJECTS": ["mug"], "PLACE": "hall", "DIALOGUE": [""]}
    memory, rewriter = build(lambda build: BuildReply(empty))
    assert state(memory) == state(rules()) and rewriter.label == "rules"


def test_without_a_builder_windows_are_taken_at_once() -> None:
    memory, rewriter = build(lambda build: NoModel("none"), WINDOWS[:2])
    rewriter.observe(WINDOWS[2:])
    assert len(memory) == 5 and state(memory) == state(rules())
    settle(rewriter, lambda build: pytest.fail("asked again"))


def test_what_waits_at_a_question_goes_in_by_rules() -> None:
    memory, rewriter = build(lambda build: BuildReply(VALUE), WINDOWS[:3])
    rewriter.observe(WINDOWS[3:])
    assert len(memory) == 3
    rewriter.answer()
    assert memory.records[3:] == rules().records[3:] and rewriter.label == {"model": 3, "rules": 2}


# ---------------------------------------------------------------- through the real client


@pytest.fixture
def hub(endpoint: Endpoint, tmp_path: Path) -> Iterator[ModelHub]:
    file = tmp_path / "harness.toml"
    file.write_text(
        f'[run]\nprofile = "t"\n[profiles.t.roles.builder]\nmodel = "b"\nbase_url = "{endpoint.url}"\n'
        '[prices."b"]\ninput = 1.0\noutput = 2.0\n'
    )
    (tmp_path / "run").mkdir()
    opened = ModelHub(resolve({}, {}, file), tmp_path / "run")
    yield opened
    opened.close()


def test_a_second_construction_pays_nothing_and_counts_full_price(hub: ModelHub, endpoint: Endpoint) -> None:
    def say(body: dict[str, Any]) -> str:
        return "not JSON" if "mug 1" in str(body["messages"]) else json.dumps(VALUE)

    endpoint.say = say
    states, costs = [], []
    for scope in ("0001/develop", "0002/develop"):
        host = Services(hub, OfflineAnswers(), Budget(), "video", len(WINDOWS), scope)
        memory, rewriter = build(lambda request, host=host: host.serve(request, None))
        states.append((state(memory), rewriter.label))
        costs.append([cost.dollars for cost in host.construction.builds.values()])
        assert len(endpoint.requests) == 5
    assert states[0] == states[1] and states[0][1] == {"model": 4, "rules": 1}
    assert costs[0] == costs[1] == [pytest.approx(20e-6)] * 5
    assert endpoint.requests[0]["response_format"]["json_schema"]["strict"] is True
