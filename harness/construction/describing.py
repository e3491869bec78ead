"""Captions and transcripts by models: a window's pictures to the captioner, its sound to the transcriber.

Every call goes through the hub: reserved before it is sent, stored by content when it is received. So a build that
is begun again sends what was not received yet, and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
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


Place = tuple[Clip, int]
"""A window: the clip, and its number in it."""


@dataclass
class Told:
    """What came of asking; the lines themselves stand in the windows."""

    asked: int = 0
    """Requests that were answered now."""
    kept: int = 0
    """Replies that were there from before."""
    described: int = 0
    """Windows that got lines."""
    notes: list[str] = field(default_factory=list)

    def count(self, stored: bool) -> None:
        """One more reply."""
        self.asked, self.kept = self.asked + (not stored), self.kept + stored


def caption(models: Models, clips: Sequence[Clip], pictures: int, parallel: int, watch: Watch) -> Told:
    """Put captions into each window of the clips.

    A window that the model refuses or says nothing about gets none, with a note. Raises UserError: no call can be
    served, or no window got a caption.
    """
    total = sum(len(clip.drafts) for clip in clips)
    watch("captions", 0, total)
    told, refused, silent, cut = Told(), [], 0, 0
    for done, ((clip, number), reply) in enumerate(_each(_to_see(models, clips, pictures), parallel), 1):
        watch("captions", done, total)
        draft = clip.drafts[number]
        if isinstance(reply, RequestRefused):
            refused.append(f"{clip.file}: no caption at {axis.shown(draft.start)}: {reply}")
            if len(refused) > REFUSALS and not told.described:
                raise UserError(f"{refused[0]}; name a captioner that takes pictures")
            continue
        told.count(reply.stored)
        cut += reply.kind is ReplyKind.TRUNCATED
        texts = [one_line(BULLET.sub("", text), str(clip.file)) for text in reply.text.split("\n")]
        if reply.kind is not ReplyKind.REFUSED and any(texts):
            told.described += 1
            draft.lines += [Line(draft.start, draft.end, text, False) for text in texts if text]
        else:
            silent += 1
    if not told.described:
        raise UserError(
            f"the captioner described none of {total} windows: {refused[0] if refused else 'its replies are empty'};"
            " name another one"
        )
    told.notes += refused
    if silent:
        told.notes.append(f"{silent} of {total} windows without a caption: the captioner gave none")
    if cut:
        told.notes.append(f"{cut} captions reached the bound on tokens and end early; see max_tokens of the captioner")
    return told


def transcribe(models: Models, clips: Sequence[Clip], parallel: int, watch: Watch) -> Told:
    """Put what is said into each window of the clips; sound is cut where windows are, so that none tells of the next.

    Raises UserError: no call can be served.
    """
    total = sum(len(clip.drafts) for clip in clips)
    watch("transcripts", 0, total)
    told = Told()
    for done, ((clip, number), reply) in enumerate(_each(_to_hear(models, clips), parallel), 1):
        watch("transcripts", done, total)
        draft = clip.drafts[number]
        if isinstance(reply, RequestRefused):
            if not told.asked + told.kept:
                raise UserError(f"{clip.file}: {reply}; name a transcriber that takes WAV files")
            told.notes.append(f"{clip.file}: no transcript at {axis.shown(draft.start)}: {reply}")
        elif reply is not None:
            told.count(reply.stored)
            lines = _spoken(reply, draft, str(clip.file))
            draft.lines += lines
            told.described += bool(lines)
    if not told.described:
        told.notes.append("nobody is heard to speak")
    return told


def _to_see(
    models: Models, clips: Sequence[Clip], pictures: int
) -> Iterator[tuple[Place, Callable[[], ChatReply | RequestRefused]]]:  # fmt: skip
    for clip in clips:
        moments = [_moments(draft, pictures) for draft in clip.drafts]
        seen = video.pictures(clip.file, clip.contents, [at - clip.start for times in moments for at in times])
        for number, times in enumerate(moments):
            request = _request(clip.drafts[number], times, tuple(next(seen) for _ in times))
            yield (clip, number), partial(_see, models, request)


def _to_hear(
    models: Models, clips: Sequence[Clip]
) -> Iterator[tuple[Place, Callable[[], Transcript | RequestRefused | None]]]:  # fmt: skip
    for clip in clips:
        cuts = [(draft.start - clip.start, draft.end - clip.start) for draft in clip.drafts]
        for number, audio in enumerate(video.sounds(clip.file, clip.contents, cuts)):
            yield (clip, number), partial(_hear, models, audio, cuts[number][1] - cuts[number][0])


def _moments(draft: Draft, pictures: int) -> list[float]:
    """The middles of ``pictures`` equal parts of a window, on the axis."""
    return [draft.start + (part + 0.5) * (draft.end - draft.start) / pictures for part in range(pictures)]


def _request(draft: Draft, times: Sequence[float], images: tuple[bytes, ...]) -> ChatRequest:
    """The same pictures make the same request, wherever on the axis they are."""
    offsets = [f"{at - draft.start:.1f}" for at in times]
    user = prompts.render("user", offsets=offsets, seconds=f"{draft.end - draft.start:.0f}")
    messages = (ChatMessage("system", prompts.render("system")), ChatMessage("user", user, images))
    return ChatRequest(messages, CAPTION_TOKENS)


def _see(models: Models, request: ChatRequest) -> ChatReply | RequestRefused:
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


def _each(calls: Iterable[tuple[Place, Callable[[], T]]], parallel: int) -> Iterator[tuple[Place, T]]:
    """Results as they come; the next calls are prepared while ``parallel`` are under way, and no further.

    Where one fails, those under way are waited for (their replies are stored), then UserError is raised.
    """
    with ThreadPoolExecutor(parallel) as pool:
        waiting: dict[Future[T], Place] = {}
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


def _ended(waiting: dict[Future[T], Place]) -> Iterator[tuple[Place, T]]:
    done, _ = wait(waiting, return_when=FIRST_COMPLETED)
    for future in done:
        yield waiting.pop(future), future.result()
