"""Who gave what to whom: sentences are taken apart by patterns, and roles must agree with the question's."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import interleave, top, top_each
from policies.blocks.tokens import content
from policies.contract import Asking, Query, Setup, Window

_WHO = r"(?:[A-Z]\w+|I|[Mm]e|[Ss]omebody|[Ss]omeone)"
_WHAT = r"(?:the|a|an|some|my|his|her|their) [\w -]{2,40}?"
_GIVE = r"(?:gives?|gave|hands?|handed|pass(?:es|ed)?|lends?|lent|brings?|brought)"
_TAKE = r"(?:gets?|got|takes?|took|receives?|received|accepts?|accepted|borrows?|borrowed)"
_HELP = r"(?:helps?|helped|assists?|assisted|joins?|joined)"
PATTERNS = (
    re.compile(rf"(?P<giver>{_WHO}) {_GIVE} (?P<thing>{_WHAT}) to (?P<taker>{_WHO})\b"),
    re.compile(rf"(?P<giver>{_WHO}) {_GIVE} (?P<taker>{_WHO}) (?P<thing>{_WHAT})(?=[.,;!?]|$)"),
    re.compile(rf"(?P<taker>{_WHO}) {_TAKE} (?P<thing>{_WHAT}) from (?P<giver>{_WHO})\b"),
    re.compile(rf"(?P<giver>{_WHO}) {_HELP} (?P<taker>{_WHO}) with (?P<thing>{_WHAT})(?=[.,;!?]|$)"),
    re.compile(rf"(?P<taker>{_WHO}) \w+(?: up)? (?P<thing>{_WHAT}), and (?P<giver>{_WHO}) {_HELP}\b"),
)
_NOT = re.compile(r"\b(?:not|never|nearly|almost|could have|would have|wants?|wanted|wish(?:es|ed)?)\b|n't\b")
"""A sentence with one of these tells of nothing that happened."""
BONUS = 3.0
EACH = 4


@dataclass(frozen=True, slots=True)
class Handing:
    """One exchange."""

    position: int
    roles: frozenset[str]
    thing: frozenset[str]


def handings(position: int, lines: Sequence[str]) -> list[Handing]:
    """All exchanges told in a window's captions."""
    found = []
    for line in lines:
        if _NOT.search(line):
            continue
        for pattern in PATTERNS:
            for match in pattern.finditer(line):
                roles = frozenset({match["giver"].casefold(), match["taker"].casefold()})
                found.append(Handing(position, roles, content(match["thing"])))
    return found


class Policy:
    """Windows in which an exchange of the thing asked for is told come up; later ones a little more."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()
        self.handings: list[Handing] = []

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows and take their captions apart."""
        first = len(self.memory)
        self.memory.observe(windows)
        for position, window in enumerate(windows, first):
            self.handings += handings(position, window.captions)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Bonus for exchanges, then the best windows are read."""
        asked, about = bm25_question(self.memory, query), content(query.question)
        spoken = {word.casefold() for word in re.findall(r"\w+", query.question)}
        bonus = np.zeros(len(self.memory))
        for rank, one in enumerate(self.handings, 1):
            if one.thing and one.thing <= about and one.roles & spoken:
                bonus[one.position] = BONUS * (1 + rank / len(self.handings))
        total = asked + bonus
        both = bm25_choices(self.memory, query) + total[:, None]
        head = asked_at(query) + SEPARATOR
        found = interleave([top(total, EACH), *top_each(both, EACH)])
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "roles", evidence))
