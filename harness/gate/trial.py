"""One variant in one container, and what was seen of it: choices in the base's words, bytes, requests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace

from harness.evaluation.executor import EvaluationFailed
from harness.evaluation.meter import read_digest
from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.outcomes import Cost
from harness.evaluation.services import FrameSource, Services
from harness.gate.source import escape
from harness.gate.swapping import Swap
from harness.gate.variants import Variant
from harness.models.interface import CapReached, Models, Role
from policies.contract import (
    Build,
    Embed,
    Frames,
    Generate,
    OverBudget,
    Query,
    Read,
    ReadReply,
    Refused,
    Reply,
    Request,
    Setup,
)
from sandbox.interface import Bundle, Sandbox, Shard, Verdict
from sandbox.stream import run_shard


@dataclass
class Seen:
    """What a candidate did in one container."""

    choices: dict[str, str | None] = field(default_factory=dict)
    """Text of the choice in the base's words, by the question's id in the base; None where there was no answer."""
    orders: dict[str, list[str]] = field(default_factory=dict)
    """Texts of all choices in the base's words, in the order shown."""
    bytes: dict[str, str] = field(default_factory=dict)
    """Digest of verdict, answer and requests, likewise."""
    verdicts: list[tuple[Verdict, str]] = field(default_factory=list)
    """With the detail of each question that failed."""
    future: int = 0
    """Requests for frames after the query time."""
    over_budget: int = 0
    refused: str = ""
    """Why the first request over budget was refused."""
    modelled: bool = False
    """Whether a model embedded, built or wrote anything."""
    written: bool = False
    """Whether a model wrote: asked again it may write something else."""


class Trials:
    """Runs variants of one video. Safe to share between threads."""

    def __init__(
        self, sandbox: Sandbox, models: Models, setup: Setup, video: str, frames: FrameSource | None = None
    ) -> None:
        self.sandbox, self.models, self.setup, self.video, self.frames = sandbox, models, setup, video, frames
        self._reader = OfflineAnswers()

    def run(self, bundle: Bundle, variant: Variant, scope: str) -> Seen:
        """Run it; once more where the sandbox failed. Raises EvaluationFailed and CapReached."""
        for last in (False, True):
            host = _Host(self, variant, scope)
            outcome = run_shard(
                self.sandbox, bundle, Shard(f"{self.video}/dynamic", variant.windows, variant.queries), self.setup, host
            )
            failure = host.services.failure
            if isinstance(failure, CapReached):
                raise failure
            if failure is not None:
                raise EvaluationFailed(f"the dynamic tests stopped, model: {failure}")
            broken = [q for q in outcome.questions if q.verdict is Verdict.SANDBOX_ERROR]
            if not broken:
                break
            if last:
                raise EvaluationFailed(f"the dynamic tests stopped, sandbox: {broken[0].detail}")
        seen = host.seen
        for question in outcome.questions:
            if question.query_id not in variant.original:
                continue
            name, answer = variant.original[question.query_id], question.answer
            seen.verdicts.append((question.verdict, question.detail))
            choice = answer.choice if answer is not None else None
            seen.choices[name] = variant.texts[question.query_id].get(choice or "")
            seen.orders[name] = list(variant.texts[question.query_id].values())
            done = [
                question.verdict.value,
                asdict(answer) if answer is not None else None,
                host.asked(question.query_id),
            ]
            seen.bytes[name] = hashlib.sha256(json.dumps(done, sort_keys=True).encode()).hexdigest()
        return seen


class _Host:
    """Serves as in scoring, but for letters: those come from the offline reader, in the words of the base."""

    def __init__(self, trials: Trials, variant: Variant, scope: str) -> None:
        self.seen = Seen()
        self._asked: dict[str, list[str]] = {}
        self._models = trials.models
        self.services = Services(
            models=trials.models,
            offline=_Reader(trials._reader, variant.swap),
            budget=trials.setup.budget,
            video=trials.video,
            windows=len(variant.windows),
            scope=scope,
            frames=trials.frames,
            read_offline=True,
        )

    def serve(self, request: Request, query: Query | None) -> Reply | Refused:
        reply = self.services.serve(request, query)
        if query is not None:
            self._asked.setdefault(query.id, []).append(repr(request))
            if isinstance(request, Frames) and request.times and max(request.times) > query.time:
                self.seen.future += 1
        if isinstance(reply, OverBudget):
            self.seen.over_budget += 1
            self.seen.refused = self.seen.refused or escape(str(reply), 120)
        if isinstance(request, Build | Embed | Generate) and not isinstance(reply, Refused):
            self.seen.modelled = True
            self.seen.written |= isinstance(request, Generate)
        if isinstance(request, Read) and isinstance(reply, ReadReply) and self._models.has(Role.ANSWER):
            return replace(reply, text=json.dumps({"answer": reply.choice}))  # as the model's own replies look
        return reply

    def asked(self, query: str) -> list[str]:
        """All that was asked for a question."""
        return self._asked.get(query, [])


@dataclass(frozen=True, slots=True)
class _Reader:
    """The offline reader, shown every request in the words of the base."""

    reader: OfflineAnswers
    swap: Swap

    def answer(self, read: Read, digest: str, images: Sequence[bytes] = ()) -> tuple[ReadReply, Cost]:
        plain = replace(
            read,
            question=self.swap.back(read.question),
            choices={letter: self.swap.back(text) for letter, text in read.choices.items()},
            context=self.swap.back(read.context),
            instructions=self.swap.back(read.instructions),
        )
        return self.reader.answer(plain, read_digest(plain), images)
