"""Records of the search: what was tried, what came of it, what it cost, what was learned."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Attempt(BaseModel):
    """One iteration as meta-memory keeps it (append-only). Holds validation facts: agents see ``AttemptView``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    iteration: int
    parent: int
    """Iteration of the parent policy; 0 is the policy the run started from."""
    title: str
    hypothesis: str
    why: str = ""
    expected: Mapping[str, str] = {}
    tree: str = ""
    """Git tree id, empty where no candidate came out."""
    outcome: str
    """``malformed``, ``intake``, ``static``, ``duplicates``, ``smoke``, ``dynamic``, ``reviewer``, ``develop``,
    ``audit``, ``validate`` (each: rejected there) or ``promoted``."""
    cause: str = ""
    """One line: why it was rejected."""
    rules: tuple[str, ...] = ()
    dev_accuracy: float | None = None
    dev_delta: float | None = None
    dev_by_type: Mapping[str, float] = {}
    tokens_per_question: float | None = None
    latency_bucket: int | None = None
    validation_accuracy: float | None = None
    validation_p: float | None = None
    search_tokens: int = 0
    search_dollars: float = 0.0
    lesson: str = ""


class AttemptView(BaseModel):
    """An attempt as an agent may see it: development facts and the verdict, never a validation figure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    iteration: int
    parent: int
    title: str
    hypothesis: str
    outcome: str
    cause: str
    dev_accuracy: float | None
    dev_delta: float | None
    dev_by_type: Mapping[str, float]
    tokens_per_question: float | None
    lesson: str
