"""The last gate stage: an independent reviewer, rules first, then one model call where a model is configured.

The candidate's text reaches the model as data between fences that do not occur in it; the verdict is taken only from a
complete JSON reply that repeats a nonce. Anything else is a rejection, and no reply can lift a rule's finding.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import unified_diff
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.agents.interface import Hypothesis
from harness.gate.interface import Decision, Finding, StageVerdict
from harness.gate.prompts import render_prompt
from harness.gate.review_rules import check_review
from harness.gate.source import escape
from harness.models.counting import count_tokens
from harness.models.interface import ChatMessage, ChatRequest, Models, ReplyKind, RequestRefused, Role
from harness.models.structured import Unparseable, parse_json
from principles.h0 import H0, Enforcer

INCOMPLETE = "R06"
"""The rule that the reviewer's own reply is held to; the model decides on the others of its enforcer."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is reviewed. ``findings`` are what earlier stages noted."""

    hypothesis: Hypothesis
    files: Mapping[str, str]
    parent_files: Mapping[str, str]
    h0: H0
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class ReviewLimits:
    """The reviewer's window; not given by the source."""

    window_tokens: int = 32_000
    """Prompt and reply together."""
    reply_tokens: int = 400
    form: Literal["whole", "change"] = "whole"
    """``change`` shows the rules decided on and what differs from the parent, without constitution and whole files."""


class Reply(BaseModel):
    """The structured verdict, exactly these keys."""

    model_config = ConfigDict(extra="forbid", strict=True)

    nonce: str
    verdict: Literal["approve", "reject"]
    rules: list[str]
    reason: str


def schema(rules: Iterable[str]) -> Mapping[str, Any]:
    """JSON schema of ``Reply`` over the rules that the model decides on; the reason comes before the verdict."""
    return {
        "type": "object",
        "properties": {
            "nonce": {"type": "string"},
            "reason": {"type": "string"},
            "rules": {"type": "array", "items": {"type": "string", "enum": list(rules)}},
            "verdict": {"type": "string", "enum": ["approve", "reject"]},
        },
        "required": ["nonce", "reason", "rules", "verdict"],
        "additionalProperties": False,
    }


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
    prompt, nonce = render(case, seed, window.form)
    size = count_tokens(prompt) + window.reply_tokens
    name = models.describe(Role.REVIEWER)
    if size > window.window_tokens:
        message = f"{size} tokens to review; the reviewer's window holds {window.window_tokens}"
        return _verdict((Finding(rule=INCOMPLETE, message=message),), "rules", started)
    request = ChatRequest((ChatMessage("user", prompt),), window.reply_tokens, 0.0, schema=schema(decided(case.h0)))
    try:
        reply = models.chat(Role.REVIEWER, request, scope)
    except RequestRefused as refusal:
        message = f"the reviewer's endpoint refused the request: {escape(str(refusal), 200)}"
        return _verdict((Finding(rule=INCOMPLETE, message=message),), name, started)
    if reply.kind is not ReplyKind.OK:
        return _verdict(
            (Finding(rule=INCOMPLETE, message=f"the reviewer's reply is {reply.kind.value}"),), name, started
        )
    return _verdict(judge(reply.text, nonce, decided(case.h0)), name, started)


def _verdict(findings: tuple[Finding, ...], decided_by: str, started: float) -> StageVerdict:
    return StageVerdict(
        stage="reviewer",
        decision=Decision.REJECT if findings else Decision.APPROVE,
        findings=findings,
        reason=f"{findings[0].rule} {findings[0].message}" if findings else "",
        decided_by=decided_by,
        seconds=time.perf_counter() - started,
    )


def render(case: Case, seed: int, form: str = "whole") -> tuple[str, str]:
    """The prompt and the nonce that the reply must repeat."""
    texts = (*case.files.values(), *case.parent_files.values(), *(f.message for f in case.findings))
    material = "\n".join([case.hypothesis.model_dump_json(), *texts])
    fence = "=====" + absent_token(material, seed, "fence") + "====="
    nonce = absent_token(material, seed, "nonce")
    changed = {path for path, text in case.files.items() if case.parent_files.get(path) != text}
    prompt = render_prompt(
        "reviewer_v1" if form == "whole" else "reviewer_change_v1",
        rules=decided(case.h0),
        constitution=case.h0.constitution_text,
        hypothesis=case.hypothesis,
        findings=case.findings,
        files=sorted(case.files.items()),
        changed=changed,
        diff=difference(case.parent_files, case.files),
        fence=fence,
        nonce=nonce,
    )
    return prompt, nonce


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


def absent_token(material: str, seed: int, purpose: str) -> str:
    """24 characters that look random, are a function of the seed, and do not occur in ``material``."""
    attempt = 0
    while True:
        token = hashlib.sha256(f"{seed}/{purpose}/{attempt}".encode()).hexdigest()[:24]
        if token not in material:
            return token
        attempt += 1


def judge(text: str, nonce: str, rules: Mapping[str, str]) -> tuple[Finding, ...]:
    """Findings of a reply; empty only for a complete, consistent approval with the right nonce."""
    try:
        reply = Reply.model_validate(parse_json(text, lenient=False))
    except (Unparseable, ValidationError):
        return (Finding(rule=INCOMPLETE, message=f"no complete verdict: {escape(text.strip(), 120)}"),)
    if reply.nonce != nonce:
        return (Finding(rule=INCOMPLETE, message="the verdict does not repeat the nonce"),)
    known = [rule for rule in dict.fromkeys(reply.rules) if rule in rules]
    reason = escape(" ".join(reply.reason.split()), 300)
    if len(known) != len(set(reply.rules)):
        return (Finding(rule=INCOMPLETE, message=f"the verdict names an unknown rule: {reason}"),)
    if reply.verdict == "approve" and not known:
        return ()
    if reply.verdict == "approve":
        return (Finding(rule=INCOMPLETE, message=f"approves while naming broken rules: {reason}"),)
    return tuple(Finding(rule=rule, message=reason) for rule in known or [INCOMPLETE])
