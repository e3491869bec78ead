"""The result of measuring one policy on one split: plain records, stored as JSON, scored by pure functions."""

from __future__ import annotations

from functools import cached_property

from pydantic import BaseModel, ConfigDict

from sandbox.interface import Verdict

OFFLINE_READER = "offline lexical reader"
"""``Evaluation.reader`` where no answer model is configured. Never reported as a language-model result."""


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
    estimated: bool = False
    """True where tokens were counted offline because no endpoint reported them."""

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            requests=self.requests + other.requests,
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            frames=self.frames + other.frames,
            dollars=self.dollars + other.dollars,
            seconds=self.seconds + other.seconds,
            estimated=self.estimated or other.estimated,
        )

    @property
    def tokens(self) -> int:
        """Prompt plus completion tokens."""
        return self.prompt_tokens + self.completion_tokens


class Item(Record):
    """One question of the split, gold joined on the host after the sandbox had ended."""

    question: str
    """The data set's id (host only)."""
    video: str = ""
    """The data set's id of the video (host only)."""
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
    """Digest of all Read requests of the question, in order; empty where it made none."""
    unparsed: int = 0
    """Reads whose reply named no letter or several; an outcome of its own, never a guess."""
    gate: bool | None = None
    """Whether the policy says that its visual gate opened; None where it has none or says nothing."""
    seconds: float = 0.0
    """``policy_seconds`` plus the three below. A stored reply counts the seconds it took when it was received."""
    policy_seconds: float = 0.0
    """Measured in the sandbox from question to answer, less the time in the host's services: the policy's own work."""
    model_seconds: float = 0.0
    embed_seconds: float = 0.0
    frame_seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Answer-time tokens: retrieval, answering, verification."""
        return self.retrieval.tokens + self.answering.tokens + self.verification.tokens

    @property
    def requests(self) -> int:
        """Answer-time requests to a model."""
        return self.retrieval.requests + self.answering.requests + self.verification.requests

    @property
    def direct(self) -> bool:
        """Whether the text stage answered without asking the answer model, as the host saw it; frames may have been
        looked at afterwards."""
        return self.choice is not None and not self.answering.requests

    @property
    def frames(self) -> int:
        """Frames fetched for the question."""
        return self.retrieval.frames + self.answering.frames + self.verification.frames


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
    """Name of the answer model, or ``OFFLINE_READER``."""
    items: tuple[Item, ...]
    construction: Cost = Cost()
    """Each distinct construction request once per video, at full price even when its reply was stored."""
    observe_seconds: float = 0.0
    """Time in observe and settle, summed over all containers."""
    restarts: int = 0
    wall_seconds: float = 0.0
    logs: tuple[str, ...] = ()

    @property
    def offline(self) -> bool:
        """Whether the answers came from the offline reader; shown wherever the figures show."""
        return self.reader == OFFLINE_READER

    @cached_property
    def accuracy(self) -> float:
        """Share of correct items, 0 to 1; 0 for an empty split."""
        return sum(item.correct for item in self.items) / len(self.items) if self.items else 0.0

    @cached_property
    def tokens_per_question(self) -> float:
        """Answer-time tokens (retrieval, answering, verification) per question."""
        return sum(item.tokens for item in self.items) / len(self.items) if self.items else 0.0
