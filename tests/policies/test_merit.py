"""MERIT: rounds, stop rule, neighbours, filter and fallbacks, in process and behind a real model endpoint."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config import resolve
from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.services import Services
from harness.models.hub import ModelHub
from policies.blocks import filtering
from policies.blocks.keys import KEYS
from policies.blocks.vectors import encode
from policies.contract import (
    Answer,
    BadRequest,
    Budget,
    Build,
    Embed,
    EmbedReply,
    Generate,
    GenerateReply,
    ModelFailed,
    NoModel,
    NotPermitted,
    OverBudget,
    Query,
    Read,
    ReadReply,
    Refused,
    Setup,
    Utterance,
    Window,
)
from policies.merit.policy import CLIPS, ROUNDS, Policy
from tests.endpoint import Endpoint

Run = Callable[..., dict[str, Answer]]
Serve = Callable[[Any], Any]
THINGS = ("cup", "fern", "kite", "lamp", "oven", "sofa", "tent", "vase")
WINDOWS = tuple(
    Window(
        at,
        30.0 * at,
        30.0 * at + 30,
        (f"Ada lifts {THINGS[at % 8]} {at}.", "I look around."),
        (Utterance("Ben", f"Mind number {at}."),),
        False,
    )
    for at in range(160)
)
QUERY = Query("q", "EntityLog", "What did Ada lift first?", {"A": "fern 9", "B": "oven 44"}, 150 * 30.0)


def embed(request: Embed) -> EmbedReply:
    """A vector that tells which thing and which number a text names."""
    rows = []
    for text in request.texts:
        digits = [int(word) for word in "".join(c if c.isdigit() else " " for c in text).split()]
        angle = (digits[-1] if digits else 0) / 160 * np.pi
        rows.append([np.cos(angle), np.sin(angle)])
    return EmbedReply(2, encode(np.array(rows, np.float32)))


def solver(steps: Sequence[Any], keep: Callable[[list[str]], list[int]] = lambda lines: [*range(1, 6)]) -> Serve:
    """f: its steps in order (a dict, or a refusal), the filter's numbers, the first letter."""
    left = list(steps)

    def serve(request: Any) -> Any:
        match request:
            case Build():
                return NoModel("no builder")
            case Embed():
                return embed(request)
            case Read():
                return ReadReply("A", "A")
            case Generate() if "action" in request.schema["properties"]:
                step = left.pop(0)
                return step if isinstance(step, Refused) else GenerateReply("", step)
            case Generate():
                lines = request.messages[-1].content.split("Lines:\n")[1].splitlines()
                return GenerateReply("", {"keep": keep(lines)})

    return serve


class Log:
    """A server that keeps what it was asked."""

    def __init__(self, serve: Serve) -> None:
        self.serve, self.asked = serve, []

    def __call__(self, request: Any) -> Any:
        self.asked.append(request)
        return self.serve(request)

    def of(self, kind: type) -> list[Any]:
        return [request for request in self.asked if isinstance(request, kind)]


def search(text: str) -> dict[str, str]:
    return {"action": "search", "query": text}


DONE = {"action": "answer", "query": ""}


def make(**budget: int) -> Policy:
    return Policy(Setup(Budget(**budget), 0))


# ---------------------------------------------------------------- the numbers of the method


def test_the_defaults() -> None:
    assert (CLIPS, ROUNDS, filtering.WIDTH, len(KEYS)) == (5, 5, 2, 4)
    assert make().rounds == 5
    assert make(generates=8).rounds == 4  # eight requests to f, two a round
    assert make(generates=0).rounds == 1


def test_a_round_takes_five_clips_with_two_neighbours_on_each_side(run: Run) -> None:
    log = Log(solver([search("number 40"), DONE]))
    answer = run(make(), WINDOWS, [QUERY], log)["q"]
    (only,) = answer.diagnostics["rounds"]
    assert only == {"query": "number 40", "index": "embeddings", "filter": "model", "clips": [40, 39, 41, 38, 42]}
    (shown,) = [request for request in log.of(Generate) if "keep" in request.schema["properties"]]
    times = {line.split("] ")[0].split("[")[1] for line in shown.messages[-1].content.splitlines() if "] " in line}
    assert times == {f"DAY1 {at * 30 // 3600:02d}:{at * 30 // 60 % 60:02d}" for at in range(36, 45)}


