"""Whole evaluations in a real sandbox: order, opacity, the fixed denominator, gold last, whose fault."""

import pickle
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.config import resolve
from harness.data.native import DataError, Dataset, load
from harness.evaluation import metrics
from harness.evaluation.executor import EvaluationFailed, Evaluator, hit
from harness.evaluation.outcomes import OFFLINE_READER, Evaluation, Item
from harness.evaluation.shards import ShardResult, ShardTask, ThreadExecutor
from harness.models.hub import ModelHub, offline_models
from harness.models.interface import CapReached
from policies.contract import Budget, Utterance, Window
from sandbox import make_bundle
from sandbox.interface import Bundle, Channel, Probe, Sandbox, SandboxError, Verdict

HEAD = """
import os, time
from policies.contract import Answer, Build, Frames, Message, Read, Refused

class Policy:
    def __init__(self, setup):
        self.windows = []

    def observe(self, windows):
        self.windows += windows

    def settle(self):
        pass

    def answer(self, query):
"""
READS_LAST = """
        last = self.windows[-1]
        reply = yield Read(query.question, query.choices, last.captions[0])
        return Answer(reply.choice, "last", (last.index,))
"""


def bundle(body: str, head: str = HEAD) -> Bundle:
    return make_bundle({"policy.py": head + body})


def evaluator(dataset: Dataset, sandbox: Sandbox, seed: int = 0, workers: int = 2, **changes: Any) -> Evaluator:
    return Evaluator(dataset, sandbox, changes.pop("models", offline_models()), Budget(), seed, workers, **changes)


def steady(items: Sequence[Item]) -> list[dict[str, Any]]:
    """Items without what is measured and differs from run to run."""
    dropped = {"seconds", "policy_seconds", "model_seconds", "embed_seconds", "frame_seconds"}
    parts = {"retrieval": {"seconds"}, "answering": {"seconds"}, "verification": {"seconds"}}
    return [item.model_dump(exclude={name: True for name in dropped} | parts) for item in items]  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def whole(dataset: Dataset, sandbox: Sandbox) -> Evaluation:
    """The reading policy over the whole development split."""
    return evaluator(dataset, sandbox).evaluate(bundle(READS_LAST), "development", "0001/develop")


VIDEO1 = [f"item-{n}" for n in range(0, 12, 2)]
"""Six questions of one video: one container."""


def test_a_policy_that_reads_the_last_window_is_always_right(
    dataset: Dataset, sandbox: Sandbox, whole: Evaluation
) -> None:
    e = whole
    assert [item.question for item in e.items] == [q.id for q in dataset.questions("development")]
    assert e.accuracy == 1.0 and metrics.hit_rate(e) == 1.0 and metrics.verdicts(e) == {"OK": 12}
    assert e.reader == OFFLINE_READER and e.offline and e.data == dataset.digest
    assert e.runtime_digest == sandbox.runtime_digest and e.sandbox == sandbox.label
    assert all(item.answering.requests == 1 and item.answering.estimated for item in e.items)
    assert all(item.seconds >= item.model_seconds > 0 and item.policy_seconds > 0 for item in e.items)
    assert {item.video for item in e.items} == {"video1", "video2"}
    assert len({item.context_sha256 for item in e.items}) == 12
    assert Evaluation.model_validate_json(e.model_dump_json()) == e


def test_workers_and_containers_change_nothing(dataset: Dataset, sandbox: Sandbox, whole: Evaluation) -> None:
    apart = evaluator(dataset, sandbox, workers=1).evaluate(bundle(READS_LAST), "development", "x", shards_per_video=2)
    assert steady(whole.items) == steady(apart.items)


def test_questions_come_in_time_order_after_exactly_their_windows(dataset: Dataset, sandbox: Sandbox) -> None:
    body = """
        return Answer("A", f"{query.time:g} {len(self.windows)} {self.windows[-1].end:g}")
"""
    e = evaluator(dataset, sandbox).evaluate(bundle(body), "development", "x", VIDEO1)
    times = {q.id: q.time for q in dataset.questions("development")}
    for item in e.items:
        time = times[item.question]
        assert item.route == f"{time:g} {int(time // 30)} {time // 30 * 30:g}"


