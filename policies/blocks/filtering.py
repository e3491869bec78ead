"""Neighbour filtering: retrieved clips with the windows around them, of which only the useful lines are kept.

The source gives that neighbours of a retrieved clip are attached on demand and that a query-aware filter distils what
is relevant. Width, prompt and what is done without a model are not given.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from policies.blocks.memory import Memory, window_text
from policies.blocks.rewrite import closed
from policies.blocks.select import neighbours
from policies.blocks.timefmt import stamp
from policies.blocks.tokens import content
from policies.contract import Asking, Budget, Generate, GenerateReply, Message, Query, Refused

WIDTH = 2
"""Windows attached on each side of a clip. Not given by the source: a minute before and after."""
CHARS = 10_000
"""Characters of lines shown to the filter. Not given by the source: within the default budget of one request."""
TOKENS = 512

INSTRUCTIONS = """\
You are given a question about a video and numbered lines of what was seen and heard. Keep the lines that help to
answer the question, those that place it in time or say who takes part included. Leave out all others; it is right to
keep none where none helps. Reply with the numbers of the lines to keep."""
"""Not given by the source."""
SCHEMA = closed({"keep": {"type": "array", "items": {"type": "integer"}}})


@dataclass(frozen=True, slots=True)
class Passage:
    """What is kept of one window: its lines in order, one text."""

    position: int
    text: str


def attach(memory: Memory, hits: Sequence[int], seen: set[int]) -> list[int]:
    """The new windows of this round, hits first and each once: ``hits``, then their neighbours, without ``seen``.

    The memory holds the windows that ended by the query time and no others, so no neighbour lies behind it.
    """
    near = neighbours(hits, WIDTH, len(memory))
    return [at for at in dict.fromkeys([*hits, *near]) if at not in seen]


def keep_useful(
    memory: Memory, query: Query, asked: str, positions: Sequence[int], hits: Sequence[int], budget: Budget
) -> Asking:
    """Filter the windows at ``positions`` for ``query``; returns (passages in their order, whether f filtered).

    ``asked`` is the search that found ``hits``. Where f gives no list of lines, a hit is kept whole and of a neighbour
    the lines that share a content word with the question, a choice or the search.
    """
    lines = [(at, line) for at in positions for line in _lines(memory, at)]
    shown = _fitting(lines)
    try:
        reply = yield _request(memory, query, shown, budget)
    except Refused:
        reply = None
    if isinstance(reply, GenerateReply) and reply.value is not None:
        numbers = set(reply.value["keep"])
        return _passages(line for number, line in enumerate(shown, 1) if number in numbers), True
    wanted = content(" ".join([query.question, *query.choices.values(), asked]))
    return _passages((at, line) for at, line in lines if at in hits or not wanted.isdisjoint(content(line))), False


def _lines(memory: Memory, position: int) -> list[str]:
    """Captions and turns of a window, one line each."""
    return [line for text in window_text(memory.windows[position]).splitlines() if (line := " ".join(text.split()))]


def _fitting(lines: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """As many of the first lines as fit."""
    left = CHARS
    for count, (_, line) in enumerate(lines):
        left -= len(line)
        if left < 0:
            return lines[:count]
    return lines


def _passages(lines: Iterable[tuple[int, str]]) -> list[Passage]:
    kept: dict[int, list[str]] = {}
    for at, line in lines:
        kept.setdefault(at, []).append(line)
    return [Passage(at, " ".join(texts)) for at, texts in kept.items()]


def _request(memory: Memory, query: Query, lines: list[tuple[int, str]], budget: Budget) -> Generate:
    numbered = (f"{number}. [{stamp(memory.windows[at].start)}] {line}" for number, (at, line) in enumerate(lines, 1))
    user = "\n".join([asking(query), "Lines:", *numbered])
    messages = (Message("system", INSTRUCTIONS), Message("user", user))
    return Generate(messages, min(TOKENS, budget.generate_tokens), SCHEMA)


def asking(query: Query) -> str:
    """The question, its choices and its time, as the model is told them."""
    choices = "; ".join(f"{letter}: {text}" for letter, text in query.choices.items())
    return f"Question, asked at {stamp(query.time)}: {query.question}\nChoices: {choices}"