def test_the_best_key_decides_which_clip_is_found(run: Run) -> None:
    """The dialogue of window 7 alone speaks of what is asked for; its other keys point elsewhere."""
    odd = Window(7, 210.0, 240.0, ("Ada lifts cup 159.",), (Utterance("Ben", "Mind number 80."),), False)
    windows = [odd if window.index == 7 else window for window in WINDOWS if window.index < 64]
    log = Log(solver([search("number 80"), DONE]))
    answer = run(make(), windows, [QUERY], log)["q"]
    assert answer.diagnostics["rounds"][0]["clips"][0] == 7


# ---------------------------------------------------------------- rounds and stop rule


def test_the_solver_stops_when_it_says_answer(run: Run) -> None:
    log = Log(solver([search("number 9"), search("number 44"), DONE]))
    answer = run(make(generates=10), WINDOWS, [QUERY], log)["q"]
    assert answer.diagnostics["stop"] == "answer"
    assert [one["query"] for one in answer.diagnostics["rounds"]] == ["number 9", "number 44"]
    steps = [request for request in log.of(Generate) if "action" in request.schema["properties"]]
    assert "Evidence so far:\n(none)" in steps[0].messages[-1].content
    assert "Earlier queries: number 9; number 44" in steps[2].messages[-1].content
    assert "Ada lifts fern 9." in steps[1].messages[-1].content
    assert len(log.of(Read)) == 1 and answer.choice == "A" and answer.route == "multi_key"


def test_it_does_not_answer_before_it_has_searched(run: Run) -> None:
    answer = run(make(), WINDOWS, [QUERY], Log(solver([DONE, DONE])))["q"]
    assert [one["query"] for one in answer.diagnostics["rounds"]] == [QUERY.question]


def test_all_rounds_are_used_where_it_never_says_answer(run: Run) -> None:
    log = Log(solver([search(f"number {at}") for at in (10, 30, 50, 70, 90)]))
    answer = run(make(generates=10), WINDOWS, [QUERY], log)["q"]
    assert answer.diagnostics["stop"] == "rounds" and len(answer.diagnostics["rounds"]) == 5
    assert len(log.of(Generate)) == 10


def test_a_clip_is_seen_once_and_the_search_ends_when_none_is_new(run: Run) -> None:
    log = Log(solver([search("number 3")] * 5))
    query = Query("q", "EntityLog", "Which?", {"A": "a"}, 360.0)
    answer = run(make(generates=10), WINDOWS, [query], log)["q"]
    clips = [clip for one in answer.diagnostics["rounds"] for clip in one["clips"]]
    assert len(clips) == len(set(clips)) and answer.diagnostics["stop"] == "no new clip"
    assert sorted(answer.evidence) == sorted(set(answer.evidence))


def test_an_empty_query_ends_the_search(run: Run) -> None:
    answer = run(make(), WINDOWS, [QUERY], Log(solver([search("number 9"), search(" \n ")])))["q"]
    assert answer.diagnostics["stop"] == "no query" and len(answer.diagnostics["rounds"]) == 1


def test_evidence_stands_in_order_of_time(run: Run) -> None:
    log = Log(solver([search("number 90"), search("number 20"), DONE]))
    run(make(), WINDOWS, [QUERY], log)
    blocks = log.of(Read)[0].context.split("\n\n")
    assert blocks[0] == "asked_at: DAY1 01:15"
    assert blocks[1:] == sorted(blocks[1:]) and any("20" in block for block in blocks[1:])


# ---------------------------------------------------------------- the filter


