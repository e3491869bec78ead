"""What the reviewer's model replies, and what is made of it: anything but a complete, consistent verdict rejects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.gate.interface import Decision, Finding
from harness.gate.source import escape
from harness.models.structured import Unparseable, parse_json

INCOMPLETE = "R06"
"""The rule that the reviewer's own reply is held to; the model decides on the others of its enforcer."""
NOT_MADE = "not made: "
MOST = 12
"""Places of one verdict that are kept. Not given by the source."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the model was asked to decide."""

    nonce: str
    """What its reply must repeat."""
    rules: Mapping[str, str]
    """Id and text of the rules that it decides on."""
    lines: Mapping[str, int] = field(default_factory=dict)
    """Number of lines of each file."""
    places: bool = False
    """Whether it names files and lines."""
    revise: bool = False
    """Whether it may ask for a revision."""
    required: Sequence[Finding] = ()
    """The changes that it asked for before, in the order in which it says of each whether it was made."""


class Place(BaseModel):
    """Where a rule is broken, and what has to change there."""

    model_config = ConfigDict(extra="forbid", strict=True)

    rule: str
    path: str
    line: int
    what: str


class Reply(BaseModel):
    """The structured verdict, exactly these keys."""

    model_config = ConfigDict(extra="forbid", strict=True)

    nonce: str
    verdict: Literal["approve", "revise", "reject"]
    rules: list[str]
    reason: str
    places: list[Place] = []
    made: list[bool] = []


def schema(asked: Asked) -> Mapping[str, Any]:
    """JSON schema of the reply; what it rests on comes before the verdict."""
    text, rule = {"type": "string"}, {"type": "string", "enum": list(asked.rules)}
    place = {"rule": rule, "path": text, "line": {"type": "integer"}, "what": text}
    properties: dict[str, Any] = {"nonce": text, "reason": text}
    if asked.required:
        properties["made"] = {"type": "array", "items": {"type": "boolean"}}
    if asked.places:
        properties["places"] = {"type": "array", "items": _object(place)}
    properties["rules"] = {"type": "array", "items": rule}
    verdicts = ["approve", "revise", "reject"] if asked.revise else ["approve", "reject"]
    return _object({**properties, "verdict": {"type": "string", "enum": verdicts}})


def _object(properties: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def judge(text: str, asked: Asked) -> tuple[Decision, tuple[Finding, ...]]:
    """The verdict of a reply and its findings. Approved is only what a complete and consistent approval with the right
    nonce approves; what was required and not made is a finding again."""
    try:
        reply = Reply.model_validate(parse_json(text, lenient=False))
    except (Unparseable, ValidationError):
        return _incomplete(f"no complete verdict: {escape(text.strip(), 120)}")
    if reply.nonce != asked.nonce:
        return _incomplete("the verdict does not repeat the nonce")
    reason = escape(" ".join(reply.reason.split()), 300)
    if not {*reply.rules, *(place.rule for place in reply.places)} <= asked.rules.keys():
        return _incomplete(f"the verdict names an unknown rule: {reason}")
    if len(reply.made) != len(asked.required):
        message = (
            f"says of {len(reply.made)} of {len(asked.required)} required changes whether they were made: {reason}"
        )
        return _incomplete(message)
    findings = (*_unmade(reply, asked), *_broken(reply, asked, reason))
    if reply.verdict == "approve":
        return _incomplete(f"approves while naming broken rules: {reason}") if findings else (Decision.APPROVE, ())
    if reply.verdict == "revise" and asked.revise and findings:
        return Decision.REVISE, findings
    return (Decision.REJECT, findings) if findings else _incomplete(reason)


def _incomplete(message: str) -> tuple[Decision, tuple[Finding, ...]]:
    return Decision.REJECT, (Finding(rule=INCOMPLETE, message=message),)


def _unmade(reply: Reply, asked: Asked) -> list[Finding]:
    return [
        change.model_copy(update={"message": NOT_MADE + change.message.removeprefix(NOT_MADE)})
        for change, made in zip(asked.required, reply.made, strict=True)
        if not made
    ]


def _broken(reply: Reply, asked: Asked, reason: str) -> list[Finding]:
    """A finding for each place, and one for each rule that no place names."""
    found = []
    for place in reply.places[:MOST]:
        path = place.path if place.path in asked.lines else ""
        line = place.line if path and 1 <= place.line <= asked.lines[path] else 0
        what = escape(" ".join(place.what.split()), 300) or reason
        found.append(Finding(rule=place.rule, path=path, line=line, message=what))
    named = {finding.rule for finding in found}
    return found + [Finding(rule=r, message=reason) for r in dict.fromkeys(reply.rules) if r not in named]