def test_query_ids_are_opaque_and_follow_the_seed(dataset: Dataset, sandbox: Sandbox) -> None:
    body = bundle('\n        return Answer("A", query.id)\n')
    first, again, other = (
        {
            i.question: i.route
            for i in evaluator(dataset, sandbox, seed).evaluate(body, "development", "x", VIDEO1).items
        }
        for seed in (1, 1, 2)
    )
    assert first == again
    assert len({*first.values(), *other.values()}) == 12
    assert all("item" not in opaque and len(opaque) == 16 for opaque in first.values())
    # The order of the ids says nothing about the order of the data set.
    assert sorted(first, key=first.__getitem__) != list(first)


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ('raise ValueError("x\\x1b[2J")', Verdict.CRASH),
        ("os._exit(0)", Verdict.CRASH),
        ("time.sleep(60)", Verdict.TIMEOUT),
        ('return Answer("A", "r", (10_000,))', Verdict.CRASH),
    ],
)
def test_a_question_that_fails_counts_as_wrong(dataset: Dataset, sandbox: Sandbox, body: str, verdict: Verdict) -> None:
    """Half of the questions fail; all are in the denominator, and the others keep their answers."""
    wrapped = f"""
        if query.type == "TaskMaster":
            {body}
        last = self.windows[-1]
        reply = yield Read(query.question, query.choices, last.captions[0])
        return Answer(reply.choice, "last", (last.index,))
"""
    chosen = [f"item-{n}" for n in (0, 2, 6)]
    e = evaluator(dataset, sandbox).evaluate(bundle(wrapped), "development", "x", chosen)
    assert [item.verdict for item in e.items] == [Verdict.OK, Verdict.OK, verdict]
    assert [item.correct for item in e.items] == [True, True, False]
    failed = e.items[2]
    assert failed.choice is None and failed.hit is False and failed.route == "" and failed.detail.isprintable()
    assert e.accuracy == 2 / 3


def test_a_policy_that_cannot_even_be_built_scores_nothing(dataset: Dataset, sandbox: Sandbox) -> None:
    e = evaluator(dataset, sandbox).evaluate(
        make_bundle({"policy.py": "import nothing_of_the_kind"}), "development", "x"
    )
    assert metrics.verdicts(e) == {"CRASH": 12} and e.accuracy == 0.0


def test_only_one_letter_can_be_right(dataset: Dataset, sandbox: Sandbox) -> None:
    """None is an answer, and wrong; everything else that is no letter of the question is no answer at all."""
    body = """
        said = [None, float("nan"), ["A", "B", "C", "D"], "A, B, C, D", "a", True]
        return Answer(said[int(query.time - 100) // 160], "r")
"""
    e = evaluator(dataset, sandbox).evaluate(bundle(body), "development", "x", VIDEO1)
    assert e.accuracy == 0.0 and [item.choice for item in e.items] == [None] * 6
    assert [item.verdict is Verdict.OK for item in e.items] == [True] + [False] * 5


def test_a_policys_own_clock_and_claims_are_ignored(dataset: Dataset, sandbox: Sandbox) -> None:
    body = """
        time.sleep(0.2)
        time.monotonic = time.time = time.perf_counter = lambda: 0.0
        return Answer("A", "r", (), {"seconds": 0.0, "tokens": 0, "correct": True})
"""
    e = evaluator(dataset, sandbox).evaluate(bundle(body), "development", "x", ["item-0", "item-2"])
    assert all(0.2 <= item.policy_seconds < 3.0 for item in e.items)


# ---------------------------------------------------------------- gold


def test_gold_is_read_after_the_last_container_has_ended(dataset: Dataset, sandbox: Sandbox, tmp_path: Path) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(dataset.path, folder)
    (folder / "gold" / "development.jsonl").unlink()
    told: list[tuple[int, int]] = []
    tested = evaluator(load(folder), sandbox, progress=lambda done, total: told.append((done, total)))
    with pytest.raises(DataError, match="gold"):
        tested.evaluate(bundle(READS_LAST), "development", "x")
    assert told[-1] == (12, 12)