def test_only_the_lines_that_f_keeps_reach_the_evidence(run: Run) -> None:
    def keep(lines: list[str]) -> list[int]:
        return [number for number, line in enumerate(lines, 1) if "Mind number 41" in line] + [0, -3, 10**9]

    log = Log(solver([search("number 40"), DONE], keep))
    answer = run(make(), WINDOWS, [QUERY], log)["q"]
    assert log.of(Read)[0].context.split("\n\n")[1:] == ["[DAY1 00:20] Ben: Mind number 41."]
    assert answer.evidence == (41,)


def test_without_f_a_hit_is_kept_whole_and_of_a_neighbour_what_overlaps(run: Run) -> None:
    log = Log(solver([NoModel("none"), NoModel("none")]))
    serve = log.serve
    log.serve = lambda request: NoModel("none") if isinstance(request, Generate) else serve(request)
    query = Query("q", "EntityLog", "When was number 40 lifted?", {"A": "then"}, QUERY.time)
    answer = run(make(), WINDOWS, [query], log)["q"]
    assert answer.diagnostics["rounds"][0]["filter"] == "rules"
    texts = [block.split("] ")[1] for block in log.of(Read)[0].context.split("\n\n")[1:]]
    assert texts[:3] == [
        "Ada lifts oven 36. Ben: Mind number 36.",
        "Ada lifts sofa 37. Ben: Mind number 37.",
        "Ada lifts tent 38. I look around. Ben: Mind number 38.",
    ]
    assert len(texts) == 9


# ---------------------------------------------------------------- refusals at each point


def test_without_any_model_it_is_one_round_over_bm25(run: Run) -> None:
    log = Log(lambda request: ReadReply("B", "") if isinstance(request, Read) else NoModel("none"))
    query = Query("q", "EntityLog", "Where did the kite 42 go?", {"A": "x", "B": "y"}, QUERY.time)
    answer = run(make(), WINDOWS, [query], log)["q"]
    assert answer.diagnostics["builder"] == "rules" and answer.diagnostics["stop"] == "no query"
    (only,) = answer.diagnostics["rounds"]
    assert (only["query"], only["index"], only["filter"]) == (query.question, "bm25", "rules")
    assert only["clips"][0] == 42 and answer.choice == "B"


@pytest.mark.parametrize(
    "refusal", [NoModel("n"), OverBudget("o"), ModelFailed("m"), BadRequest("b"), NotPermitted("p")]
)
@pytest.mark.parametrize("kind", [Build, Embed, Generate, Read])
def test_a_refusal_at_any_point_still_ends_in_an_answer(kind: type, refusal: Refused, run: Run) -> None:
    serve = solver([search("number 9"), DONE])
    answer = run(make(), WINDOWS, [QUERY], lambda request: refusal if isinstance(request, kind) else serve(request))[
        "q"
    ]
    assert (answer.choice is None) == (kind is Read)
    assert answer.evidence
    if kind is Embed:
        assert answer.diagnostics["rounds"][0]["index"] == "bm25"


def test_a_refused_step_after_a_search_ends_it(run: Run) -> None:
    answer = run(make(), WINDOWS, [QUERY], Log(solver([search("number 9"), ModelFailed("cut off")])))["q"]
    assert answer.diagnostics["stop"] == "no query" and len(answer.diagnostics["rounds"]) == 1


# ---------------------------------------------------------------- windows after the last settle


def test_windows_after_the_last_settle_are_found_too() -> None:
    policy = make()
    log = Log(solver([search("number 77"), DONE]))
    drive(policy.observe(WINDOWS[:64]), log)
    drive(policy.settle(), log)
    built = sum(len(request.texts) for request in log.of(Embed))
    drive(policy.observe(WINDOWS[64:100]), log)
    answer = drive(policy.answer(QUERY), log)
    assert 77 in answer.diagnostics["rounds"][0]["clips"]
    assert sum(len(request.texts) for request in log.of(Embed)) - built <= Budget().embeds


def drive(result: Any, serve: Serve) -> Any:
    if result is None:
        return None
    try:
        asked = next(result)
        while True:
            if isinstance(asked, list):
                asked = result.send([serve(one) for one in asked])
            else:
                reply = serve(asked)
                asked = result.throw(reply) if isinstance(reply, Refused) else result.send(reply)
    except StopIteration as stop:
        return stop.value


