"""Everything that an iteration works with, and the facts of the run read back from its store."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from harness import recalling
from harness.agents.interface import Author, FrontierEntry, Proposal, Reviser
from harness.config import Config
from harness.data.native import Dataset
from harness.evaluation.executor import Evaluator
from harness.evaluation.metrics import by_type
from harness.evaluation.outcomes import Evaluation
from harness.frontier import PromotionRule, point
from harness.gate.change import change
from harness.gate.duplicates import Fingerprint, syntax_digest
from harness.gate.dynamic import DynamicTests
from harness.gate.literals import DataWords
from harness.models.interface import Models, Usage
from harness.outcomes import Gated, Inherited, Measured, Outcome, Promoted, Proposed, Remembered, TakenIn
from harness.rounds import intakes, named, taken_in
from harness.state.lineage import Lineage
from harness.state.store import RunStore
from meta_memory.memory import Need, Repeat
from meta_memory.records import AttemptView
from principles.h0 import H0

T = TypeVar("T", bound=Outcome)

REFERENCES = ("options_only", "longest_option", "bm25")
"""Policies measured beside the figures of every run; never candidates."""


class Stopped(Exception):
    """The run stops between two stages: the user asked for it, or a cap was reached. Nothing is lost."""


class Watcher(Protocol):
    """Is told where the run stands; shows it or not."""

    def stage(self, iteration: int, name: str) -> None:
        """A stage begins."""
        ...

    def committed(self, iteration: int, name: str, outcome: Outcome) -> None:
        """A stage's outcome is on disk."""
        ...

    def questions(self, done: int, total: int) -> None:
        """Questions answered in the running evaluation."""
        ...


