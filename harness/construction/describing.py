"""Captions and transcripts by models: a window's pictures to the captioner, its sound to the transcriber.

Every call goes through the hub: reserved before it is sent, stored by content when it is received. So a build that
is begun again sends what was not received yet, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from typing import TypeVar

from harness.construction import axis, prompts, video
from harness.construction.decoding import one_line
from harness.construction.lines import Line
from harness.construction.material import Clip
from harness.construction.windows import Draft
from harness.display import visible
from harness.errors import UserError
from harness.models.interface import (
    CapReached,
    ChatMessage,
    ChatReply,
    ChatRequest,
    ModelError,
    Models,
    ReplyKind,
    RequestRefused,
    Role,
    Transcript,
)

PICTURES = 4
"""Pictures of a window that the captioner is shown, unless told otherwise. Not given by the source: one in 7.5 s, as
many as SEEM's budget for one question."""
CAPTION_TOKENS = 400
"""Completion tokens of one caption. Not given by the source: eight short lines take about 200."""
PARALLEL = 4
"""Calls under way at the same time, unless told otherwise."""
REFUSALS = 3
"""Windows that a model may refuse before any was described: after that it takes no pictures at all."""
BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,2}[.)])\s+")

T = TypeVar("T")
Watch = Callable[[str, int, int], None]
"""What is being made, how many are done, of how many."""


@dataclass
class Told:
    """What came of one piece: lines by the place of their window, and what could not be had."""

    lines: dict[int, list[Line]] = field(default_factory=dict)
    asked: int = 0
    """Requests that were sent now."""
    kept: int = 0
    """Replies that were there from before."""
    notes: list[str] = field(default_factory=list)


def caption(models: Models, clip: Clip, pictures: int, parallel: int, watch: Watch) -> Told:
    """A caption for each window of a clip.

    A window that the model refuses or says nothing about has none, with a note. Raises UserError: no call can be
    served, or no window got a caption.
    """
    drafts, file = clip.drafts, clip.file
    moments = [_moments(draft, pictures) for draft in drafts]
    seen = video.pictures(file, clip.contents, [at - clip.start for times in moments for at in times])

    def calls() -> Iterator[tuple[int, Callable[[], ChatReply | RequestRefused]]]:
        for place, (draft, times) in enumerate(zip(drafts, moments, strict=True)):
            request = _request(draft, times, tuple(next(seen) for _ in times))
            yield place, lambda request=request: _chat(models, request)  # type: ignore[misc]

    told, refused, silent, cut = Told(), [], 0, 0
    for done, (place, reply) in enumerate(_each(calls(), parallel), 1):
        watch(f"captions of {file.name}", done, len(drafts))
        if isinstance(reply, RequestRefused):
            refused.append((place, str(reply)))
            if len(refused) > REFUSALS and not told.lines:
                raise UserError(f"{file}: {refused[0][1]}; name a captioner that takes pictures")
            continue
        told.asked, told.kept = told.asked + (not reply.stored), told.kept + reply.stored
        cut += reply.kind is ReplyKind.TRUNCATED
        draft = drafts[place]
        texts = [one_line(BULLET.sub("", text), str(file)) for text in reply.text.split("\n")]
        if reply.kind is not ReplyKind.REFUSED and any(texts):
            told.lines[place] = [Line(draft.start, draft.end, text, False) for text in texts if text]
        else:
            silent += 1
    if not told.lines:
        why = refused[0][1] if refused else "its replies are empty"
        raise UserError(f"{file}: the captioner described none of {len(drafts)} windows: {why}; name another one")
    for place, why in refused:
        told.notes.append(f"{file}: no caption at {axis.shown(drafts[place].start)}: {why}")
    if silent:
        told.notes.append(f"{file}: {silent} of {len(drafts)} windows without a caption: the model gave none")
    if cut:
        told.notes.append(f"{file}: {cut} captions reached the bound on tokens and end early; see max_tokens")
    return told