# ---------------------------------------------------------------- causality, repeatability


@settings(max_examples=15, deadline=None)
@given(st.integers(1, 159), st.sampled_from(["", "Ada lifts fern 9.", "number 44"]))
def test_the_future_changes_no_byte_and_no_neighbour_lies_in_it(run: Run, cut: int, future: str) -> None:
    query = Query("q", "EntityLog", "What about number 44?", {"A": "fern 9", "B": "oven 44"}, 30.0 * cut)
    later = [Window(at, 30.0 * at, 30.0 * at + 31, (future,) * bool(future), (), False) for at in range(cut, cut + 9)]
    seen = []
    for windows in (WINDOWS[:cut], (*WINDOWS[:cut], *later), WINDOWS, WINDOWS):
        log = Log(solver([search("number 44"), search(f"number {cut}"), DONE]))
        answer = run(make(), windows, [query], log)["q"]
        assert all(WINDOWS[at].end <= query.time for at in answer.evidence)
        seen.append((repr(answer), [repr(request) for request in log.asked]))
    assert seen[0] == seen[1] == seen[2] == seen[3]


# ---------------------------------------------------------------- through the real client


class Model:
    """Chat completions and embeddings behind one address."""

    def __init__(self, steps: Sequence[dict[str, str]]) -> None:
        self.steps, self.filters = list(steps), 0

    def __call__(self, body: dict[str, Any]) -> Any:
        schema = body["response_format"]["json_schema"]["schema"]["properties"]
        if "action" in schema:
            return json.dumps(self.steps.pop(0))
        if "keep" in schema:
            self.filters += 1
            return '{"keep": [1, 2, 3]}' if self.filters > 1 else "no list"
        return (
            json.dumps({"answer": "B"})
            if "answer" in schema
            else json.dumps(dict.fromkeys(KEYS, body["messages"][-1]["content"]))
        )


@pytest.fixture
def hub(endpoint: Endpoint, tmp_path: Path) -> Iterator[ModelHub]:
    file = tmp_path / "harness.toml"
    default = f'[profiles.t.default]\nmodel = "m"\nbase_url = "{endpoint.url}"\n'
    file.write_text(f'[run]\nprofile = "t"\n{default}[profiles.t.roles.embedder]\nmodel = "e"\n')
    (tmp_path / "run").mkdir()
    opened = ModelHub(resolve({}, {}, file), tmp_path / "run")
    yield opened
    opened.close()


def point(text: str) -> list[float]:
    """Near to each other where the same number is named."""
    digits = [int(word) for word in "".join(c if c.isdigit() else " " for c in text).split()]
    angle = (digits[-1] if digits else 0) / 160 * np.pi
    return [float(np.cos(angle)), float(np.sin(angle))]


def test_the_loop_over_http(run: Run, hub: ModelHub, endpoint: Endpoint) -> None:
    endpoint.say, endpoint.point = Model([search("number 9"), search("number 44"), DONE]), point
    host = Services(hub, OfflineAnswers(), Budget(), "video", len(WINDOWS), "0001/develop")
    policy = make()
    drive(policy.observe(WINDOWS[:64]), lambda request: None)
    drive(policy.settle(), lambda request: host.serve(request, None))
    answer = drive(policy.answer(QUERY), lambda request: host.serve(request, QUERY))
    assert host.failure is None
    assert answer.choice == "B" and answer.diagnostics["builder"] == "model" and answer.diagnostics["stop"] == "answer"
    assert [one["query"] for one in answer.diagnostics["rounds"]] == ["number 9", "number 44"]
    assert [one["filter"] for one in answer.diagnostics["rounds"]] == ["rules", "model"]
    meter = host.questions["q"]
    assert (meter.generates, meter.reads, meter.embeds) == (5, 1, 2)
    assert meter.retrieval.requests == 7 and meter.answering.requests == 1
    assert len(host.construction.builds) == 64 and host.construction.embedded == 256
