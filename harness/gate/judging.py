"""The gate over a corpus: each candidate through every stage up to its first rejection, as in a run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from harness.evaluation import result_audit
from harness.evaluation.executor import Evaluator
from harness.evaluation.outcomes import Evaluation
from harness.gate import reviewer, smoke, static
from harness.gate.corpus import Corpus, Entry, Kind
from harness.gate.dynamic import DynamicTests
from harness.gate.interface import Decision, StageVerdict
from harness.gate.literals import DataWords
from harness.models.hub import offline_models
from harness.models.interface import Models, Role
from harness.seeds import derive
from principles.h0 import H0
from sandbox.bundle import BundleError, make_bundle
from sandbox.interface import Bundle

STAGES = ("static", "smoke", "dynamic", "reviewer", "audit", "reviewer model")
"""In order; the reviewer's rules apart from its model."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What the gate said to one candidate."""

    entry: Entry
    stage: str
    """The first stage that rejected it without a reviewer model; empty where none did."""
    rules: tuple[str, ...]
    reason: str
    model: str = ""
    """``rejected``, ``approved``, or empty where no model was asked."""

    @property
    def rejected(self) -> bool:
        """By rules, tests and audit alone."""
        return bool(self.stage)

    @property
    def rejected_with_model(self) -> bool:
        """With the reviewer model too: it can only add rejections."""
        return self.rejected or self.model == "rejected"


@dataclass
class Judge:
    """All that judging a corpus needs."""

    corpus: Corpus
    evaluator: Evaluator
    dynamic: DynamicTests
    models: Models
    h0: H0
    words: DataWords
    few: tuple[str, ...]
    """Ids of the questions of the smoke run."""
    _parents: dict[str, Evaluation] = field(default_factory=dict)

    def judge(self, told: Callable[[Judged], None] = lambda judged: None) -> list[Judged]:
        """Every candidate in the order of the corpus file. Raises what an evaluation raises."""
        found = []
        for entry in self.corpus.entries:
            found.append(self.one(entry))
            told(found[-1])
        return found

    def one(self, entry: Entry) -> Judged:
        """One candidate."""
        files = self.corpus.files(entry.folder)
        for verdict in self._stages(entry, files):
            if verdict.decision is Decision.REJECT:
                rules = tuple(dict.fromkeys(finding.rule for finding in verdict.findings))
                return Judged(entry, verdict.stage, rules, verdict.reason)
        if not self.models.has(Role.REVIEWER):
            return Judged(entry, "", (), "")
        verdict = self._review(entry, files, self.models)
        word = "rejected" if verdict.decision is Decision.REJECT else "approved"
        return Judged(entry, "", tuple(f.rule for f in verdict.findings), verdict.reason, word)

    def _stages(self, entry: Entry, files: dict[str, bytes]) -> Iterator[StageVerdict]:
        yield static.check(files, self.h0.constitution, self.words)
        try:
            bundle = make_bundle(files)
        except BundleError as error:
            yield StageVerdict(stage="static", decision=Decision.REJECT, reason=str(error))
            return
        scope = entry.folder
        yield smoke.check(self.evaluator, bundle, self.corpus.split, self.few, f"{scope}/smoke")[0]
        yield self.dynamic.check(bundle, f"{scope}/dynamic")
        yield self._review(entry, files, offline_models())
        yield result_audit.check(self._measured(bundle, f"{scope}/develop"), self._parent(entry.parent))

    def _review(self, entry: Entry, files: dict[str, bytes], models: Models) -> StageVerdict:
        texts = {path: content.decode("utf-8") for path, content in files.items()}
        parents = {} if entry.parent == entry.folder else self.corpus.files(entry.parent)
        before = {path: content.decode("utf-8", "replace") for path, content in parents.items()}
        case = reviewer.Case(hypothesis=entry.hypothesis, files=texts, parent_files=before, h0=self.h0)
        return reviewer.check(case, models, derive(self.evaluator.seed, 0, entry.folder), f"{entry.folder}/review/0")

    def _measured(self, bundle: Bundle, scope: str) -> Evaluation:
        return self.evaluator.evaluate(bundle, self.corpus.split, scope)

    def _parent(self, name: str) -> Evaluation:
        if name not in self._parents:
            self._parents[name] = self._measured(make_bundle(self.corpus.files(name)), f"{name}/parent")
        return self._parents[name]


def rates(judged: list[Judged], kind: Kind) -> dict[str, Any]:
    """How many of a kind there are and were rejected, by stage; with the reviewer model where it was asked."""
    mine = [j for j in judged if j.entry.kind is kind]
    by_stage = Counter(j.stage for j in mine if j.rejected)
    asked = any(j.model for j in judged)
    return {
        "candidates": len(mine),
        "rejected": by_stage.total(),
        "by_stage": {stage: by_stage[stage] for stage in STAGES if by_stage[stage]},
        "rejected_with_model": sum(j.rejected_with_model for j in mine) if asked else None,
    }


def as_json(corpus: Corpus, judged: list[Judged], reader: str) -> dict[str, Any]:
    """All figures, and every candidate's verdict."""
    return {
        "corpus": corpus.name,
        "reviewer_model": reader,
        "cheats": rates(judged, Kind.CHEAT),
        "honest": rates(judged, Kind.HONEST),
        "candidates": [
            {
                "folder": j.entry.folder,
                "kind": j.entry.kind.value,
                "way": j.entry.way,
                "rejected_at": j.stage or None,
                "rules": list(j.rules),
                "reason": j.reason,
                "reviewer_model": j.model or None,
            }
            for j in judged
        ],
    }