def transcribe(models: Models, clip: Clip, parallel: int, watch: Watch) -> Told:
    """What is said in each window of a clip; sound is cut where windows are, so that none tells of the next.

    Raises UserError: no call can be served.
    """
    drafts, file = clip.drafts, clip.file
    heard = video.sounds(file, clip.contents, [(draft.start - clip.start, draft.end - clip.start) for draft in drafts])

    def calls() -> Iterator[tuple[int, Callable[[], Transcript | RequestRefused | None]]]:
        for place, (draft, audio) in enumerate(zip(drafts, heard, strict=True)):
            length = draft.end - draft.start
            yield place, lambda audio=audio, length=length: _hear(models, audio, length)  # type: ignore[misc]

    told = Told()
    for done, (place, reply) in enumerate(_each(calls(), parallel), 1):
        watch(f"transcript of {file.name}", done, len(drafts))
        if isinstance(reply, RequestRefused):
            if not told.asked + told.kept:
                raise UserError(f"{file}: {reply}; name a transcriber that takes WAV files")
            told.notes.append(f"{file}: no transcript at {axis.shown(drafts[place].start)}: {reply}")
        elif reply is not None:
            told.asked, told.kept = told.asked + (not reply.stored), told.kept + reply.stored
            told.lines[place] = _spoken(reply, drafts[place], str(file))
    if not any(told.lines.values()):
        told.notes.append(f"{file}: nobody is heard to speak")
    return told


def _moments(draft: Draft, pictures: int) -> list[float]:
    """The middles of ``pictures`` equal parts of a window, on the axis."""
    return [draft.start + (part + 0.5) * (draft.end - draft.start) / pictures for part in range(pictures)]


def _request(draft: Draft, times: Sequence[float], images: tuple[bytes, ...]) -> ChatRequest:
    """The same pictures make the same request, wherever on the axis they are."""
    offsets = [f"{at - draft.start:.1f}" for at in times]
    user = prompts.render("user", offsets=offsets, seconds=f"{draft.end - draft.start:.0f}")
    messages = (ChatMessage("system", prompts.render("system")), ChatMessage("user", user, images))
    return ChatRequest(messages, CAPTION_TOKENS)


def _chat(models: Models, request: ChatRequest) -> ChatReply | RequestRefused:
    try:
        return models.chat(Role.CAPTIONER, request, "caption")
    except RequestRefused as error:
        return error


def _hear(models: Models, audio: bytes, length: float) -> Transcript | RequestRefused | None:
    try:
        return models.transcribe(audio, length, "transcribe") if audio else None
    except RequestRefused as error:
        return error


def _spoken(reply: Transcript, draft: Draft, place: str) -> list[Line]:
    """A transcript's segments on the axis; all of the window where it has no times."""
    timed = [(s.start, s.end, s.text) for s in reply.segments] or [(0.0, draft.end - draft.start, reply.text)]
    lines = [(start, min(draft.start + end, draft.end), one_line(text, place)) for start, end, text in timed]
    return [Line(draft.start + start, end, text, True) for start, end, text in lines if text]


def _each(calls: Iterable[tuple[int, Callable[[], T]]], parallel: int) -> Iterator[tuple[int, T]]:
    """Results as they come; the next calls are prepared while ``parallel`` are under way, and no further.

    Where one fails, those under way are waited for (their replies are stored), then UserError is raised.
    """
    with ThreadPoolExecutor(parallel) as pool:
        waiting: dict[Future[T], int] = {}
        try:
            for place, call in calls:
                waiting[pool.submit(call)] = place
                if len(waiting) > parallel:
                    yield from _ended(waiting)
            while waiting:
                yield from _ended(waiting)
        except (ModelError, CapReached) as error:
            raise UserError(
                f"{visible(str(error), 600)}; what was received is kept: the same command goes on from there"
            ) from None
        finally:
            for future in waiting:
                future.cancel()


def _ended(waiting: dict[Future[T], int]) -> Iterator[tuple[int, T]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in sorted(done, key=lambda future: waiting[future]):
        yield waiting.pop(future), future.result()
