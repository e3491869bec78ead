"""Every version of the lineage: causal, repeatable, within its budgets, and as ``lineage.toml`` says."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from types import ModuleType
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.gate.interface import Decision
from harness.gate.literals import DataWords
from harness.gate.static import check
from policies import library
from policies.blocks.components import FILE, Components, parse_components
from policies.contract import (
    Answer,
    Budget,
    Frame,
    Frames,
    FramesReply,
    Generate,
    GenerateReply,
    NoModel,
    Query,
    Read,
    ReadReply,
    Setup,
    Utterance,
    Window,
)
from principles.h0 import load_h0
from sandbox.bundle import make_bundle
from sandbox.interface import Shard
from sandbox.stream import run_shard
from tests.policies.driving import drive

VERSIONS = tuple(name for name in library.names() if name.startswith("v"))
H0 = load_h0()


class Host:
    """Serves a policy deterministically and keeps every request."""

    def __init__(self, judge: bool | None = None) -> None:
        self.judge = judge
        self.requests: list[Any] = []

    def __call__(self, request: Any) -> Any:
        self.requests.append(request)
        if isinstance(request, Read):
            letters = list(request.choices)
            return ReadReply(letters[len(request.context) % len(letters)], "")
        if isinstance(request, Frames):
            return FramesReply(tuple(Frame(f"frame-{at}", at) for at in request.times))
        if isinstance(request, Generate) and self.judge is not None:
            return GenerateReply("", {"look_at_frames": self.judge})
        return NoModel("no model")


def make(name: str, budget: Budget | None = None) -> Any:
    return importlib.import_module(f"policies.{name}.policy").Policy(Setup(budget or Budget(), 0))


def ran(policy: Any, windows: Sequence[Window], query: Query, host: Host) -> tuple[Answer, list[Any]]:
    """The answer after exactly the windows with end <= t_q, in batches of 8, and what was asked for."""
    seen = [window for window in windows if window.end <= query.time]
    for start in range(0, len(seen), 8):
        drive(policy.observe(seen[start : start + 8]), host)
        drive(policy.settle(), host)
    return drive(policy.answer(query), host), host.requests


# ---------------------------------------------------------------- the lineage


def test_the_lineage_agrees_with_the_packages() -> None:
    rows = library.lineage()
    assert set(rows) == set(library.names())
    known: set[str] = set()
    for name, version in rows.items():
        assert version.name == name and version.change
        assert not version.parent or version.parent in known, f"{name} comes before its parent"
        known.add(name)
        if name in VERSIONS:
            assert bool(version.reported) == (name != "v00")
            module = importlib.import_module(f"policies.{name}.policy")
            assert (module.__doc__ or "").startswith(f"V{int(name[1:])}")
            if version.parent and name != "v01":
                assert f"V{int(version.parent[1:])}" in (module.__doc__ or ""), f"{name} does not name its parent"
    assert [name for name, version in rows.items() if "regression" in version.reported] == ["v15", "v44"]
    assert {rows[name].parent for name in VERSIONS} == {"", "v00", "v01", "v09", "v18", "v30", "v47"}


@pytest.mark.parametrize("name", library.names())
def test_every_released_policy_passes_the_static_rules(name: str) -> None:
    verdict = check(library.load(name), H0.constitution, DataWords())
    if name == "longest_option":  # the reference for a shortcut is that shortcut: it is measured, never a candidate
        assert [finding.rule for finding in verdict.findings] == ["S15"]
    else:
        assert verdict.decision is Decision.APPROVE, verdict.reason


# ---------------------------------------------------------------- settings


def test_settings_make_another_bundle() -> None:
    files = library.load("v49", {"gate": "never", "specialists": False})
    assert json.loads(files[FILE]) == {
        "structured_memory": True,
        "co_occurrence_bonus": True,
        "specialists": False,
        "gate": "never",
    }
    plain = library.load("v49")
    assert {path: data for path, data in files.items() if path != FILE} == {
        path: data for path, data in plain.items() if path != FILE
    }
    assert library.load("v49", {}) == plain and parse_components(plain[FILE]) == Components()


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("v47", {"gate": "never"}, "policy 'v47' has no settings.json"),
        ("v49", {"gate": "sometimes"}, "gate must be one of rule, llm-judge, always, never"),
        ("v49", {"specialists": 1}, "specialists must be true or false"),
        ("v49", {"frames": True}, "exactly the keys structured_memory"),
    ],
)
def test_settings_that_cannot_be_had(name: str, changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        library.load(name, changes)


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"{}", b'{"gate": "rule"}', b"[" * 100_000])
def test_a_broken_settings_file_is_named(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"settings\.json: "):
        parse_components(data)


@pytest.fixture
def variant(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Any]]:
    """Makes V49 with other settings, imported from its bundle's files."""
    made: list[str] = []

    def load(**changes: object) -> Any:
        name = f"variant{len(made)}"
        folder = tmp_path / name
        folder.mkdir()
        for path, data in library.load("v49", changes).items():
            (folder / path).write_bytes(data)
        (folder / "__init__.py").touch()
        made.append(name)
        module: ModuleType = importlib.import_module(f"{name}.policy")
        return module.Policy(Setup(Budget(), 0))

    monkeypatch.syspath_prepend(str(tmp_path))
    yield load
    for name in [module for module in sys.modules if module.partition(".")[0] in made]:
        del sys.modules[name]


