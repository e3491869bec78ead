"""Records of the search: what was tried, what came of it, what it cost, what was learned."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict


class Attempt(BaseModel):
    """One iteration as meta-memory keeps it (append-only). Holds validation facts: agents see ``AttemptView``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = ""
    """Name of the run it was made in where that is another one; iteration and parent are then numbers of that run."""
    iteration: int
    parent: int
    """Iteration of the parent policy; 0 is the policy the run started from."""
    parent_tree: str = ""
    """Git tree id of the parent: the same policy has the same one in every run."""
    title: str
    hypothesis: str
    why: str = ""
    expected: Mapping[str, str] = {}
    tree: str = ""
    """Git tree id, empty where no candidate came out."""
    change: Mapping[str, int] = {}
    """What it changes of its parent: signed counts of pieces of syntax. Empty where it was not measured."""
    outcome: str
    """``malformed``, ``intake``, ``static``, ``duplicates``, ``smoke``, ``dynamic``, ``reviewer``, ``develop``,
    ``audit``, ``validate`` (each: rejected there) or ``promoted``."""
    cause: str = ""
    """One line: why it was rejected."""
    rules: tuple[str, ...] = ()
    dev_accuracy: float | None = None
    dev_delta: float | None = None
    dev_by_type: Mapping[str, float] = {}
    dev_delta_by_type: Mapping[str, float] = {}
    """Against the parent, as a share."""
    tokens_per_question: float | None = None
    parent_tokens_per_question: float | None = None
    latency_bucket: int | None = None
    validation_accuracy: float | None = None
    validation_p: float | None = None
    search_tokens: int = 0
    search_dollars: float = 0.0
    lesson: str = ""
    lesson_by: str = "rules"
    """``rules`` or the analyst's model."""
    lesson_failure: str = ""
    """Why the analyst's model gave no lesson and the rules did, one line."""

    @property
    def label(self) -> str:
        """Its number, with the run's name before it where that is another one."""
        return label(self.run, self.iteration)


class AttemptView(BaseModel):
    """An attempt as an agent may see it: development facts and the verdict, never a validation figure."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: str = ""
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

    @property
    def label(self) -> str:
        """As ``Attempt.label``."""
        return label(self.run, self.iteration)


def label(run: str, iteration: int) -> str:
    """How an attempt is named: ``12``, or ``RUN:12`` where it was made in another run."""
    return f"{run}:{iteration}" if run else str(iteration)
