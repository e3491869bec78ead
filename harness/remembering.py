"""How an iteration and a run end: the outcome commit, the attempt in meta-memory, the closing evaluation."""

from __future__ import annotations

import re

from harness import recalling
from harness.agents.analyst import distil
from harness.agents.interface import Hypothesis
from harness.evaluation.metrics import by_type
from harness.evaluation.outcomes import Evaluation
from harness.evaluation.report import headline
from harness.frontier import point
from harness.gate.reviewer import difference
from harness.outcomes import (
    STAGES,
    Closed,
    Gated,
    Inherited,
    Measured,
    Outcome,
    Proposed,
    Recalled,
    Remembered,
    TakenIn,
)
from harness.rounds import base, gated, reached, taken_in
from harness.search import REFERENCES, Search
from harness.seeds import derive
from meta_memory.records import Attempt
from policies import library
from sandbox.bundle import make_bundle


def outcome_commit(s: Search, k: int, candidate: TakenIn, outcome: str, date: float) -> str:
    """A commit with the candidate's own tree that tells what came of it, figures as trailers."""
    trailers = {"Iteration": str(k), "Outcome": outcome}
    developed = s.store.stage(k, "develop", Measured)
    if developed is not None:
        e = developed.evaluation
        trailers["Dev-Accuracy"] = f"{e.accuracy:.4f}"
        trailers["Dev-Questions"] = str(len(e.items))
        trailers["Dev-Tokens-Per-Question"] = f"{e.tokens_per_question:.1f}"
        trailers["Reader"] = e.reader
    validated = s.store.stage(k, "validate", Measured)
    if validated is not None:
        trailers["Validation-Accuracy"] = f"{validated.evaluation.accuracy:.4f}"
        trailers["Validation-Questions"] = str(len(validated.evaluation.items))
        if validated.p_value is not None:
            trailers["Validation-P"] = f"{validated.p_value:.4g}"
    trailers["Audit-Head"] = s.store.head
    _, last = last_stage(s, k)
    message = f"Outcome {k:04d}: {outcome}\n\n{last.summary}"
    return s.lineage.commit(candidate.tree, (candidate.commit,), message, trailers, date)


def last_stage(s: Search, k: int) -> tuple[str, Outcome]:
    """Name and outcome of the last stage that an attempt reached, in whichever round."""
    name, kind = list(reached(s.store, k).items())[-1]
    return base(name), s.found(k, name, kind)


def remember(s: Search, k: int) -> Remembered:
    """Stage 8: outcome, cost and lesson into meta-memory; the candidate's branch gets its outcome commit."""
    done = s.store.stage(k, "remember", Remembered)
    if done is not None:
        return done
    s.watcher.stage(k, "remember")
    name, last = last_stage(s, k)
    recalled = s.found(k, "recall", Recalled)
    candidate = taken_in(s.store, k)
    outcome = "promoted" if name == "promote" else f"rejected at {name}"
    refs: dict[str, str | None] = {}
    if candidate is not None and name != "promote":
        commit = outcome_commit(s, k, candidate, outcome, recalled.started)
        refs[f"refs/heads/{candidate.branch}"] = commit
    attempt = _with_lesson(s, k, _attempt(s, k, name, last, recalled))
    spent = s.spent()
    tokens = spent.prompt_tokens + spent.completion_tokens
    before = s.store.stage(k - 1, "remember", Remembered) if k > 1 else None
    attempt = attempt.model_copy(
        update={
            "search_tokens": tokens - (before.spent_tokens if before else 0),
            "search_dollars": spent.dollars - (before.spent_dollars if before else 0.0),
        }
    )
    remembered = Remembered(
        summary=f"{s.title(k)}: {outcome}{_in_short(attempt)}",
        refs=refs,
        spent_tokens=tokens,
        spent_dollars=spent.dollars,
    )
    s.store.commit_stage(k, "remember", remembered, refs=refs, summary=remembered.summary, attempt=attempt)
    s.watcher.committed(k, "remember", remembered)
    return remembered


def _in_short(attempt: Attempt) -> str:
    """What the closing line of an iteration says beside the outcome; ``show`` tells the rest."""
    if attempt.dev_accuracy is not None and attempt.dev_delta is not None:
        tokens = f"{attempt.tokens_per_question:.0f} tokens per question"
        change = f"{100 * attempt.dev_delta:+.1f} against {attempt.parent:04d}"
        return f"; dev {100 * attempt.dev_accuracy:.1f} % ({change}), {tokens}"
    return f"; {attempt.cause[:120]}"


def inherit(s: Search) -> None:
    """What is taken over of an earlier run, copied once; nothing where none is named or the copy is there."""
    source = s.source
    if source is not None:
        reader = s.evaluation(0, "develop").reader
        s.stage(0, "inherit", Inherited, lambda: recalling.taken_over(source, s.data.digest, reader))


