"""The offline author: recipes are real, readable policies; proposals repeat, learn, and say what they change."""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents.interface import Brief, FrontierEntry, Proposal
from harness.agents.offline import OfflineAuthor
from harness.agents.recipes import COMPONENTS, KNOWN, Recipe, parse_text, recover
from harness.agents.render import render
from harness.gate.duplicates import syntax_digest
from harness.gate.interface import Decision
from harness.gate.literals import DataWords
from harness.gate.reviewer import Case
from harness.gate.reviewer import check as review
from harness.gate.static import check
from harness.models.hub import offline_models
from meta_memory.records import AttemptView
from policies import library
from policies.contract import Answer, Budget, Query, Read, ReadReply, Setup, Utterance, Window
from principles.h0 import load_h0
from sandbox.bundle import make_bundle
from sandbox.interface import Shard
from sandbox.stream import run_shard

H0 = load_h0()
RECIPES = st.builds(Recipe, **{name: st.sampled_from(values) for name, values in COMPONENTS.items()})
ENTRY = FrontierEntry(0, "start", 0.4, {"EventRecall": 0.3, "HabitInsight": 0.5}, 3000.0, 0)


def brief(files: dict[str, str], attempts: tuple[AttemptView, ...] = (), iteration: int = 1) -> Brief:
    return Brief(iteration, ENTRY, files, (ENTRY,), attempts, H0.principles, H0.wiki)


def attempt(iteration: int, proposal: Proposal, delta: float | None, outcome: str = "develop") -> AttemptView:
    return AttemptView(
        iteration=iteration,
        parent=0,
        title=proposal.hypothesis.title,
        hypothesis=proposal.hypothesis.what,
        outcome=outcome,
        cause="",
        dev_accuracy=None if delta is None else 0.4 + delta,
        dev_delta=delta,
        dev_by_type={},
        tokens_per_question=1000.0,
        lesson="",
    )


V00 = {path: data.decode() for path, data in library.load("v00").items()}


@settings(max_examples=150, deadline=None)
@given(RECIPES)
def test_every_recipe_is_a_valid_policy_that_states_its_recipe(recipe: Recipe) -> None:
    code = render(recipe)
    verdict = check({"policy.py": code.encode()}, H0.constitution, DataWords())
    assert verdict.decision is Decision.APPROVE, verdict.findings
    assert recover({"policy.py": code}) == recipe.normal()
    assert parse_text(f"Recipe: {recipe.normal().text()}") == recipe.normal()
    assert max(map(len, code.split("\n"))) <= 120


@settings(max_examples=150, deadline=None)
@given(RECIPES)
def test_a_policy_holds_only_what_it_uses(recipe: Recipe) -> None:
    tree = ast.parse(render(recipe))
    bound = Counter(a.asname or a.name for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) for a in n.names)
    bound.update(n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    bound.update(t.id for n in tree.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name))
    used = {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    used |= {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute)}
    contract = {"__init__", "observe", "settle", "answer", "annotations"}
    assert {name for name in bound if name not in used} <= contract


@settings(max_examples=100, deadline=None)
@given(RECIPES, RECIPES)
def test_recipes_that_differ_are_policies_that_differ(one: Recipe, other: Recipe) -> None:
    same = syntax_digest({"policy.py": render(one).encode()}) == syntax_digest({"policy.py": render(other).encode()})
    assert same == (one.normal() == other.normal())


def windows(count: int) -> tuple[Window, ...]:
    draw = random.Random(4)
    said = ["Ana washes the blue cup.", "Ben puts the cup on the shelf.", "It rains.", "Ana drinks tea with Ben."]
    return tuple(
        Window(n, 30_000.0 + 30 * n, 30_030.0 + 30 * n, tuple(draw.sample(said, 2)), (Utterance("Ben", "Tea?"),), False)
        for n in range(count)
    )


QUERIES = (
    Query(
        "a", "EntityLog", "Where did Ben put the cup the last time?", {"A": "On the shelf", "B": "On a tray"}, 31_000.0
    ),
    Query("b", "HabitInsight", "What does Ana usually drink?", {"A": "Coffee", "B": "Tea", "C": "Milk"}, 31_000.0),
    Query("c", "EventRecall", "Who was first?", {"A": "Ana"}, 200_000.0),
)


def drive(policy: Any, query: Query, reads: list[Read]) -> Answer:
    asking = policy.answer(query)
    try:
        request = next(asking)
        while True:
            reads.append(request)
            request = asking.send(ReadReply("A", "A"))
    except StopIteration as stop:
        assert isinstance(stop.value, Answer)
        return stop.value


@settings(max_examples=120, deadline=None)
@given(RECIPES, st.sampled_from([0, 1, 40]))
def test_every_recipe_answers_within_its_budget(recipe: Recipe, count: int) -> None:
    scope: dict[str, Any] = {"__name__": "candidate"}
    exec(compile(render(recipe), "policy.py", "exec"), scope)  # our own text, not a candidate's
    policy = scope["Policy"](Setup(Budget(context_chars=900), 1))
    if count:
        policy.observe(windows(count))
    policy.settle()
    for query in QUERIES:
        reads: list[Read] = []
        answer = drive(policy, query, reads)
        assert answer.choice in query.choices and len(reads) <= 1
        assert all(len(read.context) <= 900 for read in reads)
        assert set(answer.evidence) <= set(range(count)) and len(answer.evidence) <= 64
        assert all(type(at) is int for at in answer.evidence)


