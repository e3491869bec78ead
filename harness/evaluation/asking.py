"""One question put into a video's stream, outside any split: no gold, the answer with its evidence and its cost."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.data.native import Video
from harness.errors import UserError
from harness.evaluation.meter import QuestionMeter, priced
from harness.evaluation.offline import OfflineAnswers
from harness.evaluation.outcomes import Cost
from harness.evaluation.prompts import render_open
from harness.evaluation.services import FrameSource, Services
from harness.models.interface import ChatMessage, ChatRequest, Models, ReplyKind, Role
from policies.contract import Answer, Query, Read, ReadReply, Setup
from sandbox.interface import Bundle, Sandbox, SandboxError, Shard, Verdict
from sandbox.stream import run_shard

OPEN_TOKENS = 512
"""Completion cap of an open answer: a few sentences, and room for a model that thinks first. Not given."""
NO_CHOICES: Mapping[str, str] = {"A": "", "B": ""}
"""What a policy sees of a question without choices. It chooses among letters by contract; empty texts match nothing,
so that it retrieves by the question alone."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What came of one question."""

    answer: Answer
    said: str
    """The answer model's own words for a question without choices; empty offline and where there are choices."""
    meter: QuestionMeter
    policy_seconds: float
    """From question to answer in the sandbox, less the time in the host's services."""
    observe_seconds: float
    """Time to take in the stream up to the question."""
    construction: Cost


class OpenServices(Services):
    """Serves a question without choices: where the policy asks for a letter, the answer model is asked in words.

    The policy's own context is what it answers from, and at a verification its answer so far with the frames; the
    policy is told of no letter. Without a model nothing is said.
    """

    said = ""

    def _asked(self, read: Read, scope: str) -> tuple[ReadReply, Cost]:
        if read.part == "verification" and self.said:
            read = replace(read, context=f"Answer from the text alone: {self.said}\n\n{read.context}")
        system, user = render_open(read)
        user = ChatMessage("user", user.content, tuple(self._images[ref].data for ref in read.frames))
        reply = self.models.chat(Role.ANSWER, ChatRequest((system, user), OPEN_TOKENS), scope)
        if reply.kind is ReplyKind.OK:
            self.said = reply.text
        return ReadReply(None, reply.text), priced(reply.usage, reply.seconds)


class _Silent:
    """There is no reader that answers in words."""

    def answer(self, read: Read, digest: str, images: Sequence[bytes] = ()) -> tuple[ReadReply, Cost]:
        return ReadReply(None, ""), Cost()


def ask(
    bundle: Bundle,
    video: Video,
    query: Query,
    setup: Setup,
    sandbox: Sandbox,
    models: Models,
    frames: FrameSource | None = None,
    opened: Callable[[], None] = lambda: None,
) -> Asked:
    """Send the stream up to the question's time, put the question; ``query.choices`` may be empty.

    Raises UserError where nothing was seen yet or the policy fails, and what the models raise.
    """
    windows = tuple(window for window in video.windows if window.end <= query.time)
    if not windows:
        raise UserError(f"nothing of {video.id} was seen by then; ask at a time after its first window has ended")
    is_open = not query.choices
    shown = Query(query.id, query.type, query.question, dict(query.choices or NO_CHOICES), query.time)
    kind = OpenServices if is_open else Services
    services = kind(
        models=models,
        offline=_Silent() if is_open else OfflineAnswers(),
        budget=setup.budget,
        video=video.id,
        windows=len(windows),
        scope="ask",
        frames=frames,
        opened=opened,
    )
    try:
        outcome = run_shard(sandbox, bundle, Shard(f"{video.id}/ask", windows, (shown,)), setup, services)
    except SandboxError as error:
        raise UserError(str(error)) from None
    if services.failure is not None:
        raise services.failure
    (result,) = outcome.questions
    if result.verdict is not Verdict.OK or result.answer is None:
        raise UserError(f"the policy gave no answer, {result.verdict}: {result.detail or 'no reason given'}")
    built = services.construction
    return Asked(
        answer=result.answer,
        said=services.said if isinstance(services, OpenServices) else "",
        meter=services.questions.get(query.id, QuestionMeter()),
        policy_seconds=max(0.0, result.seconds - result.served_seconds),
        observe_seconds=outcome.observe_seconds,
        construction=sum((built.builds | built.embeds).values(), Cost()),
    )


def query_id(video: str, type_: str, question: str, choices: Mapping[str, str], time: float) -> str:
    """The same question gets the same id, so that its replies are found again."""
    text = json.dumps([video, type_, question, list(choices.items()), time])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
