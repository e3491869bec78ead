"""The typed outcome of each stage of an iteration, as the run's store keeps them."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict

from harness.agents.interface import Malformed, Proposal
from harness.evaluation.outcomes import Evaluation
from harness.gate.interface import Decision, StageVerdict
from meta_memory.records import Attempt


class Outcome(BaseModel):
    """Base of all stage outcomes. A rejection is an outcome, not an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rejected: bool = False
    summary: str
    """One line for the audit trail and the log."""
    refs: Mapping[str, str | None] = {}
    """Git references that this stage sets (None: removes), completed after its commit."""


class Inherited(Outcome):
    """Before the first iteration: what is taken over of an earlier run. The copy is all that is ever read again."""

    source: str
    """The earlier run's name."""
    head: str
    """Hash of the newest line of its audit."""
    data_name: str
    data_digest: str
    reader: str
    """What answered its questions."""
    comparable: bool
    """Whether data and reader are this run's: else its figures are left out, and none of its ideas is refused."""
    taken: tuple[Attempt, ...]
    """Its attempts, and those that it took over itself; without any figure of a held-out split."""


class Recalled(Outcome):
    """Stage 1: whose child is made, and which earlier attempts the author is shown."""

    parent: int
    attempts: tuple[str, ...]
    """Their numbers, ``RUN:K`` for those of another run."""
    tokens: int = 0
    """What they come to."""
    started: float
    """Unix time at which the iteration began; the date of all its commits."""


class Proposed(Outcome):
    """Stage 2: a proposal, or why none came out."""

    proposal: Proposal | None
    malformed: Malformed | None


class TakenIn(Outcome):
    """Stage 3: the candidate as data. From here on its tree id is the candidate."""

    tree: str = ""
    commit: str = ""
    branch: str = ""
    bundle: str = ""
    """Digest of the bytes that are reviewed and run."""
    turn: int = 0
    """How many times the author has revised it."""


class Gated(Outcome):
    """Stage 4, one for each stage of the gate."""

    verdict: StageVerdict
    behaviour: str = ""
    """Digest of the answers and evidence on the smoke sample; only the smoke run has one."""

    @property
    def asks(self) -> bool:
        """Whether the author has to change the candidate before it goes on."""
        return self.verdict.decision is Decision.REVISE

    @classmethod
    def of(cls, verdict: StageVerdict, behaviour: str = "") -> Gated:
        """The outcome of a verdict."""
        rejected = verdict.decision is Decision.REJECT
        reason = verdict.reason or "; ".join(f.message for f in verdict.findings[:3])
        word = {Decision.REJECT: "rejected", Decision.REVISE: "changes asked for"}.get(verdict.decision, "passed")
        return cls(
            rejected=rejected, summary=f"{word}: {reason}" if reason else word, verdict=verdict, behaviour=behaviour
        )


class Measured(Outcome):
    """Stage 5 (development split) and stage 6 (validation split)."""

    evaluation: Evaluation
    reasons: tuple[str, ...] = ()
    p_value: float | None = None


class Audited(Outcome):
    """Between 5 and 6: whether the development result itself is believable."""

    verdict: StageVerdict


class Promoted(Outcome):
    """Stage 7: the frontier after this promotion."""

    frontier: tuple[int, ...]
    commit: str


class Remembered(Outcome):
    """Stage 8: closes the iteration; the attempt itself is in the store's memory."""

    commit: str = ""
    spent_tokens: int
    """Search tokens of the whole run up to here."""
    spent_dollars: float


class Closed(Outcome):
    """The closing evaluation on the test split: the only stage that touches it."""

    use: int
    """How many times the test split has been used in this run, this time included."""
    evaluations: Mapping[str, Evaluation]
    """``first``, ``final`` and the reference policies by name."""
    final: int


STAGES: dict[str, type[Outcome]] = {
    "recall": Recalled,
    "propose": Proposed,
    "intake": TakenIn,
    "static": Gated,
    "duplicates": Gated,
    "smoke": Gated,
    "dynamic": Gated,
    "reviewer": Gated,
    "revise": Proposed,
    "develop": Measured,
    "audit": Audited,
    "validate": Measured,
    "promote": Promoted,
    "remember": Remembered,
}
"""The stages of an iteration in order, each with the outcome it commits; a revision's bear the number of its round."""