@pytest.mark.parametrize(
    ("oracle", "expected"),
    [
        ([], None),
        ([(40.0, 50.0)], True),
        ([(0.0, 30.0)], False),  # ends where the window begins
        ([(0.0, 30.5)], True),
        ([(60.0, 70.0)], False),  # begins where the window ends
        ([(30.0, 30.0)], True),  # an instant belongs to the window it begins
        ([(60.0, 60.0)], False),
        ([(0.0, 1.0), (59.0, 99.0)], True),
        ([(0.0, 100.0)], True),
    ],
)
def test_hits(oracle: list[tuple[float, float]], expected: bool | None) -> None:
    window = Window(1, 30.0, 60.0, ("x",), (Utterance("", "y"),), False)
    assert hit([window], oracle) is expected
    assert hit([], oracle) is (None if expected is None else False)


# ---------------------------------------------------------------- what is asked


def test_some_questions_only(dataset: Dataset, sandbox: Sandbox) -> None:
    e = evaluator(dataset, sandbox).evaluate(bundle(READS_LAST), "development", "x", ["item-8", "item-2"])
    assert [item.question for item in e.items] == ["item-2", "item-8"]
    with pytest.raises(EvaluationFailed, match="no question 'item-100'"):
        evaluator(dataset, sandbox).evaluate(bundle(READS_LAST), "development", "x", ["item-3", "item-100"])
    with pytest.raises(EvaluationFailed, match="no questions"):
        evaluator(dataset, sandbox).evaluate(bundle(READS_LAST), "development", "x", [])
    with pytest.raises(DataError, match="test"):
        evaluator(dataset, sandbox).evaluate(bundle(READS_LAST), "test", "x")


def test_the_stream_ends_with_the_last_question(dataset: Dataset, sandbox: Sandbox) -> None:
    """Construction is paid for what some question can see."""
    seen: list[ShardTask] = []

    class Looking(ThreadExecutor):
        def run(self, task: ShardTask, settled: Callable[[int], None]) -> ShardResult:
            seen.append(task)
            return super().run(task, settled)

    executor = Looking(sandbox, offline_models(), 1)
    evaluator(dataset, sandbox, executor=executor).evaluate(bundle(READS_LAST), "validation", "x")
    assert len(seen[0].shard.windows) == 13 and len(dataset.videos["video1"].windows) == 40


def test_progress(dataset: Dataset, sandbox: Sandbox) -> None:
    told: list[tuple[int, int]] = []
    tested = evaluator(dataset, sandbox, progress=lambda done, total: told.append((done, total)))
    tested.evaluate(bundle(READS_LAST), "development", "x")
    assert [done for done, _ in told] == list(range(1, 13)) and {total for _, total in told} == {12}


class ByPost:
    """An executor of another machine: tasks and results travel as bytes, and come back in any order."""

    def __init__(self, here: ThreadExecutor) -> None:
        self.here = here

    def map(self, tasks: Sequence[ShardTask], settled: Callable[[int], None]) -> Iterator[ShardResult]:
        for letter in reversed([pickle.dumps(task) for task in tasks]):
            yield pickle.loads(pickle.dumps(self.here.run(pickle.loads(letter), settled)))


def test_shards_can_be_run_elsewhere(dataset: Dataset, sandbox: Sandbox, whole: Evaluation) -> None:
    posted = evaluator(dataset, sandbox, executor=ByPost(ThreadExecutor(sandbox, offline_models(), 1)))
    there = posted.evaluate(bundle(READS_LAST), "development", "x")
    assert steady(whole.items) == steady(there.items)


class Losing:
    """An executor that loses a shard."""

    def map(self, tasks: Sequence[ShardTask], settled: Callable[[int], None]) -> Iterator[ShardResult]:
        return iter(())


def test_a_lost_shard_gives_no_figure(dataset: Dataset, sandbox: Sandbox) -> None:
    with pytest.raises(EvaluationFailed, match="without a result"):
        evaluator(dataset, sandbox, executor=Losing()).evaluate(bundle(READS_LAST), "development", "x")


# ---------------------------------------------------------------- whose fault


class Failing:
    """A sandbox whose first containers do not start."""

    name = "bubblewrap"

    def __init__(self, real: Sandbox, failures: int) -> None:
        self.real, self.failures = real, failures
        self.runtime_digest, self.limits = real.runtime_digest, real.limits

    def open(self) -> Channel:
        if self.failures > 0:
            self.failures -= 1
            raise SandboxError("no space left for a container; free some")
        return self.real.open()

    def probe(self) -> tuple[Probe, ...]:
        return self.real.probe()

    @property
    def label(self) -> str:
        return self.real.label

    def close(self) -> None:
        """The real one is closed by who opened it."""


