"""The stages of one iteration, in the order of ``harness/loop.py``. Each commits a typed outcome."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from harness import recalling
from harness.agents.interface import Brief, Hypothesis, Malformed, Reviser, Revision
from harness.errors import UserError
from harness.evaluation import result_audit
from harness.evaluation.outcomes import Evaluation
from harness.evaluation.report import headline
from harness.frontier import PromotionDecision, PromotionRule, develop_bar, no_bar, pareto, point, validate_bar
from harness.gate import duplicates as duplicate_rules
from harness.gate import reviewer as review
from harness.gate import smoke as smoke_run
from harness.gate import static as static_rules
from harness.gate.interface import Decision, Finding, StageVerdict
from harness.outcomes import Audited, Gated, Measured, Promoted, Proposed, Recalled, TakenIn
from harness.remembering import outcome_commit
from harness.rounds import bundle, gated, intakes, named
from harness.search import REFERENCES, Search
from harness.seeds import derive, draws
from harness.state.intake import IntakeRejected
from harness.state.story import candidate_branch
from policies import library
from sandbox.bundle import make_bundle

Bar: TypeAlias = Callable[[Evaluation, Evaluation, Sequence[Evaluation], PromotionRule], PromotionDecision]


# ---------------------------------------------------------------- iteration 0


def seed(s: Search) -> TakenIn:
    """The starting policy becomes the first commit of ``main``."""

    def work() -> TakenIn:
        files = library.load(s.config.run.parent)
        tree = s.lineage.intake(files)
        date = s.clock()
        commit = s.lineage.commit(tree, (), f"Start from {s.config.run.parent}", {"Iteration": "0"}, date)
        return TakenIn(
            summary=f"starting policy {s.config.run.parent}",
            refs={"refs/heads/main": commit, "refs/tags/frontier/0000": commit},
            tree=tree,
            commit=commit,
            branch="main",
            bundle=make_bundle(files).digest,
        )

    return s.stage(0, "intake", TakenIn, work)


def smoke_seed(s: Search) -> Gated:
    """The starting policy must run; and a candidate that behaves like it is a repeat."""

    def work() -> Gated:
        verdict, behaviour = smoke_run.check(
            s.evaluator, bundle(s.store, s.candidate(0)), "development", s.smoke_questions, "0000/smoke"
        )
        return Gated.of(verdict, behaviour)

    found = s.stage(0, "smoke", Gated, work)
    if found.rejected:
        raise UserError(f"the starting policy {s.config.run.parent} does not run here: {found.verdict.reason}")
    return found


def measure_seed(s: Search, split: str) -> Measured:
    """The starting policy on one split; the validation figures make it the first frontier."""
    name = {"development": "develop", "validation": "validate"}[split]

    def work() -> Measured:
        evaluation = s.evaluator.evaluate(make_bundle(s.files(0)), split, scope=f"0000/{name}")
        return Measured(summary=headline(evaluation), evaluation=evaluation)

    return s.stage(0, name, Measured, work)


def references(s: Search) -> None:
    """Simple policies measured beside every figure: options alone, longest option, BM25."""
    for name in REFERENCES:
        for split in ("development", "validation"):

            def work(name: str = name, split: str = split) -> Measured:
                evaluation = s.evaluator.evaluate(make_bundle(library.load(name)), split, f"0000/{name}/{split}")
                return Measured(summary=f"{name}: {headline(evaluation)}", evaluation=evaluation)

            s.stage(0, f"reference-{name}-{split}", Measured, work)


# ---------------------------------------------------------------- 1 and 2: recall, propose


def recall(s: Search, k: int) -> Recalled:
    """Choose the parent on the frontier, and what the author is shown of earlier attempts."""

    def work() -> Recalled:
        parent = choose_parent(s, k)
        shown = s.recall(parent, s.first_of(k))
        return Recalled(
            summary=f"parent {parent:04d}; recalled: {', '.join(a.label for a in shown) or 'nothing'}",
            parent=parent,
            attempts=tuple(attempt.label for attempt in shown),
            tokens=recalling.counted(shown),
            started=s.clock(),
        )

    return s.stage(k, "recall", Recalled, work)


def choose_parent(s: Search, k: int) -> int:
    """The frontier's best on the development split two times in three, else any other of the frontier (not given by
    the source): climbing is faster from the best, but the small policies keep being tried. Which parent an author is
    given must tell it nothing of the validation split.
    """
    frontier = sorted(s.frontier(s.first_of(k)))
    best = max(frontier, key=lambda f: (s.evaluation(f, "develop").accuracy, -f))
    draw = draws(s.seed, s.first_of(k), "parent")
    others = [f for f in frontier if f != best]
    return draw.choice(others) if others and draw.random() >= 2 / 3 else best


def propose(s: Search, k: int, recalled: Recalled) -> Proposed:
    """Hypothesis and code from the author. Malformed output is recorded and never adopted."""

    def work() -> Proposed:
        answer = s.author.propose(brief(s, k, recalled), derive(s.seed, k, "propose"))
        if isinstance(answer, Malformed):
            return Proposed(rejected=True, summary=f"malformed: {answer.reason}", proposal=None, malformed=answer)
        return Proposed(summary=answer.hypothesis.title, proposal=answer, malformed=None)

    return s.stage(k, "propose", Proposed, work)


def brief(s: Search, k: int, recalled: Recalled) -> Brief:
    """What the author is shown: the parent, the frontier, earlier attempts, H0. Development facts only."""
    return Brief(
        iteration=k,
        parent=s.entry(recalled.parent),
        parent_files=s.texts(recalled.parent),
        frontier=tuple(s.entry(f) for f in sorted(s.frontier(s.first_of(k)))),
        attempts=recalling.views(s.store, s.config.memory, recalled.attempts),
        principles=s.h0.principles,
        wiki=s.h0.wiki,
        parent_evaluation=s.evaluation(recalled.parent, "develop"),
    )


# ---------------------------------------------------------------- 3: intake


def intake(s: Search, k: int, recalled: Recalled, proposed: Proposed, before: TakenIn | None = None) -> TakenIn:
    """The candidate's tree as data, committed on its own branch; a revision after what it was ``before``."""
    turn = before.turn + 1 if before else 0

    def work() -> TakenIn:
        assert proposed.proposal is not None
        proposal, hypothesis = proposed.proposal, proposed.proposal.hypothesis
        files = {path: text.encode("utf-8", "surrogatepass") for path, text in proposal.files.items()}
        try:
            tree = s.lineage.intake(files)
        except IntakeRejected as error:
            return TakenIn(rejected=True, summary=f"rejected: {error}", turn=turn)
        branch = candidate_branch(k, hypothesis.title)
        commit = s.lineage.commit(
            tree,
            (before.commit if before else s.standing_commit(recalled.parent),),
            _message(s, k, hypothesis, before),
            {
                "Iteration": str(k),
                "Parent-Iteration": str(recalled.parent),
                "Author": proposal.author,
                **({"Revision": str(turn)} if before else {}),
                "Audit-Head": s.store.head,
            },
            recalled.started,
        )
        return TakenIn(
            summary=f"tree {tree[:12]} on {branch}",
            refs={f"refs/heads/{branch}": commit},
            tree=tree,
            commit=commit,
            branch=branch,
            bundle=make_bundle(files).digest,
            turn=turn,
        )

    return s.stage(k, named("intake", turn), TakenIn, work)