def _with_lesson(s: Search, k: int, attempt: Attempt) -> Attempt:
    """The analyst's lesson, or the rules': what the attempt teaches. The call is stored and paid like any other."""
    changed = difference(s.texts(attempt.parent), s.texts(k)) if attempt.tree else ""
    lesson = distil(attempt, changed, s.models, derive(s.seed, k, "analyst"), f"{k:04d}/remember/analyst")
    return attempt.model_copy(update={"lesson": lesson.text, "lesson_by": lesson.by, "lesson_failure": lesson.failure})


def _attempt(s: Search, k: int, name: str, last: Outcome, recalled: Recalled) -> Attempt:
    proposed = s.found(k, "propose", Proposed)
    hypothesis = proposed.proposal.hypothesis if proposed.proposal else None
    candidate = taken_in(s.store, k)
    developed = s.store.stage(k, "develop", Measured)
    validated = s.store.stage(k, "validate", Measured)
    parent = s.evaluation(recalled.parent, "develop")
    evaluation = developed.evaluation if developed else None
    before, shares = by_type(parent), by_type(evaluation) if evaluation else {}
    return Attempt(
        iteration=k,
        parent=recalled.parent,
        parent_tree=s.candidate(recalled.parent).tree,
        title=hypothesis.title if hypothesis else "no usable proposal",
        hypothesis=hypothesis.what if hypothesis else "",
        why=hypothesis.why if hypothesis else "",
        expected=_expected(hypothesis),
        tree=candidate.tree if candidate else "",
        change=s.change(candidate.tree, recalled.parent) if evaluation and candidate else {},
        outcome={"promote": "promoted", "propose": "malformed", "revise": _asking(s, k)}.get(name, name),
        cause=_cause(name, last),
        rules=_rules(s, k, name),
        dev_accuracy=evaluation.accuracy if evaluation else None,
        dev_delta=evaluation.accuracy - parent.accuracy if evaluation else None,
        dev_by_type=shares,
        dev_delta_by_type={kind: share - before[kind] for kind, share in shares.items() if kind in before},
        tokens_per_question=evaluation.tokens_per_question if evaluation else None,
        parent_tokens_per_question=parent.tokens_per_question if evaluation else None,
        latency_bucket=point(evaluation).bucket if evaluation else None,
        validation_accuracy=validated.evaluation.accuracy if validated else None,
        validation_p=validated.p_value if validated else None,
    )


def _asking(s: Search, k: int) -> str:
    """The stage of the gate that spoke last; empty where none did."""
    return base(next(reversed(gated(s.store, k)), ""))


def _rules(s: Search, k: int, name: str) -> tuple[str, ...]:
    """Ids of the rules that the gate's last verdict names, where the gate ended it."""
    if STAGES[name] is not Gated and name != "revise":
        return ()
    verdict = list(gated(s.store, k).values())[-1].verdict
    return tuple(dict.fromkeys(finding.rule for finding in verdict.findings))


def _expected(hypothesis: Hypothesis | None) -> dict[str, str]:
    """What the author expected, kept beside what was measured."""
    if hypothesis is None:
        return {}
    stated = {
        "accuracy": hypothesis.expected_accuracy,
        "tokens": hypothesis.expected_tokens,
        "latency": hypothesis.expected_latency,
    }
    return {name: text for name, text in stated.items() if text}


def _cause(name: str, last: Outcome) -> str:
    """Why it was rejected, in words that agents may see: of validation the verdict only, never a figure."""
    if name == "promote":
        return ""
    if name == "validate":
        return "passed on the development split, but not measurably better on the held-out videos"
    if isinstance(last, Measured):
        return "; ".join(last.reasons)
    return re.sub("^(rejected|malformed): ", "", last.summary)


def close(s: Search, iterations: int) -> Closed | None:
    """Measure the first and the final policy and the references on the test split, once for a finished search.

    A search that is already longer than asked for is closed at its own length. None where the data has no test
    split. The only place that touches it.
    """
    if "test" not in s.data.splits:
        return None
    iterations = max(iterations, *(attempt.iteration for attempt in s.store.attempts()), 0)

    def work() -> Closed:
        final = s.best(iterations + 1)
        uses = sum(stage == "closing" for _, stage in s.store.stages())
        evaluations: dict[str, Evaluation] = {}
        for label, k in (("first", 0), ("final", final)):
            evaluations[label] = s.evaluator.evaluate(make_bundle(s.files(k)), "test", f"closing/{iterations}/{label}")
        for name in REFERENCES:
            reference = make_bundle(library.load(name))
            evaluations[name] = s.evaluator.evaluate(reference, "test", f"closing/{iterations}/{name}")
        gain = 100 * (evaluations["final"].accuracy - evaluations["first"].accuracy)
        figures = headline(evaluations["final"])
        return Closed(
            summary=f"test split, use {uses + 1}: {gain:+.1f} points over the first policy; {figures}",
            use=uses + 1,
            evaluations=evaluations,
            final=final,
        )

    return s.stage(iterations, "closing", Closed, work)