def test_a_sandbox_that_fails_is_tried_once_more(dataset: Dataset, sandbox: Sandbox, whole: Evaluation) -> None:
    failing = Failing(sandbox, 2)  # so many failed starts end one attempt at a shard
    e = evaluator(dataset, failing).evaluate(bundle(READS_LAST), "development", "0001/develop", ["item-0"])
    assert steady(e.items) == steady(whole.items[:1]) and failing.failures == 0
    with pytest.raises(EvaluationFailed, match="no space left"):
        evaluator(dataset, Failing(sandbox, 99)).evaluate(bundle(READS_LAST), "development", "x", ["item-0"])


def test_a_model_that_is_down_gives_no_figure(
    dataset: Dataset, sandbox: Sandbox, models: ModelHub, server: Any
) -> None:
    server.behave = lambda body: (401, "no such key")
    with pytest.raises(EvaluationFailed, match="key was refused"):
        evaluator(dataset, sandbox, models=models).evaluate(bundle(READS_LAST), "development", "x", VIDEO1)


def test_a_cap_that_is_reached_ends_the_run_not_the_candidate(
    dataset: Dataset, sandbox: Sandbox, server: Any, tmp_path: Path
) -> None:
    env = {"HARNESS_MODEL": "local", "OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "k"}
    hub = ModelHub(resolve({"profile": "openai", "caps.requests": 3}, env, None), tmp_path)
    with pytest.raises(CapReached):
        evaluator(dataset, sandbox, models=hub).evaluate(bundle(READS_LAST), "development", "x", VIDEO1)
    assert len(server.requests) == 3
    hub.close()


def test_an_interrupt_does_not_wait_for_containers(dataset: Dataset, sandbox: Sandbox) -> None:
    hanging = bundle("\n        time.sleep(60)\n")
    main = threading.main_thread().ident or 0
    timer = threading.Timer(0.7, lambda: signal.pthread_kill(main, signal.SIGINT))
    started = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        evaluator(dataset, sandbox).evaluate(hanging, "development", "x", VIDEO1)
    assert time.monotonic() - started < 6.0  # five time-outs of 3 s would have ended the shard


# ---------------------------------------------------------------- with a model

BUILDS = """
from policies.contract import Answer, Build, Message, Read

class Policy:
    def __init__(self, setup):
        self.events = []

    def observe(self, windows):
        schema = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
        replies = yield [Build((Message("user", w.captions[0]),), schema) for w in windows]
        self.events += [reply.value["answer"] for reply in replies]

    def settle(self):
        pass

    def answer(self, query):
        reply = yield Read(query.question, query.choices, " ".join(self.events))
        return Answer(reply.choice, f"{len(self.events)}")
"""


def test_construction_counts_once_per_video_at_full_price(
    dataset: Dataset, sandbox: Sandbox, models: ModelHub, server: Any
) -> None:
    tested = evaluator(dataset, sandbox, models=models)
    first = tested.evaluate(bundle(BUILDS, ""), "development", "0001/develop")
    # 32 windows end before the last question of video 2, 30 before that of video 1; they tell the same things.
    assert first.construction.requests == 32 + 30
    assert first.construction.prompt_tokens == 100 * 62 and not first.construction.estimated
    assert first.reader == "local" and not first.offline
    bought = len(server.requests)
    assert bought == 32 + 12
    split = tested.evaluate(bundle(BUILDS, ""), "development", "0002/develop", shards_per_video=2)
    assert split.construction == first.construction
    assert len(server.requests) == bought + 12


def test_a_repeat_is_a_replay(dataset: Dataset, sandbox: Sandbox, models: ModelHub, server: Any) -> None:
    """Resuming an evaluation buys nothing again, and every figure but the policy's own seconds is the same."""
    tested = evaluator(dataset, sandbox, models=models)
    first = tested.evaluate(bundle(READS_LAST), "development", "0001/develop", VIDEO1)
    bought = len(server.requests)
    again = tested.evaluate(bundle(READS_LAST), "development", "0001/develop", VIDEO1, shards_per_video=2)
    assert len(server.requests) == bought == 6
    assert steady(again.items) == steady(first.items)
    assert [i.model_seconds for i in again.items] == [i.model_seconds for i in first.items]
