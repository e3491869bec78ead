"""Answering by the fixed answer model, and what is done when it refuses."""

from __future__ import annotations

from collections.abc import Sequence

from policies.contract import Answer, Asking, Json, Query, Read, ReadReply, Refused


def read(
    query: Query,
    context: str,
    route: str,
    evidence: Sequence[int] = (),
    instructions: str = "",
    diagnostics: dict[str, Json] | None = None,
) -> Asking:
    """Ask f once and return the ``Answer``; a refusal or a reply without a letter abstains and says so."""
    notes: dict[str, Json] = dict(diagnostics or {})
    try:
        reply = yield Read(query.question, query.choices, context, instructions)
    except Refused as refusal:
        notes["refused"] = f"{type(refusal).__name__}: {refusal}"[:300]
        return Answer(None, route, tuple(evidence), notes)
    choice = reply.choice if isinstance(reply, ReadReply) and reply.choice in query.choices else None
    notes["parsed"] = choice is not None
    return Answer(choice, route, tuple(evidence), notes)
