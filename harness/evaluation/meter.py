"""What one question, or the construction of one memory, has cost so far. Plain data that can be pickled."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from harness.evaluation.outcomes import Cost
from harness.models.interface import Usage
from policies.contract import Part, Read


@dataclass(slots=True)
class QuestionMeter:
    """Counts against the budget, and cost by part, of one question."""

    reads: int = 0
    generates: int = 0
    frames: int = 0
    embeds: int = 0
    calls: int = 0
    """Requests so far that went to a model: the ordinal in the reply store's scope."""
    unparsed: int = 0
    retrieval: Cost = field(default_factory=Cost)
    answering: Cost = field(default_factory=Cost)
    verification: Cost = field(default_factory=Cost)
    model_seconds: float = 0.0
    embed_seconds: float = 0.0
    frame_seconds: float = 0.0
    read_digests: list[str] = field(default_factory=list)

    def book_read(self, part: Part, cost: Cost) -> None:
        """Book a Read under answering or verification."""
        self.model_seconds += cost.seconds
        if part == "verification":
            self.verification += cost
        else:
            self.answering += cost

    @property
    def context_sha256(self) -> str:
        """Digest over all Read requests in order; empty where there was none."""
        if not self.read_digests:
            return ""
        return hashlib.sha256("\n".join(self.read_digests).encode()).hexdigest()


@dataclass(slots=True)
class ConstructionMeter:
    """Cost of construction by digest of the request: the same request again is part of the same memory.

    So a stream that is started again after a hang, or sent to several containers, is counted once.
    """

    builds: dict[str, Cost] = field(default_factory=dict)
    embeds: dict[str, Cost] = field(default_factory=dict)
    embedded: int = 0
    """Distinct texts' number, over all embeds."""


def digest(value: Mapping[str, Any]) -> str:
    """SHA-256 of a JSON object in canonical form."""
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def read_digest(read: Read) -> str:
    """Digest of a Read; the order of the choices counts."""
    return digest(
        {
            "question": read.question,
            "choices": list(read.choices.items()),
            "context": read.context,
            "instructions": read.instructions,
            "frames": list(read.frames),
            "part": read.part,
        }
    )


def priced(usage: Usage, seconds: float, frames: int = 0) -> Cost:
    """One call as a cost. A stored reply carries the usage and the seconds of the call that bought it."""
    return Cost(
        requests=1,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        frames=frames,
        dollars=usage.dollars,
        seconds=seconds,
        estimated=usage.estimated,
    )