def _message(s: Search, k: int, hypothesis: Hypothesis, before: TakenIn | None) -> str:
    """Of an intake commit: the hypothesis, or the changes that a revision was asked for."""
    if before is None:
        return f"Candidate {k:04d}: {hypothesis.title}\n\n{hypothesis.what}\n\nWhy: {hypothesis.why}"
    asked = "\n".join(f"{f.rule} {f.path}:{f.line} {f.message}" for f in _required(s, k))
    return f"Candidate {k:04d}, revision {before.turn + 1}: {hypothesis.title}\n\nAsked for:\n\n{asked}"


# ---------------------------------------------------------------- 4: the gate, cheap to dear


def static(s: Search, k: int, candidate: TakenIn) -> Gated:
    """Rules over the text and the syntax tree."""

    def work() -> Gated:
        return Gated.of(static_rules.check(s.files(k), s.h0.constitution, s.words))

    return s.stage(k, named("static", candidate.turn), Gated, work)


def duplicates(s: Search, k: int, candidate: TakenIn) -> Gated:
    """The same tree or the same program as an earlier attempt, or the idea of one that failed in other words."""

    def work() -> Gated:
        repeat = s.repeated(k, s.found(k, "recall", Recalled).parent, candidate.tree)
        return Gated.of(duplicate_rules.check(s.fingerprint(k, candidate.tree), s.earlier(k), repeat))

    return s.stage(k, named("duplicates", candidate.turn), Gated, work)


