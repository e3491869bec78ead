"""Conservative visual verification: a few localised frames, one more call to f, and the text answer unless refuted.

Given: the caption windows are ranked and at most four frames fetched; f is told, word for word, to maintain the text
answer unless visual evidence unambiguously proves an alternative; missing frames and failures leave it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

from policies.blocks.formats import SEPARATOR, asked_at, fit, joined
from policies.blocks.instructions import VERIFY
from policies.blocks.memory import Memory
from policies.blocks.scoring import Scored
from policies.contract import Answer, Asking, Budget, Frames, FramesReply, Json, Query, Read, ReadReply, Refused

FRAMES = 4
"""Frames at most (given)."""
APART = 30.0
"""Seconds between two frames at least. Not given by the source: one window's length, so that they show four moments."""
CONSIDERED = 64
"""Windows of which the frames are chosen. Not given by the source: enough that four of them lie apart."""
VISUAL = "+visual"
"""Ends the route's name where frames were looked at."""


def verified(
    memory: Memory,
    query: Query,
    scored: Scored,
    text: Answer,
    show: Callable[[int], str],
    budget: Budget,
) -> Asking:
    """Return the ``Answer`` after frames were consulted: ``text`` itself where that was not possible.

    ``show`` formats a window for the context.
    """
    windows = rank_windows(memory, query, scored, text.choice, min(budget.frames, FRAMES))
    if not windows:
        return _kept(text, "no window with frames")
    try:
        found = yield Frames(tuple(_middle(memory, at) for at in windows))
        if not isinstance(found, FramesReply) or not found.frames:
            return _kept(text, "no frames")
        references = tuple(frame.ref for frame in found.frames)
        instructions = VERIFY.replace("{answer}", text.choice or "none")
        context = _context(query, ((at, show(at)) for at in windows), budget.context_chars)
        reply = yield Read(query.question, query.choices, context, instructions, references, "verification")
    except Refused as refusal:
        return _kept(text, f"{type(refusal).__name__}: {refusal}"[:300])
    verdict = reply.choice if isinstance(reply, ReadReply) and reply.choice in query.choices else None
    notes = _notes(text, "verified" if verdict else "no letter") | {
        "frames": len(references),
        "text_answer": text.choice,
    }
    evidence = tuple(dict.fromkeys((*memory.references(windows), *text.evidence)))[: budget.evidence]
    return replace(text, choice=verdict or text.choice, route=text.route + VISUAL, evidence=evidence, diagnostics=notes)


def rank_windows(memory: Memory, query: Query, scored: Scored, letter: str | None, count: int) -> list[int]:
    """Positions of the windows to look at: best by S(r, text answer), then S_q; with frames and ``APART`` seconds.

    The ranking is not given by the source.
    """
    column = None if letter is None else list(query.choices).index(letter)
    found = scored.best(column, CONSIDERED, memory.windows.frames())
    chosen: list[int] = []
    for at, _ in sorted(found, key=lambda pair: (-pair[1], -scored.asked[pair[0]], pair[0])):
        if all(abs(_middle(memory, at) - _middle(memory, other)) >= APART for other in chosen):
            chosen.append(at)
    return chosen[:count]


def _context(query: Query, items: Iterable[tuple[int, str]], limit: int) -> str:
    """What the windows of the frames say, in order of time."""
    head = asked_at(query) + SEPARATOR
    return (head + joined(fit(items, limit - len(head))))[:limit]


def _middle(memory: Memory, position: int) -> float:
    return (memory.windows.start(position) + memory.windows.end(position)) / 2


def _kept(text: Answer, why: str) -> Answer:
    return replace(text, diagnostics=_notes(text, why))


def _notes(text: Answer, outcome: str) -> dict[str, Json]:
    return {**text.diagnostics, "verification": outcome}
