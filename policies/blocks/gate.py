"""The visual gate: open(q) if and only if StrongVisualNeed(q) and WeakText of the text answer.

``rule`` is the method's gate. ``llm-judge`` asks f instead whether frames are needed, ``always`` and ``never`` ask
nobody: what the rule is compared with.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from policies.blocks.memory import Memory
from policies.blocks.support import choice_hit_counts
from policies.blocks.visual_need import strong_visual_need
from policies.blocks.weak_text import weak_text
from policies.contract import Answer, Asking, Generate, GenerateReply, Json, Message, Query, Refused

Gate: TypeAlias = Literal["rule", "llm-judge", "always", "never"]
GATES: tuple[Gate, ...] = ("rule", "llm-judge", "always", "never")
JUDGE_TOKENS = 64
"""Completion tokens of the judge. Not given by the source: one Boolean as JSON."""

_JUDGE = """\
A question about a video was answered from text alone: captions and transcripts, no pictures.
Decide whether frames of the video have to be looked at before the answer can be trusted."""
"""Not given by the source, which only says that a model decided."""
_VERDICT = {
    "type": "object",
    "properties": {"look_at_frames": {"type": "boolean"}},
    "required": ["look_at_frames"],
    "additionalProperties": False,
}


def opens(gate: Gate, memory: Memory, query: Query, answer: Answer) -> Asking:
    """Return (whether frames are consulted, notes for the diagnostics); ``answer`` is the text stage's."""
    if gate in ("always", "never"):
        return gate == "always", {"gate": gate}
    notes: dict[str, Json] = {"gate": gate}
    if gate == "llm-judge":
        try:
            return (yield from _judged(query, answer)), notes
        except Refused as refusal:
            notes["gate"] = f"rule, since the judge was refused: {type(refusal).__name__}"
    return _by_rule(memory, query, answer, notes), notes


def _by_rule(memory: Memory, query: Query, answer: Answer, notes: dict[str, Json]) -> bool:
    need = strong_visual_need(query)
    notes["visual_need"] = need
    if not need:
        return False
    hits = choice_hit_counts(memory, query)
    parsed, direct = bool(answer.diagnostics.get("parsed")), bool(answer.diagnostics.get("direct"))
    weak = weak_text(parsed, direct, answer.route, hits)
    notes["weak_text"] = weak
    notes["choice_hit_counts"] = dict(zip(query.choices, hits, strict=True))
    return weak


def _judged(query: Query, answer: Answer) -> Asking:
    choices = "\n".join(f"{letter}. {text}" for letter, text in query.choices.items())
    asked = (
        f"Question type: {query.type}\nQuestion: {query.question}\n{choices}\nText answer: {answer.choice or 'none'}"
    )
    reply = yield Generate((Message("system", _JUDGE), Message("user", asked)), JUDGE_TOKENS, _VERDICT)
    return isinstance(reply, GenerateReply) and isinstance(reply.value, dict) and reply.value["look_at_frames"] is True
