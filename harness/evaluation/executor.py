"""Measuring a policy on a split: cut it into shards, run them, then join gold on the host."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from harness.data.frames import open_frames
from harness.data.native import Dataset, Gold, Question
from harness.errors import UserError
from harness.evaluation.meter import QuestionMeter
from harness.evaluation.outcomes import OFFLINE_READER, Cost, Evaluation, Item
from harness.evaluation.services import FrameSource
from harness.evaluation.shards import Executor, Fault, ShardResult, ShardTask, ThreadExecutor
from harness.models.interface import CapReached, Models, Role
from harness.seeds import derive, opaque_id
from policies.contract import Answer, Budget, Query, Setup, Window
from sandbox.interface import Bundle, QuestionOutcome, Sandbox, Shard, Verdict

WHOLE = "all"
"""Name of all splits together, for measuring a finished policy: one stream, and construction counted once."""

GATE = "gate_open"
"""Name in ``Answer.diagnostics`` under which a policy says whether its visual gate opened."""

Progress = Callable[[int, int], None]
"""Told (questions done, questions in all) while an evaluation runs; called from several threads, one at a time."""


class EvaluationFailed(UserError):
    """The evaluation could not be done, through no fault of the candidate: no figure comes of it."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question with the opaque id it is put under."""

    question: Question
    query: Query


