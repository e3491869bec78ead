"""The last gate stage: an independent reviewer, rules first, then one model call where a model is configured.

The candidate's text reaches the model as data between fences that do not occur in it; the verdict is taken only from a
complete JSON reply that repeats a nonce. Anything else is a rejection, and no reply can lift a rule's finding.
A model may ask for changes instead; the next look at the revised candidate says of each whether it was made.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import unified_diff
from typing import Literal

from harness.agents.interface import Hypothesis
from harness.gate.fence import absent_token, fence
from harness.gate.interface import Decision, Finding, StageVerdict
from harness.gate.prompts import render_prompt
from harness.gate.review_reply import INCOMPLETE, Asked, judge, schema
from harness.gate.review_rules import check_review
from harness.gate.source import escape
from harness.models.counting import count_tokens
from harness.models.interface import ChatMessage, ChatRequest, Models, ReplyKind, RequestRefused, Role
from principles.h0 import H0, Enforcer

Form = Literal["whole", "change"]
REPLY_TOKENS: Mapping[str, int] = {"whole": 1_000, "change": 400}
"""Of one reply; not given by the source."""


@dataclass(frozen=True, slots=True)
class Look:
    """An earlier look at the same candidate that asked for changes."""

    required: tuple[Finding, ...]
    files: Mapping[str, str]
    """The candidate as it was then."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is reviewed."""

    hypothesis: Hypothesis
    files: Mapping[str, str]
    parent_files: Mapping[str, str]
    h0: H0
    verdicts: Mapping[str, StageVerdict] = field(default_factory=dict)
    """What earlier stages said of it, and the reviewer of what it was before, in order, by the stages' names."""
    before: Look | None = None


@dataclass(frozen=True, slots=True)
class ReviewLimits:
    """The reviewer's window, and what it is asked."""

    window_tokens: int = 32_000
    """Prompt and reply together. Not given by the source."""
    form: Form = "whole"
    """``change`` shows the rules decided on and what differs from the parent, without constitution and whole files,
    and asks for a yes or no."""
    revise: bool = False
    """Whether it may ask for changes; with ``whole`` only."""


def check(case: Case, models: Models, seed: int, scope: str, limits: ReviewLimits | None = None) -> StageVerdict:
    """The reviewer's verdict.

    ``seed`` draws fence and nonce; ``scope`` names the call in the reply store. Raises ModelError and CapReached, which
    say nothing about the candidate; every reply that came is a verdict.
    """
    started = time.perf_counter()
    findings = tuple(check_review(case.hypothesis, case.files, case.parent_files))
    if findings or not models.has(Role.REVIEWER):
        return _verdict(findings, "rules", started)
    window = limits or ReviewLimits()
    prompt, asked = render(case, seed, window)
    reply_tokens = REPLY_TOKENS[window.form]
    size = count_tokens(prompt) + reply_tokens
    name = models.describe(Role.REVIEWER)
    if size > window.window_tokens:
        message = f"{size} tokens to review; the reviewer's window holds {window.window_tokens}"
        return _verdict((Finding(rule=INCOMPLETE, message=message),), "rules", started)
    request = ChatRequest((ChatMessage("user", prompt),), reply_tokens, 0.0, schema=schema(asked))
    try:
        reply = models.chat(Role.REVIEWER, request, scope)
    except RequestRefused as refusal:
        message = f"the reviewer's endpoint refused the request: {escape(str(refusal), 200)}"
        return _verdict((Finding(rule=INCOMPLETE, message=message),), name, started)
    if reply.kind is not ReplyKind.OK:
        return _verdict(
            (Finding(rule=INCOMPLETE, message=f"the reviewer's reply is {reply.kind.value}"),), name, started
        )
    decision, findings = judge(reply.text, asked)
    return _verdict(findings, name, started, decision)


def _verdict(
    findings: tuple[Finding, ...], decided_by: str, started: float, decision: Decision = Decision.REJECT
) -> StageVerdict:
    return StageVerdict(
        stage="reviewer",
        decision=decision if findings else Decision.APPROVE,
        findings=findings,
        reason=f"{findings[0].rule} {findings[0].message}" if findings else "",
        decided_by=decided_by,
        seconds=time.perf_counter() - started,
    )


def render(case: Case, seed: int, limits: ReviewLimits | None = None) -> tuple[str, Asked]:
    """The prompt, and what it asks for."""
    window = limits or ReviewLimits()
    whole = window.form == "whole"
    before = case.before
    diff = difference(case.parent_files, case.files)
    since = difference(before.files, case.files) if before else ""
    said = [verdict.model_dump_json() for verdict in case.verdicts.values()]
    required = before.required if before else ()
    said += [change.model_dump_json() for change in required]
    texts = (*case.files.values(), *case.parent_files.values(), *(before.files.values() if before else ()))
    material = "\n".join([case.hypothesis.model_dump_json(), *said, *texts])
    lines = {path: text.count("\n") + 1 for path, text in case.files.items()}
    nonce = absent_token(material, seed, "nonce")
    asked = Asked(nonce, decided(case.h0), lines, places=whole, revise=whole and window.revise, required=required)
    changed = {path for path, text in case.files.items() if case.parent_files.get(path) != text}
    prompt = render_prompt(
        "reviewer_v2" if whole else "reviewer_change_v1",
        rules=asked.rules,
        constitution=case.h0.constitution_text,
        hypothesis=case.hypothesis,
        verdicts=case.verdicts,
        findings=[finding for verdict in case.verdicts.values() for finding in verdict.findings],
        files=[(path, numbered(text)) for path, text in sorted(case.files.items())],
        changed=changed,
        diff=diff,
        required=required,
        since=since,
        revise=asked.revise,
        fence=fence(material, seed),
        nonce=nonce,
    )
    return prompt, asked


def numbered(text: str) -> str:
    """The whole text with the number of each line before it."""
    return "\n".join(f"{number:4d} {line}" for number, line in enumerate(text.split("\n"), 1))


def difference(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """Unified difference of two packages, without line numbers: what the candidate changed."""
    lines = []
    for path in sorted({*before, *after}):
        old, new = before.get(path, "").split("\n"), after.get(path, "").split("\n")
        lines += [line for line in unified_diff(old, new, path, path, n=1, lineterm="") if not line.startswith("@@")]
    return "\n".join(lines)


def decided(h0: H0) -> dict[str, str]:
    """Id and text of the rules that the model decides on."""
    return {rule.id: rule.text for rule in h0.constitution.of(Enforcer.REVIEWER) if rule.id != INCOMPLETE}
