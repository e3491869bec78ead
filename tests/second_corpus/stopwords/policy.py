"""Raw captions by BM25 after small talk is taken out of the text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from policies.blocks.bm25 import bm25
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.postings import Floats, Postings
from policies.blocks.reading import read
from policies.blocks.select import interleave, top, top_each
from policies.blocks.tokens import terms, words
from policies.contract import Asking, Query, Setup, Window


def listed(text: str) -> frozenset[str]:
    """The words of a list."""
    return frozenset(text.split())


EMPTY = listed(
    """
    okay ok yeah yes no nope hmm mm mhm uh um oh ah aha haha hey hi hello bye well so right sure fine great
    good nice really actually honestly basically literally maybe perhaps probably anyway alright please thanks
    thank sorry welcome wait second minute moment bit little lot thing things stuff something anything nothing
    everything somebody someone anybody anyone everybody everyone nobody way kind sort much many more most
    less least quite rather pretty too also again still yet already soon just only even ever never always
    sometimes here there everywhere somewhere anywhere back away together along around about above across
    after against among before behind below beneath beside between beyond during except inside near off onto
    out outside over past since than though through throughout toward under until unless upon via while within
    without would could should might must shall will can may cannot dont doesnt didnt isnt arent wasnt werent
    hasnt havent hadnt wont wouldnt cant couldnt shouldnt im ive ill id youre youve hes shes theyre were weve
    thats whats lets look looks looking looked see sees seeing saw seen watch hear heard think thinks thought
    know knows knew guess mean means say says said tell tells told talk talks talking ask asks asked feel
    feels felt seem seems seemed happen happens happened start starts started begin begins began keep keeps
    kept go goes going went gone come comes coming came get gets getting got make makes making made let try
    tries trying tried
    """
)
"""Words of everyday talk that say nothing about who did what: fillers, hedges, contractions, light verbs."""
LEAST = 2
"""A line with fewer other words than this is small talk."""
EACH = 5


def telling(line: str) -> list[str]:
    """Terms of a line without empty words; none of a line of small talk."""
    kept = [word for word in words(line) if word.replace("'", "") not in EMPTY]
    return terms(" ".join(kept)) if len(kept) >= LEAST else []


class Policy:
    """An index of telling words only; the raw windows are shown."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()
        self.index = Postings()

    def observe(self, windows: Sequence[Window]) -> None:
        """Keep the windows, and index what is telling in each line."""
        self.memory.observe(windows)
        for window in windows:
            lines = [*window.captions, *(f"{said.speaker}: {said.text}" for said in window.transcript)]
            self.index.add(Counter(term for line in lines for term in telling(line)))

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """The best windows for the question and for each option, in order of time."""
        asked = self._scores(query.question)
        both = np.column_stack([asked + self._scores(text) for text in query.choices.values()])
        head = asked_at(query) + SEPARATOR
        found = interleave([top(asked, EACH), *top_each(both, EACH)])
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "telling", evidence))

    def _scores(self, text: str) -> Floats:
        return bm25(self.index, [term for word in words(text) if word not in EMPTY for term in terms(word)])