@dataclass
class Search:
    """One run, open for writing."""

    config: Config
    data: Dataset
    store: RunStore
    evaluator: Evaluator
    models: Models
    judges: Models
    """The models that the reviewer may use: those of the run, or none where the reviewer is switched off."""
    author: Author
    h0: H0
    words: DataWords
    """What of the development data may not stand in a candidate."""
    smoke_questions: tuple[str, ...]
    dynamic: DynamicTests
    clock: Callable[[], float]
    """Unix time, seconds."""
    watcher: Watcher
    stop_asked: Callable[[], bool]
    source: Inherited | None = None
    """What an earlier run hands on, where that is not committed yet."""
    _evaluations: dict[tuple[int, str], Evaluation] = field(default_factory=dict)
    _syntax: dict[str, str] = field(default_factory=dict)

    @property
    def seed(self) -> int:
        """Every random draw is a function of it."""
        return self.config.run.seed

    @property
    def revisions(self) -> int:
        """How many times a candidate may be revised."""
        return self.config.gate.revisions if isinstance(self.author, Reviser) else 0

    @property
    def lineage(self) -> Lineage:
        """The run's git repository."""
        return self.store.lineage

    @property
    def rule(self) -> PromotionRule:
        """The one promotion rule with the run's parameters."""
        p = self.config.promotion
        return PromotionRule(eta=p.eta, alpha=p.alpha, epsilon=p.epsilon, saving=p.saving)

    def stage(self, iteration: int, name: str, kind: type[T], work: Callable[[], T]) -> T:
        """The committed outcome of a stage; runs ``work`` and commits it if there is none yet."""
        done = self.store.stage(iteration, name, kind)
        if done is not None:
            return done
        if self.stop_asked():
            raise Stopped("stopped as asked; the same command goes on from here")
        self.watcher.stage(iteration, name)
        outcome = work()
        self.store.commit_stage(iteration, name, outcome, refs=outcome.refs, summary=outcome.summary)
        self.watcher.committed(iteration, name, outcome)
        return outcome

    def closed(self, iteration: int) -> bool:
        """Whether the iteration has been remembered."""
        return self.store.stage(iteration, "remember", Remembered) is not None

    # ------------------------------------------------------------ facts of earlier iterations

    def found(self, iteration: int, stage: str, kind: type[T]) -> T:
        """An outcome that must be there."""
        outcome = self.store.stage(iteration, stage, kind)
        if outcome is None:
            raise LookupError(f"iteration {iteration} has no committed stage {stage}")
        return outcome

    def evaluation(self, iteration: int, stage: str) -> Evaluation:
        """The evaluation of ``develop`` or ``validate`` of an iteration."""
        key = (iteration, stage)
        if key not in self._evaluations:
            self._evaluations[key] = self.found(iteration, stage, Measured).evaluation
        return self._evaluations[key]

    def frontier(self, before: int) -> tuple[int, ...]:
        """Iterations whose policies were on the frontier when iteration ``before`` began."""
        for k in range(before - 1, 0, -1):
            promoted = self.store.stage(k, "promote", Promoted)
            if promoted is not None:
                return promoted.frontier
        return (0,)

    def first_of(self, k: int) -> int:
        """The first of the attempts that are made on the same knowledge as attempt ``k``."""
        return k - (k - 1) % self.config.author.candidates

    def best(self, before: int) -> int:
        """The frontier policy with the highest validation accuracy; the earlier one at a tie."""
        return max(self.frontier(before), key=lambda k: (self.evaluation(k, "validate").accuracy, -k))

    def files(self, iteration: int) -> dict[str, bytes]:
        """The candidate of an iteration as it was taken in last, read from the repository."""
        return self.lineage.read(self.candidate(iteration).tree)

    def candidate(self, iteration: int) -> TakenIn:
        """The candidate of an iteration as it was taken in last: after a revision, the revised one."""
        taken = taken_in(self.store, iteration)
        if taken is None:
            raise LookupError(f"iteration {iteration} has no candidate")
        return taken

    def texts(self, iteration: int) -> dict[str, str]:
        """The same as text (intake admits plain UTF-8 only)."""
        return {path: content.decode("utf-8") for path, content in self.files(iteration).items()}

    def standing_commit(self, iteration: int) -> str:
        """The commit that children of a frontier policy are made from."""
        promoted = self.store.stage(iteration, "promote", Promoted)
        return promoted.commit if promoted else self.candidate(iteration).commit

    def proposal(self, iteration: int) -> Proposal:
        """What the author handed in."""
        proposal = self.found(iteration, "propose", Proposed).proposal
        if proposal is None:
            raise LookupError(f"iteration {iteration} has no proposal")
        return proposal

    def title(self, iteration: int) -> str:
        """The hypothesis' title, or what stands for one."""
        if iteration == 0:
            return f"starting policy {self.config.run.parent}"
        proposed = self.store.stage(iteration, "propose", Proposed)
        return proposed.proposal.hypothesis.title if proposed and proposed.proposal else "no usable proposal"

    def entry(self, iteration: int) -> FrontierEntry:
        """A policy as an author may see it: development facts only."""
        evaluation = self.evaluation(iteration, "develop")
        return FrontierEntry(
            iteration=iteration,
            title=self.title(iteration),
            dev_accuracy=evaluation.accuracy,
            dev_by_type=by_type(evaluation),
            tokens_per_question=evaluation.tokens_per_question,
            latency_bucket=point(evaluation).bucket,
        )

    # ------------------------------------------------------------ earlier attempts

    def fingerprint(self, iteration: int, tree: str, behaviour: str = "") -> Fingerprint:
        """What an attempt that passed the static rules is recognised by."""
        if tree not in self._syntax:
            self._syntax[tree] = syntax_digest(self.lineage.read(tree))
        return Fingerprint(iteration, tree, self._syntax[tree], behaviour)

    def earlier(self, iteration: int) -> tuple[Fingerprint, ...]:
        """Every earlier attempt that passed the static rules, each round of it, with its behaviour where it has run;
        of one that is not promoted nothing but its files, where only those are to be known again."""
        found: list[Fingerprint] = []
        for k in range(iteration):
            for turn, taken in enumerate(intakes(self.store, k)):
                static = self.store.stage(k, named("static", turn), Gated)
                if k == 0 or (static is not None and not static.rejected):
                    smoke = self.store.stage(k, named("smoke", turn), Gated)
                    if self.config.memory.kind == "records" or k == 0 or self.store.stage(k, "promote", Promoted):
                        found.append(self.fingerprint(k, taken.tree, smoke.behaviour if smoke else ""))
                    else:
                        found.append(Fingerprint(k, taken.tree, syntax=""))
        return tuple(found)

    def recall(self, parent: int, before: int) -> tuple[AttemptView, ...]:
        """What an author is shown of the attempts before ``before`` for a child of ``parent``."""
        by = self.entry(parent).dev_by_type
        weakest = min(by, key=lambda name: (by[name], name)) if by else ""
        need = Need(parent, self.candidate(parent).tree, weakest)
        return recalling.recall(self.store, self.config.memory, need, self.config.memory.tokens, before)

    def repeated(self, iteration: int, parent: int, tree: str) -> Repeat | None:
        """The failed attempt whose idea a candidate repeats; None: it is new, or failures are not remembered."""
        if self.config.memory.kind != "records":
            return None
        hypothesis = self.proposal(iteration).hypothesis
        told = f"{hypothesis.title} {hypothesis.what}"
        need = Need(parent, self.candidate(parent).tree)
        return recalling.memory(self.store).similar_failure(told, self.change(tree, parent), need)

    def change(self, tree: str, parent: int) -> dict[str, int]:
        """What a candidate that passed the static rules changes of its parent."""
        return change(self.lineage.read(tree), self.files(parent))

    def spent(self) -> Usage:
        """Booked for the search so far, all roles together."""
        return sum(self.models.spent().values(), Usage())
