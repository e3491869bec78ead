"""What a gate stage returns."""

from __future__ import annotations

from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Decision(StrEnum):
    """A stage's verdict on a candidate."""

    APPROVE = "approve"
    REVISE = "revise"
    """Smoke run's and reviewer's alone: the author is asked for changes, and the candidate is not through yet."""
    REJECT = "reject"


class Finding(BaseModel):
    """One observation against one rule of the constitution."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: str
    """Rule id of ``principles/constitution.toml``, for example ``S03``."""
    path: str = ""
    line: int = 0
    message: str
    """One line, control characters escaped."""


class StageVerdict(BaseModel):
    """The verdict of one gate stage; ``findings`` say why, or, with ``revise``, what has to change."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    stage: str
    """``static``, ``duplicates``, ``smoke``, ``dynamic``, ``reviewer`` or ``audit``."""
    decision: Decision
    findings: tuple[Finding, ...] = ()
    reason: str = ""
    decided_by: str = "rules"
    """``rules`` or the model's name."""
    seconds: float = 0.0