def smoke(s: Search, k: int, candidate: TakenIn) -> Gated:
    """A few development questions in the sandbox: does it run, and does it behave like an earlier attempt?"""
    name = named("smoke", candidate.turn)

    def work() -> Gated:
        verdict, behaviour = smoke_run.check(
            s.evaluator, bundle(s.store, candidate), "development", s.smoke_questions, f"{k:04d}/{name}"
        )
        if verdict.decision is Decision.APPROVE:
            repeat = duplicate_rules.check(s.fingerprint(k, candidate.tree, behaviour), s.earlier(k))
            if repeat.decision is Decision.REJECT:
                verdict = repeat
        elif candidate.turn < s.revisions:  # what does not run goes back with its error, as a malformed answer does
            verdict = verdict.model_copy(update={"decision": Decision.REVISE})
        return Gated.of(verdict, behaviour)

    return s.stage(k, name, Gated, work)


def dynamic(s: Search, k: int, candidate: TakenIn) -> Gated:
    """What must not matter: letters, ids, words, the future, other questions. In the sandbox, as in scoring."""
    name = named("dynamic", candidate.turn)

    def work() -> Gated:
        return Gated.of(s.dynamic.check(bundle(s.store, candidate), f"{k:04d}/{name}"))

    return s.stage(k, name, Gated, work)


def reviewer(s: Search, k: int, candidate: TakenIn) -> Gated:
    """The independent reviewer: it can add a rejection, or ask for changes as long as the author may make some."""
    turn = candidate.turn

    def work() -> Gated:
        parent = s.found(k, "recall", Recalled).parent
        case = review.Case(
            hypothesis=s.proposal(k).hypothesis,
            files=s.texts(k),
            parent_files=s.texts(parent),
            h0=s.h0,
            verdicts={name: found.verdict for name, found in gated(s.store, k).items()},
            before=_look(s, k, turn - 1),
        )
        limits = review.ReviewLimits(form=s.config.gate.review, revise=turn < s.revisions)
        seed = derive(s.seed, k, named("review", turn))
        return Gated.of(review.check(case, s.judges, seed, f"{k:04d}/review/{turn}", limits))

    return s.stage(k, named("reviewer", turn), Gated, work)


def _look(s: Search, k: int, turn: int) -> review.Look | None:
    """A round as the reviewer saw it, and what it asked for; None where it did not get to see it."""
    reviewed = s.store.stage(k, named("reviewer", turn), Gated) if turn >= 0 else None
    if reviewed is None:
        return None
    tree = intakes(s.store, k)[turn].tree
    files = {path: content.decode("utf-8") for path, content in s.lineage.read(tree).items()}
    return review.Look(reviewed.verdict.findings, files)


def _required(s: Search, k: int) -> tuple[Finding, ...]:
    """What the last verdict of the gate asked for."""
    return list(gated(s.store, k).values())[-1].verdict.findings


GATE: tuple[Callable[[Search, int, TakenIn], Gated], ...] = (static, duplicates, smoke, dynamic, reviewer)


def gate(checks: str) -> tuple[Callable[[Search, int, TakenIn], Gated], ...]:
    """The stages by ``gate.checks``: all, or, where the gate is off, whether a candidate runs at all."""
    return GATE if checks == "all" else (smoke,)


