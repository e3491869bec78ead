"""The third gate stage: a few development questions in the sandbox. Does it run, and has it been seen before?

Whether its answers are right is not looked at.
"""

from __future__ import annotations

import hashlib
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence

from harness.data.native import Dataset
from harness.evaluation.executor import Evaluator
from harness.evaluation.outcomes import Evaluation, Item
from harness.gate.interface import Decision, Finding, StageVerdict
from harness.gate.sampling import of_one_video
from harness.gate.source import escape
from policies.contract import REFUSALS
from sandbox.interface import Bundle, Verdict

RULE_OF: dict[Verdict, str] = {
    Verdict.CRASH: "K01",
    Verdict.TIMEOUT: "K02",
    Verdict.OOM: "K03",
    Verdict.PROTOCOL: "K04",
    Verdict.OUTPUT_LIMIT: "K04",
}
EARLY = 6
"""The sample is drawn from the first ``EARLY`` times as many questions of a video: their prefix is short."""


def sample(data: Dataset, split: str, count: int, seed: int) -> tuple[str, ...]:
    """Ids of ``count`` early questions of one video of the split, of as many types as it has; the same for every
    candidate of a run."""
    draw = random.Random(seed)
    early = of_one_video(data, split, count, draw)[: EARLY * count]
    draw.shuffle(early)
    turns: dict[str, int] = defaultdict(int)
    placed: list[tuple[int, str]] = []
    for question in early:
        placed.append((turns[question.type], question.id))
        turns[question.type] += 1
    placed.sort(key=lambda place: place[0])
    return tuple(sorted(name for _, name in placed[:count]))


def check(
    evaluator: Evaluator, bundle: Bundle, split: str, questions: Sequence[str], scope: str
) -> tuple[StageVerdict, str]:
    """The verdict of the smoke run, and a digest of what the candidate did.

    The digest goes to ``duplicates.check``. Raises what ``Evaluator.evaluate`` raises: that says nothing about the
    candidate.
    """
    started = time.perf_counter()
    evaluation = evaluator.evaluate(bundle, split, scope, questions)
    findings = tuple(judge(evaluation.items))
    verdict = StageVerdict(
        stage="smoke",
        decision=Decision.REJECT if findings else Decision.APPROVE,
        findings=findings,
        reason=f"{findings[0].rule} {findings[0].message}" if findings else f"{len(evaluation.items)} questions ran",
        seconds=time.perf_counter() - started,
    )
    return verdict, behaviour(evaluation)


def judge(items: Sequence[Item]) -> list[Finding]:
    """One finding for each rule that a question broke."""
    findings = broken([(item.verdict, item.detail) for item in items])
    if not findings and all(item.choice is None for item in items):
        message = f"abstains on all {len(items)} questions; it must return a letter"
        findings.append(Finding(rule="K05", path="policy.py", message=message))
    return findings


def broken(questions: Sequence[tuple[Verdict, str]]) -> list[Finding]:
    """One finding for each of K01 to K04 and K06 that verdicts and their details show."""
    by_rule: dict[str, list[tuple[Verdict, str]]] = defaultdict(list)
    for verdict, detail in questions:
        if verdict is not Verdict.OK:
            by_rule[_rule(verdict, detail)].append((verdict, detail))
    return [
        Finding(
            rule=rule,
            path="policy.py",
            message=f"{found[0][0].value} on {len(found)} of {len(questions)}: {escape(found[0][1], 240)}",
        )
        for rule, found in sorted(by_rule.items())
    ]


def _rule(verdict: Verdict, detail: str) -> str:
    if verdict is Verdict.CRASH and any(name in detail for name in REFUSALS):
        return "K06"  # a refused request ended the question: the policy does not take no for an answer
    return RULE_OF.get(verdict, "K01")


def behaviour(evaluation: Evaluation) -> str:
    """sha256 of verdicts, answers, routes, evidence and contexts in the order of the questions."""
    done = [[i.verdict.value, i.choice, i.route, list(i.evidence), i.context_sha256] for i in evaluation.items]
    return hashlib.sha256(json.dumps(done).encode()).hexdigest()
