"""A run read back for its report: one row for each attempt, and what stands around them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness import history
from harness.evaluation import metrics
from harness.evaluation.metrics import Share
from harness.evaluation.outcomes import Cost, Evaluation
from harness.frontier import bucket_of, median_seconds
from harness.outcomes import STAGES, Measured, Proposed
from harness.report.safe import line
from harness.rounds import base
from harness.state.store import RunStore
from meta_memory.records import Attempt
from sandbox.interface import Verdict

RUNNING = "running"
"""Outcome of an iteration that is not closed."""
START = "start"
"""Outcome of iteration 0, the policy that the run started from."""
NUMBER = re.compile(r"[-+−]?\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class Figures:
    """What the report shows of one evaluation. Shares from 0 to 1, seconds, tokens per question."""

    right: Share
    tokens: float
    seconds: float
    """Median per question."""
    bucket: int
    types: Mapping[str, Share]
    parts: Mapping[str, Cost]
    failures: tuple[tuple[str, str], ...]
    """(verdict, detail) of each question that was not answered."""
    hit_rate: float | None
    direct: float
    unparsed: float
    offline: bool
    reader: str


def figures(evaluation: Evaluation) -> Figures:
    """The figures of an evaluation."""
    items = evaluation.items
    return Figures(
        right=Share(sum(item.correct for item in items), len(items)),
        tokens=evaluation.tokens_per_question,
        seconds=median_seconds(evaluation),
        bucket=bucket_of(evaluation),
        types=metrics.right_by_type(evaluation),
        parts=metrics.cost_by_part(evaluation),
        failures=tuple((i.verdict.value, i.detail) for i in items if i.verdict is not Verdict.OK),
        hit_rate=metrics.hit_rate(evaluation),
        direct=metrics.direct(evaluation).share,
        unparsed=metrics.unparsed_share(evaluation),
        offline=evaluation.offline,
        reader=line(evaluation.reader, 80),
    )


@dataclass(frozen=True, slots=True)
class Row:
    """One attempt; iteration 0 is the starting policy. Texts are safe to show, on one line each."""

    iteration: int
    parent: int | None
    title: str
    hypothesis: str
    outcome: str
    """As ``Attempt.outcome``, or ``START``, or ``RUNNING``."""
    stage: str
    """The last stage that was committed."""
    cause: str
    rules: tuple[str, ...]
    delta: float | None
    developed: Figures | None
    validated: Figures | None
    p_value: float | None
    on_frontier: bool

    @property
    def kept(self) -> bool:
        """Whether it is a policy that others may come from."""
        return self.outcome in ("promoted", START)

    @property
    def words(self) -> str:
        """What a search looks through."""
        return " ".join([f"{self.iteration:04d}", self.title, self.hypothesis, self.cause, *self.rules])

    @property
    def verdict(self) -> str:
        """``on the frontier``, ``promoted``, ``rejected``, ``malformed``, ``running`` or ``start``."""
        if self.on_frontier:
            return "on the frontier"
        return self.outcome if self.outcome in ("promoted", "malformed", START, RUNNING) else "rejected"


@dataclass(frozen=True, slots=True)
class Group:
    """Failures with one cause: how many, an example in words, and the attempts."""

    stage: str
    cause: str
    rules: tuple[str, ...]
    count: int
    attempts: tuple[int, ...]


@dataclass
class Story:
    """A run. ``references`` and ``closing`` are figures by name."""

    name: str
    facts: list[tuple[str, str]]
    offline: bool
    rows: list[Row]
    references: dict[str, tuple[Figures, Figures | None]]
    closing: dict[str, Figures]
    closing_use: int
    rejections: list[Group] = field(default_factory=list)
    failed_questions: list[Group] = field(default_factory=list)


class Reader:
    """Reads runs; what was read of a stage once is kept by its digest, so that a run going on is read cheaply."""

    def __init__(self) -> None:
        self._figures: dict[str, Figures] = {}

    def story(self, store: RunStore) -> Story:
        """All that the overview shows."""
        rows = self._rows(store)
        closed = history.closing(store)
        development = history.references(store, "development")
        validation = history.references(store, "validation")
        return Story(
            name=line(store.manifest.name, 80),
            facts=_facts(store, rows),
            offline=store.manifest.profile == "offline",
            rows=rows,
            references={
                line(name, 60): (figures(found), figures(validation[name]) if name in validation else None)
                for name, found in development.items()
            },
            closing={line(name, 60): figures(found) for name, found in closed.evaluations.items()} if closed else {},
            closing_use=closed.use if closed else 0,
            rejections=_rejections(rows),
            failed_questions=_failed_questions(rows),
        )

    def _measured(self, store: RunStore, k: int, stage: str, key: str | None) -> Figures | None:
        """The figures of one evaluation, whose digest is ``key``, or None where there is none."""
        if key is None:
            return None
        if key not in self._figures:
            found = store.stage(k, stage, Measured)
            if found is None:
                return None
            self._figures[key] = figures(found.evaluation)
        return self._figures[key]

    def _rows(self, store: RunStore) -> list[Row]:
        attempts = {attempt.iteration: attempt for attempt in store.attempts()}
        keys = {(entry.iteration, entry.stage): entry.outcome for entry in store.audit()}
        frontier = set(history.frontier(store))
        last: dict[int, str] = {}
        for k, stage in store.stages():
            if k == 0 or base(stage) in STAGES:
                last[k] = stage
        rows = []
        for k in sorted(last):
            attempt = attempts.get(k)
            title, hypothesis, parent = _tried(store, k, attempt)
            rows.append(
                Row(
                    iteration=k,
                    parent=parent,
                    title=line(title, 120) or "(no title)",
                    hypothesis=line(hypothesis, 600),
                    outcome=attempt.outcome if attempt else RUNNING if k else START,
                    stage=last[k],
                    cause=line(attempt.cause, 400) if attempt else "",
                    rules=tuple(line(rule, 12) for rule in attempt.rules) if attempt else (),
                    delta=attempt.dev_delta if attempt else None,
                    developed=self._measured(store, k, "develop", keys.get((k, "develop"))),
                    validated=self._measured(store, k, "validate", keys.get((k, "validate"))),
                    p_value=attempt.validation_p if attempt else None,
                    on_frontier=k in frontier and (k != 0 or last[k] != "run"),
                )
            )
        return rows


def _tried(store: RunStore, k: int, attempt: Attempt | None) -> tuple[str, str, int | None]:
    """Title, hypothesis and parent of an iteration, closed or not."""
    if attempt is not None:
        return attempt.title, attempt.hypothesis, attempt.parent
    if k == 0:
        return history.title(store, 0), "", None
    proposed = store.stage(k, "propose", Proposed)
    recalled = store.stage(k, "recall", STAGES["recall"])
    parent = getattr(recalled, "parent", 0)
    if proposed is None or proposed.proposal is None:
        return "no proposal yet", "", parent
    return proposed.proposal.hypothesis.title, proposed.proposal.hypothesis.what, parent


def _facts(store: RunStore, rows: list[Row]) -> list[tuple[str, str]]:
    """What the run is, in words."""
    run = store.manifest
    ended: dict[str, int] = {}
    for row in rows:
        if row.outcome not in (START, RUNNING):
            ended[row.outcome] = ended.get(row.outcome, 0) + 1
    asked = f" of {run.iterations} asked for" if run.iterations else ""
    readers = sorted({row.developed.reader for row in rows if row.developed})
    facts = [
        ("iterations", f"{sum(ended.values())} closed{asked}"),
        ("ended at", ", ".join(f"{name} {n}" for name, n in sorted(ended.items())) or "nothing yet"),
        ("profile", run.profile),
        ("answered by", ", ".join(readers) or "nothing measured yet"),
        ("data", f"{run.data.name}, digest {run.data.digest[:16]}"),
        ("started from", f"{run.parent}, seed {run.seed}, {run.created}"),
        ("sandbox", f"{run.sandbox}, runtime {run.runtime_digest[:16]}"),
        ("audit chain", f"{len(store.audit())} lines, head {store.head[:16]}"),
    ]
    return [(name, line(value, 300)) for name, value in facts]


# ---------------------------------------------------------------- failures by cause


def _rejections(rows: Iterable[Row]) -> list[Group]:
    found = [
        (row.outcome, row.cause.split("; ")[0], row.rules, row.iteration)
        for row in rows
        if row.verdict in ("rejected", "malformed")
    ]
    return _grouped(found)


def _failed_questions(rows: Iterable[Row]) -> list[Group]:
    return _grouped(
        [
            (line(verdict, 20), line(detail, 300), (), row.iteration)
            for row in rows
            if row.developed
            for verdict, detail in row.developed.failures
        ]
    )


def _grouped(failures: Iterable[tuple[str, str, tuple[str, ...], int]]) -> list[Group]:
    """Failures whose stage, rules and words are the same; numbers in the words do not count."""
    groups: dict[tuple[str, tuple[str, ...], str], list[tuple[str, int]]] = {}
    for stage, cause, rules, iteration in failures:
        groups.setdefault((stage, rules, NUMBER.sub("#", cause)), []).append((cause, iteration))
    return [
        Group(
            stage=stage,
            cause=members[0][0] if len({cause for cause, _ in members}) == 1 else words.replace("#", "…"),
            rules=rules,
            count=len(members),
            attempts=tuple(dict.fromkeys(iteration for _, iteration in members)),
        )
        for (stage, rules, words), members in sorted(groups.items(), key=lambda found: (-len(found[1]), found[0]))
    ]
