"""The result of measuring one policy on one split: plain records, stored as JSON, scored by pure functions."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict

from sandbox.interface import Verdict


class Record(BaseModel):
    """Frozen, strict base of the stored records."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Cost(Record):
    """Cost of one part. Tokens and requests are metered on the host; construction at full price even when stored."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    frames: int = 0
    dollars: float = 0.0
    seconds: float = 0.0
    """Measured; differs from run to run and is never compared by replay."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            frames=self.frames + other.frames,
            dollars=self.dollars + other.dollars,
            seconds=self.seconds + other.seconds,
        )

    @property
    def tokens(self) -> int:
        """Prompt plus completion tokens."""
        return self.prompt_tokens + self.completion_tokens


class Item(Record):
    """One question of the split, gold joined on the host after the sandbox had ended."""

    question: str
    """The data set's id (host only)."""
    type: str
    verdict: Verdict
    choice: str | None
    correct: bool
    route: str
    evidence: tuple[int, ...]
    hit: bool | None
    """Whether the evidence overlaps the oracle time; None where the data has none. Never shown to an agent."""
    detail: str = ""
    retrieval: Cost = Cost()
    answering: Cost = Cost()
    verification: Cost = Cost()
    context_sha256: str = ""
    """Digest of all Read contexts of the question, in order."""
    seconds: float = 0.0
    policy_seconds: float = 0.0
    """``seconds`` less the time in the host's services."""


class Evaluation(Record):
    """One policy on one split. The denominator is fixed: one item for every question."""

    policy: str
    """Bundle digest."""
    split: str
    data: str
    """Data set digest."""
    runtime_digest: str
    sandbox: str
    reader: str
    """Name of the answer model, or ``offline lexical reader``."""
    items: tuple[Item, ...]
    construction: Cost = Cost()
    wall_seconds: float = 0.0
    logs: tuple[str, ...] = ()

    @property
    def accuracy(self) -> float:
        """Share of correct items, 0 to 1; 0 for an empty split."""
        return sum(item.correct for item in self.items) / len(self.items) if self.items else 0.0

    @property
    def tokens_per_question(self) -> float:
        """Answer-time tokens (retrieval, answering, verification) per question."""
        total = sum(i.retrieval.tokens + i.answering.tokens + i.verification.tokens for i in self.items)
        return total / len(self.items) if self.items else 0.0