def revise(s: Search, k: int, recalled: Recalled, candidate: TakenIn) -> Proposed:
    """The author makes the changes that the gate asked for, or the candidate is rejected for the lack of them."""
    name = named("revise", candidate.turn + 1)

    def work() -> Proposed:
        before = s.proposal(k)
        required = _required(s, k)
        wanted = Revision(candidate.turn + 1, before.hypothesis, s.texts(k), required)
        assert isinstance(s.author, Reviser)  # else no changes are asked for
        answer = s.author.revise(brief(s, k, recalled), wanted, derive(s.seed, k, name))
        if isinstance(answer, Malformed):
            summary = f"rejected: {required[0].rule} {required[0].message}; no revision came: {answer.reason}"
            return Proposed(rejected=True, summary=summary, proposal=None, malformed=answer)
        return Proposed(summary=f"{len(required)} changes asked for", proposal=answer, malformed=None)

    return s.stage(k, name, Proposed, work)


# ---------------------------------------------------------------- 5: develop, audit of the result


def develop(s: Search, k: int, candidate: TakenIn) -> Measured:
    """The whole development split, paired with the parent's outcomes; the bar is by point estimate."""

    def work() -> Measured:
        off = s.config.gate.checks == "none"
        return measure(s, k, candidate, "development", "develop", no_bar if off else develop_bar)

    return s.stage(k, "develop", Measured, work)


def audit_result(s: Search, k: int, developed: Measured) -> Audited:
    """Is the development result believable? Asked before a validation is spent on it."""

    def work() -> Audited:
        if s.config.gate.checks == "none":
            unasked = StageVerdict(stage="audit", decision=Decision.APPROVE, reason="the gate is off")
            return Audited(summary=unasked.reason, verdict=unasked)
        parent = s.found(k, "recall", Recalled).parent
        verdict = result_audit.check(developed.evaluation, s.evaluation(parent, "develop"))
        rejected = verdict.decision is Decision.REJECT
        return Audited(rejected=rejected, summary=verdict.reason or "nothing suspicious", verdict=verdict)

    return s.stage(k, "audit", Audited, work)


# ---------------------------------------------------------------- 6 and 7: validate, promote


def validate(s: Search, k: int, candidate: TakenIn) -> Measured:
    """The held-out split, with tests. Agents learn the verdict, never a figure of it."""

    def work() -> Measured:
        return measure(s, k, candidate, "validation", "validate", validate_bar)

    return s.stage(k, "validate", Measured, work)


def measure(s: Search, k: int, candidate: TakenIn, split: str, name: str, bar: Bar) -> Measured:
    """Evaluate on one split and hold the result against the bar: the parent's and the frontier's outcomes."""
    evaluation = s.evaluator.evaluate(bundle(s.store, candidate), split, f"{k:04d}/{name}")
    parent = s.found(k, "recall", Recalled).parent
    frontier = tuple(s.evaluation(f, name) for f in s.frontier(k))
    decision = bar(evaluation, s.evaluation(parent, name), frontier, s.rule)
    return Measured(
        rejected=not decision.accepted,
        summary=f"{headline(evaluation)}; {decision.reason}",
        evaluation=evaluation,
        reasons=decision.reasons,
        p_value=decision.p_value,
    )


def promote(s: Search, k: int, candidate: TakenIn, validated: Measured) -> Promoted:
    """Merge exactly the candidate's tree into ``main`` and mark the new frontier set."""

    def work() -> Promoted:
        before = s.frontier(k)
        after = pareto({f: point(s.evaluation(f, "validate")) for f in (*before, k)})
        date = s.found(k, "recall", Recalled).started
        outcome = outcome_commit(s, k, candidate, "promoted", date)
        merge = s.lineage.commit(
            candidate.tree,
            (s.store.refs()["refs/heads/main"], outcome),
            f"Promote {k:04d}: {s.title(k)}\n\n{validated.summary}",
            {"Iteration": str(k), "Audit-Head": s.store.head},
            date,
        )
        refs: dict[str, str | None] = {"refs/heads/main": merge, f"refs/heads/{candidate.branch}": outcome}
        refs |= {f"refs/tags/frontier/{f:04d}": None for f in before if f not in after}
        refs |= {f"refs/tags/frontier/{k:04d}": merge} if k in after else {}
        summary = "promoted; the frontier is now " + ", ".join(f"{f:04d}" for f in after)
        return Promoted(summary=summary, refs=refs, frontier=after, commit=merge)

    return s.stage(k, "promote", Promoted, work)