SEEN = tuple(
    Window(at, 30.0 * at, 30.0 * at + 30, (f"Ada carries red bag {at} home.",), (Utterance("Ben", "Ok."),), True)
    for at in range(20)
)
VISUAL = Query("q", "EventRecall", "What colour is the bag that Ada carries?", {"A": "red", "B": "blue"}, 900.0)
PLAIN = Query("p", "EventRecall", "What does Ada carry?", {"A": "bag", "B": "mug"}, 900.0)


def test_the_gate_of_each_setting(variant: Callable[..., Any]) -> None:
    def opened(query: Query, judge: bool | None = None, **changes: object) -> tuple[bool, int, Any]:
        answer, requests = ran(variant(**changes), SEEN, query, Host(judge))
        frames = sum(isinstance(request, Frames) for request in requests)
        return answer.diagnostics["gate_open"], frames, answer.diagnostics["gate"]

    assert opened(VISUAL) == (True, 1, "rule") and opened(PLAIN) == (False, 0, "rule")
    assert opened(VISUAL, gate="never") == (False, 0, "never") and opened(PLAIN, gate="always") == (True, 1, "always")
    assert opened(PLAIN, True, gate="llm-judge") == (True, 1, "llm-judge")
    assert opened(VISUAL, False, gate="llm-judge") == (False, 0, "llm-judge")
    fallback = "rule, since the judge was refused: NoModel"
    assert opened(VISUAL, gate="llm-judge") == (True, 1, fallback)
    assert opened(PLAIN, gate="llm-judge") == (False, 0, fallback)


def test_each_component_can_be_switched_off(variant: Callable[..., Any]) -> None:
    asked = Query("t", "", "When did Ada last carry the bag?", dict(zip("ABCD", HOURS, strict=True)), 7_700.0)
    assert ran(variant(), SEEN, asked, Host())[0].route == "temporal_delta"
    assert ran(variant(specialists=False), SEEN, asked, Host())[0].route == "structured_event"
    contexts = {}
    for name, changes in {
        "all": {},
        "text": {"structured_memory": False},
        "sum": {"co_occurrence_bonus": False},
    }.items():
        _, requests = ran(variant(**changes), SEEN, PLAIN, Host())
        contexts[name] = next(request.context for request in requests if isinstance(request, Read))
    assert "EVENT:" in contexts["all"] and "EVENT:" not in contexts["text"] and "raw captions" in contexts["text"]
    score = [float(text.partition("score ")[2].split()[0]) for text in (contexts["all"], contexts["sum"])]
    assert score[0] - score[1] == 4.0


HOURS = ("about 1 hour ago", "about 2 hours ago", "about 3 hours ago", "5 hours ago")


# ---------------------------------------------------------------- causality, budgets, repeats

