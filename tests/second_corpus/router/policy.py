"""A learned router over surface features of a question decides which option's evidence is read with care."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import interleave, top_each
from policies.contract import Asking, Query, Setup, Window

CAREFUL = 20
PLAIN = 1


def lane(text: str) -> int:
    """The lane of a question: grown on a trace, then written out."""
    f0 = len(text) % 11
    f1 = text.count("e")
    f2 = text.count("o") + text.count("a")
    f3 = text.count("t")
    f4 = len(text.split())
    f5 = text.count("r") + text.count("n")
    f6 = ord(text.split()[-1][0]) - 97
    if f4 <= 5:
        if f1 <= 3:
            if f2 <= 4:
                if f3 <= 2:
                    if f6 <= 18:
                        if f0 <= 2:
                            return 1
                        return 2
                    return 1
                if f4 <= 4:
                    return 3
                return 1
            return 3
        return 3
    if f6 <= 18:
        if f2 <= 6:
            if f4 <= 9:
                if f6 <= 6:
                    if f3 <= 4:
                        return 0
                    return 0
                if f1 <= 5:
                    return 3
                return 0
            if f2 <= 5:
                if f0 <= 3:
                    return 0
                return 1
            if f0 <= 0:
                return 1
            return 3
        if f3 <= 5:
            if f0 <= 9:
                if f6 <= 15:
                    return 1
                return 2
            return 2
        if f0 <= 2:
            return 3
        if f1 <= 5:
            return 2
        return 0
    if f5 <= 5:
        if f4 <= 7:
            if f0 <= 0:
                return 2
            return 2
        if f1 <= 5:
            if f4 <= 8:
                return 3
            return 0
        if f1 <= 6:
            return 2
        return 0
    return 2


class Policy:
    """One option in the lane is read with many windows, the others with one."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Route, pack, read."""
        letters = sorted(query.choices, key=query.choices.__getitem__)
        careful = list(query.choices).index(letters[lane(query.question.lower()) % len(letters)])
        alone = bm25_question(self.memory, query)
        own = bm25_choices(self.memory, query)
        own[:, careful] *= 2.0
        lists = [
            found[: CAREFUL if at == careful else PLAIN]
            for at, found in enumerate(top_each(own + 0.25 * alone[:, None], CAREFUL))
        ]
        head = asked_at(query) + SEPARATOR
        items = fit(((at, raw(self.memory, at)) for at in interleave(lists)), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), f"lane {careful}"[:64], evidence))