class Evaluator:
    """Measures bundles on one data set, with one sandbox and one set of models."""

    def __init__(
        self,
        dataset: Dataset,
        sandbox: Sandbox,
        models: Models,
        budget: Budget,
        seed: int,
        workers: int,
        *,
        frames: FrameSource | None = None,
        executor: Executor | None = None,
        progress: Progress | None = None,
    ) -> None:
        """``seed`` is the run's; ids of questions and the policies' own seed are derived from it.

        ``frames`` are the data set's own where none are given.
        """
        self.dataset, self.models, self.budget, self.seed = dataset, models, budget, seed
        self.frames = frames or open_frames(dataset)
        self.executor = executor or ThreadExecutor(sandbox, models, workers, self.frames)
        self.progress = progress
        self._gold: dict[str, Mapping[str, Gold]] = {}
        self._key = hashlib.sha256(f"{seed}/{dataset.digest}/query ids".encode()).digest()

    def evaluate(
        self,
        bundle: Bundle,
        split: str,
        scope: str,
        questions: Sequence[str] | None = None,
        shards_per_video: int = 1,
    ) -> Evaluation:
        """Measure a bundle on a split, or on some of its questions.

        ``scope`` is the place in the reply store, for example ``0007/develop``. With ``shards_per_video`` above 1 a
        video's questions are dealt to so many fresh containers, each with the whole stream: that is parallelism, and
        a test that questions do not depend on each other. Gold is first read after the last container has ended. Raises
        EvaluationFailed, CapReached, and the data's own errors.
        """
        started = time.monotonic()
        asked = self._asked(split, questions)
        tasks = self._tasks(bundle, asked, scope, shards_per_video)
        results = self._run(tasks, len(asked))
        if split not in self._gold:
            self._gold[split] = gold_of(self.dataset, split)
        gold = self._gold[split]
        outcomes, meters = _by_query(results)
        items = tuple(
            self._item(a, outcomes.get(a.query.id), meters.get(a.query.id, QuestionMeter()), gold[a.question.id])
            for a in asked
        )
        done = [r.outcome for r in results if r.outcome is not None]
        digests = sorted({outcome.runtime_digest for outcome in done})
        if len(digests) != 1:
            raise EvaluationFailed(f"{len(digests)} different runtimes in one evaluation; restart the sandbox")
        return Evaluation(
            policy=bundle.digest,
            split=split,
            data=self.dataset.digest,
            runtime_digest=digests[0],
            sandbox=done[0].sandbox,
            reader=self.models.describe(Role.ANSWER) if self.models.has(Role.ANSWER) else OFFLINE_READER,
            items=items,
            construction=_construction(tasks, results),
            observe_seconds=sum(outcome.observe_seconds for outcome in done),
            restarts=sum(outcome.restarts for outcome in done),
            wall_seconds=time.monotonic() - started,
            logs=tuple(outcome.log for outcome in done if outcome.log),
        )

    # ------------------------------------------------------------ before the sandbox

    def _asked(self, split: str, wanted: Sequence[str] | None) -> list[_Asked]:
        """The questions in the order of the result: as the data set lists them."""
        all_questions = questions_of(self.dataset, split)
        if wanted is not None:
            unknown = sorted(set(wanted) - {question.id for question in all_questions})
            if unknown:
                raise EvaluationFailed(f"the {split} split has no question {unknown[0]!a}; check the id")
            chosen = frozenset(wanted)
            all_questions = tuple(question for question in all_questions if question.id in chosen)
        if not all_questions:
            raise EvaluationFailed(f"no questions of the {split} split to evaluate; name at least one")
        return [_Asked(question, self._query(question)) for question in all_questions]

    def _query(self, question: Question) -> Query:
        return Query(
            opaque_id(question.id, self._key), question.type, question.question, dict(question.choices), question.time
        )

    def _tasks(self, bundle: Bundle, asked: Sequence[_Asked], scope: str, per_video: int) -> list[ShardTask]:
        """One task for each video, or several: the k-th question in time order goes to container k modulo n."""
        if per_video < 1:
            raise ValueError("shards_per_video must be at least 1")
        setup = Setup(self.budget, derive(self.seed, 0, "policy"))
        tasks: list[ShardTask] = []
        for video in sorted({a.question.video for a in asked}):
            queries = sorted((a.query for a in asked if a.question.video == video), key=lambda q: (q.time, q.id))
            for part in range(min(per_video, len(queries))):
                mine = tuple(queries[part::per_video])
                shard = Shard(f"{video}/{part}", self._windows(video, mine[-1].time), mine)
                tasks.append(ShardTask(len(tasks), video, bundle, shard, setup, scope))
        return tasks

    def _windows(self, video: str, until: float) -> tuple[Window, ...]:
        """The stream as far as a question can see it: nothing is asked after the last one."""
        windows = self.dataset.videos[video].windows
        if windows and windows[-1].end <= until:
            return windows
        return tuple(window for window in windows if window.end <= until)

    # ------------------------------------------------------------ the sandbox

    def _run(self, tasks: Sequence[ShardTask], total: int) -> list[ShardResult]:
        """All results in the order of the tasks; raises at the first that says nothing about the candidate."""
        lock = threading.Lock()
        done = 0

        def settled(more: int) -> None:
            nonlocal done
            with lock:
                done += more
                if self.progress is not None:
                    self.progress(done, total)

        results: dict[int, ShardResult] = {}
        for result in self.executor.map(tasks, settled):
            if result.fault is Fault.CAP:
                raise CapReached(result.why)
            if result.fault is not None:
                raise EvaluationFailed(f"evaluation stopped, {result.fault.value}: {result.why or 'no reason given'}")
            results[result.number] = result
        if len(results) != len(tasks):
            raise EvaluationFailed(f"{len(tasks) - len(results)} shards came back without a result; run it again")
        return [results[task.number] for task in tasks]

    # ------------------------------------------------------------ after the sandbox

    def _item(self, asked: _Asked, outcome: QuestionOutcome | None, meter: QuestionMeter, gold: Gold) -> Item:
        """Join one question with its gold. A missing outcome is a wrong answer: the denominator is fixed."""
        if outcome is None:
            outcome = QuestionOutcome(asked.query.id, Verdict.PROTOCOL, None, "no outcome came back for this question")
        answer = outcome.answer if outcome.verdict is Verdict.OK else None
        choice, evidence = (answer.choice, answer.evidence) if answer is not None else (None, ())
        windows = self.dataset.videos[asked.question.video].windows
        marked = mark(asked.question, gold, windows, choice, evidence)
        policy_seconds = max(0.0, outcome.seconds - outcome.served_seconds)
        return Item(
            question=asked.question.id,
            video=asked.question.video,
            type=asked.question.type,
            verdict=outcome.verdict,
            choice=marked.choice,
            correct=marked.correct,
            route=answer.route if answer is not None else "",
            evidence=marked.evidence,
            hit=marked.hit,
            detail=outcome.detail,
            retrieval=meter.retrieval,
            answering=meter.answering,
            verification=meter.verification,
            context_sha256=meter.context_sha256,
            unparsed=meter.unparsed,
            gate=_said(answer),
            seconds=policy_seconds + meter.model_seconds + meter.embed_seconds + meter.frame_seconds,
            policy_seconds=policy_seconds,
            model_seconds=meter.model_seconds,
            embed_seconds=meter.embed_seconds,
            frame_seconds=meter.frame_seconds,
        )


