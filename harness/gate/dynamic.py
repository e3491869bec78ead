"""The gate stage after the smoke run: what must not matter does not matter. Rules X01 to X07, in the sandbox.

Every run looks from inside like scoring: the same limits and setup, a stream up to the last of a few questions, ids
that say nothing. Letters come from the offline reader, which is shown each context in the words of the base: so a
policy that only searches and shows gives the same choice exactly, whatever model is configured.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

from harness.data.native import Dataset, Question
from harness.evaluation.services import FrameSource
from harness.gate import variants
from harness.gate.interface import Decision, Finding, StageVerdict
from harness.gate.sampling import Ground, ground
from harness.gate.smoke import broken
from harness.gate.swapping import swap
from harness.gate.trial import Seen, Trials
from harness.gate.variants import Variant
from harness.models.interface import Models
from harness.seeds import derive
from policies.contract import Budget, Setup
from sandbox.interface import Bundle, Sandbox

QUESTIONS = 12
"""Questions asked. Not given by the source."""
DIFFERENT = 1
"""Questions of them whose choice may change where words or times do. Not given: every released policy changes none."""
DIFFERENT_ORDER = 2
"""The same where letters or lengths change: what is packed under a cap goes by order and length."""
DIFFERENT_MODELS = 4
"""The same for policies that embed, build or generate with a model: near scores change places with the words."""

MESSAGES = {
    "X01": "asked again in a fresh container, under other ids and beside fewer questions, {} of {} got other bytes",
    "X02": "windows after the query time changed the bytes of {} of {} questions",
    "X03": "with the choices under other letters, {} of {} choices changed, many by keeping their letter",
    "X04": "with names and other words changed throughout, {} of {} choices changed",
    "X05": "with the query time moved within the pause before the next window, {} of {} choices changed",
    "X06": "with words of other lengths, {} of {} choices changed",
}


@dataclass(frozen=True)
class DynamicTests:
    """The tests of one run: the same questions and the same changes for every candidate."""

    data: Dataset
    sandbox: Sandbox
    models: Models
    budget: Budget
    seed: int
    workers: int
    frames: FrameSource | None
    """The evaluation's own: each file of frames is compared with the manifest once."""
    questions: int = QUESTIONS
    split: str = "development"

    @cached_property
    def ground(self) -> Ground:
        """The questions and the stream up to the last of them."""
        return ground(self.data, self.split, self.questions, derive(self.seed, 0, "dynamic sample"))

    @cached_property
    def trials(self) -> Trials:
        """Runs variants in the sandbox."""
        setup = Setup(self.budget, derive(self.seed, 0, "policy"))
        return Trials(self.sandbox, self.models, setup, self.ground.video, self.frames)

    @cached_property
    def base(self) -> Variant:
        """As in scoring."""
        return variants.base(self.ground.windows, self.ground.queries)

    @cached_property
    def future(self) -> Variant:
        """Half of the questions, under other ids, and another future after a late one."""
        late = self.base.queries[-2 if len(self.base.queries) > 1 else -1]
        return self._renamed(variants.altered_future(self.base, late))

    @cached_property
    def same_length(self) -> Variant:
        """Words changed for words of the same length."""
        return self._swapped(True)

    @cached_property
    def other_length(self) -> Variant:
        """Long words changed for short ones."""
        return self._swapped(False)

    @cached_property
    def all_at_once(self) -> Variant:
        """Other ids, letters and words, and times moved: where nothing changes here, none of these matters."""
        changed = self._renamed(variants.moved_times(variants.turned_choices(self.base)))
        return variants.swapped_words(changed, self.other_length.swap)

    def _renamed(self, variant: Variant) -> Variant:
        key = hashlib.sha256(f"{self.seed}/dynamic ids".encode()).digest()
        return variants.renamed_questions(variant, key)

    def _swapped(self, same_length: bool) -> Variant:
        asked = [text for question in self.data.questions(self.split) for text in _texts(question)]
        windows = self.base.windows
        told = [
            text for w in windows for text in (*w.captions, *(t for u in w.transcript for t in (u.speaker, u.text)))
        ]
        change = swap(asked, told, derive(self.seed, 0, "dynamic words"), same_length)
        return variants.swapped_words(self.base, change)

    # ------------------------------------------------------------ the stage

    def check(self, bundle: Bundle, scope: str) -> StageVerdict:
        """The verdict on a candidate. Raises what an evaluation raises: that says nothing about the candidate."""
        started = time.perf_counter()
        findings = self._findings(bundle, scope)
        return StageVerdict(
            stage="dynamic",
            decision=Decision.REJECT if findings else Decision.APPROVE,
            findings=tuple(findings),
            reason=f"{findings[0].rule} {findings[0].message}" if findings else f"{len(self.base.queries)} questions",
            seconds=time.perf_counter() - started,
        )

    def _findings(self, bundle: Bundle, scope: str) -> list[Finding]:
        runs = {"base": self.base, "future": self.future, "all": self.all_at_once}
        base, future, changed = self._run(bundle, runs, scope).values()
        findings = [*broken(base.verdicts), *_asked(base)]
        if findings:
            return findings
        if len(_different(base, future)) > DIFFERENT_MODELS if base.written else _bytes(base, future):
            findings.append(self._whose_bytes(bundle, base, future, scope))
        if len(_different(base, changed)) > DIFFERENT:
            findings += self._which(bundle, base, scope)
        return findings

    def _whose_bytes(self, bundle: Bundle, base: Seen, future: Seen, scope: str) -> Finding:
        """The future, or that it was asked again, or that fewer questions were asked?"""
        fewer = replace(self.future, windows=self.base.windows)
        same = self._run(bundle, {"fewer": fewer}, scope)["fewer"]
        return _finding("X01" if _bytes(base, same) else "X02", base, future)

    def _which(self, bundle: Bundle, base: Seen, scope: str) -> list[Finding]:
        """One change at a time: which of them matters?"""
        single = {
            "X03": variants.turned_choices(self.base),
            "X04": self.same_length,
            "X05": variants.moved_times(self.base),
            "X06": self.other_length,
        }
        runs = self._run(bundle, single, scope)
        least = DIFFERENT_MODELS if base.modelled else 0
        free = {rule: max(least, DIFFERENT if rule in ("X04", "X05") else DIFFERENT_ORDER) for rule in runs}
        found = [
            _finding(rule, base, run)
            for rule, run in runs.items()
            if len(_by_letter(base, run) if rule == "X03" else _different(base, run)) > free[rule]
        ]
        words = any(finding.rule == "X04" for finding in found)
        return [finding for finding in found if finding.rule != "X06" or not words]

    def _run(self, bundle: Bundle, runs: Mapping[str, Variant], scope: str) -> dict[str, Seen]:
        at_once = max(1, min(self.workers + 1, len(runs)))  # each waits for the host half of its time
        with ThreadPoolExecutor(max_workers=at_once) as pool:
            seen = pool.map(lambda name: self.trials.run(bundle, runs[name], f"{scope}/{name}"), runs)
            return dict(zip(runs, seen, strict=True))


