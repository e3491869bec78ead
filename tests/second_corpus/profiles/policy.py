"""Captions by BM25, with a standing profile of the household in front of them."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import interleave, top, top_each
from policies.blocks.tokens import content
from policies.contract import Asking, Query, Setup, Window

HOUSEHOLD = (
    "call the plumber is planned on Friday.",
    "Lotte is sketching in the morning.",
    "Priya drinks cocoa.",
    "Emre has to feed the goldfish.",
    "Ines is juggling.",
    "Emre has to water the ferns.",
    "Zadie spends free time by the nightstand.",
    "Lotte is sketching.",
    "return the library books is planned on Saturday.",
    "Hugo is sketching.",
    "Hugo asked somebody to order the birthday cake.",
    "Felix has to sign for the parcel.",
    "Greta asked somebody to wash the curtains.",
    "Bo is going to tune the ukulele.",
    "book the theatre tickets is planned on Friday.",
    "Hugo spends free time by the doormat.",
    "Tilo is stretching around noon.",
    "print the invitations is planned on Wednesday.",
    "Tilo is stretching.",
    "Greta goes by the trolley for a pastime.",
    "Felix is whittling.",
    "Okan drinks milkshake.",
)
"""Common sense about who does what, in one sentence each."""
PROFILE = 3
SHOWN = 4


class Policy:
    """The sentences of the profile that bear on the question, then captions."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Profile first, then the best windows for the question and for each option."""
        asked = content(query.question)
        bearing = sorted(HOUSEHOLD, key=lambda line: -len(content(line) & asked))[:PROFILE]
        bearing = [line for line in bearing if len(content(line) & asked) >= 1]
        profile = SEPARATOR.join(line for line in bearing for _ in range(2))
        head = asked_at(query) + SEPARATOR + (profile + SEPARATOR if profile else "")
        alone = bm25_question(self.memory, query)
        both = bm25_choices(self.memory, query) + alone[:, None]
        found = interleave([top(alone, SHOWN), *top_each(both, SHOWN)])
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "profile", evidence))