def questions_of(dataset: Dataset, split: str) -> tuple[Question, ...]:
    """The questions of a split, or of all splits one after the other for ``WHOLE``."""
    parts = dataset.splits if split == WHOLE else (split,)
    return tuple(question for part in parts for question in dataset.questions(part))


def gold_of(dataset: Dataset, split: str) -> Mapping[str, Gold]:
    """Gold by question id of a split, or of all splits for ``WHOLE``. For the scorer alone."""
    parts = dataset.splits if split == WHOLE else (split,)
    return {question: gold for part in parts for question, gold in dataset.gold(part).items()}


@dataclass(frozen=True, slots=True)
class Marked:
    """What an answer comes to beside its gold."""

    choice: str | None
    """None for what is none of the question's letters."""
    correct: bool
    evidence: tuple[int, ...]
    """Positions of windows that exist."""
    hit: bool | None


def mark(question: Question, gold: Gold, windows: Sequence[Window], choice: object, evidence: Sequence[int]) -> Marked:
    """The one rule of scoring, at the measurement and whenever saved outcomes are scored again."""
    chosen = choice if type(choice) is str and choice in question.choices else None
    shown = tuple(i for i in evidence if 0 <= i < len(windows))
    right = chosen is not None and chosen == gold.answer
    return Marked(chosen, right, shown, hit([windows[i] for i in shown], gold.oracle))


def hit(windows: Sequence[Window], oracle: Sequence[tuple[float, float]]) -> bool | None:
    """Whether a window [start, end) overlaps an oracle interval, or holds an oracle instant; None without oracle."""
    if not oracle:
        return None
    return any(
        window.start <= first < window.end if first == last else window.start < last and first < window.end
        for window in windows
        for first, last in oracle
    )


def _said(answer: Answer | None) -> bool | None:
    said = answer.diagnostics.get(GATE) if answer is not None else None
    return said if isinstance(said, bool) else None


def _by_query(results: Sequence[ShardResult]) -> tuple[dict[str, QuestionOutcome], dict[str, QuestionMeter]]:
    outcomes: dict[str, QuestionOutcome] = {}
    meters: dict[str, QuestionMeter] = {}
    for result in results:
        meters.update(result.meters)
        for outcome in result.outcome.questions if result.outcome is not None else ():
            outcomes.setdefault(outcome.query_id, outcome)
    return outcomes, meters


def _construction(tasks: Sequence[ShardTask], results: Sequence[ShardResult]) -> Cost:
    """Each distinct construction request once per video, however many containers of the video made it."""
    distinct: dict[tuple[str, str], Cost] = {}
    for task, result in zip(tasks, results, strict=True):
        for digest, cost in (result.construction.builds | result.construction.embeds).items():
            distinct[task.video, digest] = cost
    return sum((cost for _, cost in sorted(distinct.items())), Cost())
