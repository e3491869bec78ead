"""What a Read may ask for. An exported policy carries this module along, so that it is held to the same."""

from __future__ import annotations

from collections.abc import Container

from policies.contract import BadRequest, Budget, NotPermitted, OverBudget, Query, Read

INSTRUCTION_CHARS = 2_000
"""Cap of ``Read.instructions``: room for the source's five obligations, too little for a second context. Not given."""
READ_TOKENS = 1_024
"""Completion cap of a Read: one letter, and room for a model that thinks first. Not given by the source."""


def check_read(read: Read, query: Query, budget: Budget, made: int, frames: Container[str]) -> None:
    """Raises NotPermitted, OverBudget or BadRequest where the Read may not be served.

    ``made``: Reads that were served for the open question. ``frames``: references of the frames that it was given.
    """
    if read.question != query.question:
        raise NotPermitted("Read.question must be the open question, word for word")
    if read.choices.keys() != query.choices.keys() or sorted(read.choices.values()) != sorted(query.choices.values()):
        raise NotPermitted("Read.choices must be the open question's choices; only their order may differ")
    if made >= budget.reads:
        raise OverBudget(f"more than {budget.reads} Read requests for one question")
    if len(read.context) > budget.context_chars:
        raise OverBudget(f"context of {len(read.context)} characters, at most {budget.context_chars} are allowed")
    if len(read.instructions) > INSTRUCTION_CHARS:
        raise OverBudget(
            f"instructions of {len(read.instructions)} characters, at most {INSTRUCTION_CHARS} are allowed"
        )
    if len(read.frames) > budget.frames or len(set(read.frames)) < len(read.frames):
        raise OverBudget(f"at most {budget.frames} frames, each once")
    if any(ref not in frames for ref in read.frames):
        raise BadRequest("a frame reference that no Frames reply to this question gave")
