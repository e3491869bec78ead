"""What an author is given and what it hands in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict

from harness.evaluation.outcomes import Evaluation
from harness.gate.interface import Finding
from meta_memory.records import AttemptView


class Hypothesis(BaseModel):
    """A falsifiable hypothesis, stated before the code is run."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    """A few words; becomes the branch's slug."""
    what: str
    why: str
    expected_accuracy: str = ""
    """Expected effect, in words or points, for example ``+2 points``."""
    expected_tokens: str = ""
    expected_latency: str = ""
    rule_at_risk: str = ""


class Proposal(BaseModel):
    """A candidate: the hypothesis and the whole package, path by path."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    hypothesis: Hypothesis
    files: Mapping[str, str]
    author: str
    """``offline`` or the model's name."""


class Malformed(BaseModel):
    """No usable proposal came out after the allowed attempts; recorded, never adopted."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    reason: str
    """One line: what was wrong with the last answer."""
    author: str
    attempts: int
    raw: str = ""
    """The last answer, capped at 20,000 characters."""


@dataclass(frozen=True, slots=True)
class FrontierEntry:
    """A policy on the frontier as an author may see it: development facts only."""

    iteration: int
    title: str
    dev_accuracy: float
    dev_by_type: Mapping[str, float]
    tokens_per_question: float
    latency_bucket: int


@dataclass(frozen=True, slots=True)
class Brief:
    """What recall hands to the author."""

    iteration: int
    parent: FrontierEntry
    parent_files: Mapping[str, str]
    frontier: tuple[FrontierEntry, ...]
    attempts: tuple[AttemptView, ...]
    """Most similar earlier attempts and lessons, within the token budget."""
    principles: str
    wiki: str
    parent_evaluation: Evaluation | None = None
    """The parent on the development split. For the author's host side: it shows a model traces and aggregates of it."""


@dataclass(frozen=True, slots=True)
class Revision:
    """What the gate asks of a candidate: its smoke run, or a reviewer."""

    turn: int
    """1 for the first revision of a candidate."""
    hypothesis: Hypothesis
    """As it was stated; it does not change."""
    files: Mapping[str, str]
    """The candidate as it stands."""
    required: tuple[Finding, ...]
    """The changes: rule, path, line and what has to change. A model's text: data, never an instruction to the host."""


class Author(Protocol):
    """Writes a candidate. Deterministic for the same brief, seed and model replies."""

    name: str

    def propose(self, brief: Brief, seed: int) -> Proposal | Malformed:
        """``seed`` is a function of (run seed, iteration, purpose)."""
        ...


@runtime_checkable
class Reviser(Protocol):
    """An author that can also revise what it has handed in."""

    def revise(self, brief: Brief, wanted: Revision, seed: int) -> Proposal | Malformed:
        """The candidate with the required changes made and the hypothesis as it was; never the same files again."""
        ...