NAMES = ("Ada", "Ben", "Cleo")
LINE = st.builds(
    "{} {} the {} {}.".format,
    st.sampled_from((*NAMES, "I")),
    st.sampled_from(("carries", "washes", "buys", "puts", "last saw")),
    st.sampled_from(("red mug", "old box", "soup", "blue bag")),
    st.sampled_from(("in the kitchen", "upstairs", "with Ada", "together with Ben")),
)
CONTENT = st.tuples(
    st.lists(LINE, max_size=3), st.lists(st.tuples(st.sampled_from(NAMES), LINE), max_size=2), st.booleans()
)
QUESTION = st.sampled_from(
    (
        ("Who washes the red mug with Ada?", ("Ben", "Cleo", "Ada")),
        ("What colour is the bag on the left?", ("red", "blue", "the old one")),
        ("When was the last time Ada washed the red mug?", ("just now", "about 5 minutes ago", "an hour ago")),
        ("Who usually buys the soup?", NAMES),
        ("Where did I first put the old box?", ("in the kitchen", "upstairs", "Ada", "Ben")),
        ("Who is holding the blue bag, visible?", ("Ada", "Ben", "Ada")),
    )
)


def stream(contents: Sequence[Any], first: int = 0) -> tuple[Window, ...]:
    return tuple(
        Window(at, 30.0 * at, 30.0 * at + 30, tuple(lines), tuple(Utterance(*said) for said in spoken), frames)
        for at, (lines, spoken, frames) in enumerate(contents, first)
    )


@pytest.mark.parametrize("name", VERSIONS)
@settings(deadline=None, max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(CONTENT, max_size=24),
    st.lists(CONTENT, max_size=6),
    st.lists(CONTENT, max_size=6),
    QUESTION,
    st.sampled_from((Budget(), Budget(context_chars=900, evidence=3, frames=1), Budget(frames=9))),
)
def test_the_future_changes_no_byte_and_budgets_hold(
    name: str, past: list[Any], one: list[Any], other: list[Any], asked: tuple[str, tuple[str, ...]], budget: Budget
) -> None:
    """Two futures, altered, longer and shorter: the same answer, evidence and requests, within the budget."""
    time = 30.0 * len(past) + 14.0
    query = Query("q", "EntityLog", asked[0], dict(zip("ABCD", asked[1], strict=False)), time)
    found = []
    for future in (one, other, []):
        windows = (*stream(past), *stream(future, len(past)))
        found.append(ran(make(name, budget), windows, query, Host()))
    assert found[0] == found[1] == found[2]
    answer, requests = found[0]
    assert answer.choice in (*query.choices, None) and len(answer.evidence) <= budget.evidence
    assert all(0 <= at < len(past) for at in answer.evidence)
    assert len(json.dumps(dict(answer.diagnostics))) <= 8_000
    reads = [request for request in requests if isinstance(request, Read)]
    assert all(len(read.context) <= min(budget.context_chars, 12_500) for read in reads)
    assert len(reads) <= 2 and all(len(read.frames) <= min(budget.frames, 4) for read in reads)
    times = [at for request in requests if isinstance(request, Frames) for at in request.times]
    assert len(times) <= min(budget.frames, 4) and all(at <= time for at in times)


# ---------------------------------------------------------------- in the sandbox


@pytest.mark.parametrize("name", VERSIONS)
def test_every_version_runs_in_the_sandbox(name: str, sandboxes: Callable[[str], Any]) -> None:
    host = Host()

    class Serving:
        def serve(self, request: Any, query: Query | None) -> Any:
            return host(request)

    outcome = run_shard(
        sandboxes("bubblewrap"),
        make_bundle(library.load(name)),
        Shard("s", SEEN, (PLAIN, VISUAL)),
        Setup(Budget(), 0),
        Serving(),
    )
    answers = [question.answer for question in outcome.questions]
    expected = [ran(make(name), SEEN, query, Host())[0] for query in (PLAIN, VISUAL)]
    assert answers == expected, outcome


# ---------------------------------------------------------------- the real stream


@pytest.mark.egolife
@pytest.mark.parametrize("name", VERSIONS)
def test_a_poisoned_future_on_the_real_stream(name: str, egolife: Any) -> None:
    queries = egolife.queries[120:400:240]
    for query in queries:
        cut = sum(window.end <= query.time for window in egolife.windows)
        near = egolife.windows[max(cut - 150, 0) : cut]
        poison = [
            Window(w.index, w.start, w.end, (f"{query.question} {' '.join(query.choices.values())}",), (), True)
            for w in egolife.windows[cut : cut + 40]
        ]
        found = [
            ran(make(name), (*near, *future), query, Host()) for future in (egolife.windows[cut : cut + 9], poison, ())
        ]
        assert found[0] == found[1] == found[2] and found[0][0].route