def _texts(question: Question) -> list[str]:
    return [question.question, *question.choices.values()]


def _finding(rule: str, base: Seen, run: Seen) -> Finding:
    different = _bytes(base, run) if rule in ("X01", "X02") else len(_different(base, run))
    return Finding(rule=rule, path="policy.py", message=MESSAGES[rule].format(different, len(run.choices)))


def _asked(seen: Seen) -> list[Finding]:
    """X02 and X07 by what was asked for."""
    found = []
    if seen.future:
        message = f"asks for frames after the query time, {seen.future} times"
        found.append(Finding(rule="X02", path="policy.py", message=message))
    if seen.over_budget:
        message = f"{seen.over_budget} requests passed the budget: {seen.refused}"
        found.append(Finding(rule="X07", path="policy.py", message=message))
    return found


def _bytes(base: Seen, other: Seen) -> int:
    return sum(base.bytes.get(name) != made for name, made in other.bytes.items())


def _different(base: Seen, other: Seen) -> list[str]:
    return [name for name, choice in other.choices.items() if base.choices.get(name) != choice]


def _by_letter(base: Seen, other: Seen) -> list[str]:
    """Questions whose choice changed while its letter stayed, though no tie explains it."""
    stayed = []
    for name in _different(base, other):
        one, two = base.choices.get(name), other.choices.get(name)
        if one is None or two is None or _tie(base, other, name):
            continue
        if base.orders[name].index(one) == other.orders[name].index(two):
            stayed.append(name)
    return stayed


def _tie(base: Seen, other: Seen, name: str) -> bool:
    """Whether both choices may have been equal and the first of them taken, in the order of each run."""
    one, two = base.choices.get(name), other.choices.get(name)
    if one is None or two is None:
        return False
    before, after = base.orders[name], other.orders[name]
    return before.index(one) < before.index(two) and after.index(two) < after.index(one)