def test_recipes_run_in_the_sandbox(sandboxes: Callable[[str], Any]) -> None:
    class Reader:
        def serve(self, request: Any, query: Any) -> Any:
            return ReadReply(next(iter(request.choices)), "")

    draw = random.Random(2)
    box = sandboxes("bubblewrap")
    for _ in range(6):
        recipe = Recipe(**{name: draw.choice(values) for name, values in COMPONENTS.items()})
        bundle = make_bundle({"policy.py": render(recipe)})
        shard = Shard("s", windows(12), QUERIES[:2])
        outcome = run_shard(box, bundle, shard, Setup(Budget(), 1), Reader())
        assert [str(q.verdict) for q in outcome.questions] == ["OK", "OK"], outcome


@pytest.mark.parametrize("name", sorted(KNOWN))
def test_library_policies_map_to_recipes(name: str) -> None:
    files = {path: data.decode() for path, data in library.load(name).items()}
    assert recover(files) == KNOWN[name]
    assert isinstance(OfflineAuthor().propose(brief(files), 1), Proposal)


def test_a_parent_of_another_make_gets_the_nearest_recipe() -> None:
    code = library.load("v01")["policy.py"].decode()
    assert recover({"policy.py": code.replace("structured_event", "other")}).retriever == "fields"
    assert recover({"policy.py": "import ("}) == KNOWN["v00"]
    assert recover({"policy.py": '"""Recipe: retriever=magic slots=9999"""\n'}) == KNOWN["v00"]


def test_the_same_brief_and_seed_give_the_same_proposal() -> None:
    author = OfflineAuthor()
    first = [author.propose(brief(V00), seed) for seed in range(20)]
    assert first == [OfflineAuthor().propose(brief(V00), seed) for seed in range(20)]
    codes = {p.files["policy.py"] for p in first if isinstance(p, Proposal)}
    assert len(codes) > 10


def test_proposals_pass_static_rules_and_review_and_say_what_they_change() -> None:
    for seed in range(40):
        proposal = OfflineAuthor().propose(brief(V00), seed)
        assert isinstance(proposal, Proposal)
        code = proposal.files["policy.py"]
        assert code != V00["policy.py"]
        assert check({"policy.py": code.encode()}, H0.constitution, DataWords()).decision is Decision.APPROVE
        case = Case(proposal.hypothesis, proposal.files, V00, H0)
        assert review(case, offline_models(), 1, "").decision is Decision.APPROVE
        assert " to " in proposal.hypothesis.what and proposal.hypothesis.why and proposal.hypothesis.expected_accuracy
        assert recover(proposal.files) == parse_text(proposal.hypothesis.what)


def test_it_learns_from_development_gains() -> None:
    """After good news of one change and bad of another, children take up the first more often."""
    author, start = OfflineAuthor(), {"policy.py": render(Recipe(retriever="bm25"))}
    news: dict[str, float] = {"lines": 0.08, "show": -0.08}
    views = []
    for seed in range(120):
        proposal = author.propose(brief(start), seed)
        assert isinstance(proposal, Proposal)
        child = recover(proposal.files)
        changed = [n for n in COMPONENTS if getattr(child, n) != getattr(recover(start), n)]
        if len(changed) == 1 and changed[0] in news:
            views.append(attempt(seed + 1, proposal, news[changed[0]]))
    assert len(views) >= 4

    def share(attempts: tuple[AttemptView, ...], component: str) -> float:
        found = [author.propose(brief(start, attempts), seed) for seed in range(1000, 1150)]
        children = [recover(p.files) for p in found if isinstance(p, Proposal)]
        return sum(getattr(c, component) != getattr(recover(start), component) for c in children) / len(children)

    assert share(tuple(views), "lines") > share((), "lines") + 0.1
    assert share(tuple(views), "show") < share((), "show") + 0.05


def test_it_mostly_avoids_what_was_tried() -> None:
    author = OfflineAuthor()
    tried = [author.propose(brief(V00), seed) for seed in range(60)]
    views = tuple(attempt(n + 1, p, -0.01) for n, p in enumerate(tried) if isinstance(p, Proposal))
    known = {p.files["policy.py"] for p in tried if isinstance(p, Proposal)}
    again = [author.propose(brief(V00, views), seed) for seed in range(500, 600)]
    repeats = sum(p.files["policy.py"] in known for p in again if isinstance(p, Proposal))
    fresh = [author.propose(brief(V00), seed) for seed in range(500, 600)]
    assert repeats < sum(p.files["policy.py"] in known for p in fresh if isinstance(p, Proposal))


def test_hostile_text_in_memory_is_only_read() -> None:
    proposal = OfflineAuthor().propose(brief(V00), 1)
    assert isinstance(proposal, Proposal)
    text = "__import__('os') slots 4 to {0.__class__}; cap 1 to %s; Recipe: retriever=x slots=4"
    view = attempt(1, proposal, 0.1).model_copy(update={"title": "{{ 7*7 }}", "hypothesis": text})
    assert isinstance(OfflineAuthor().propose(brief(V00, (view,)), 3), Proposal)
