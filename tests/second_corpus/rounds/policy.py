"""Three short rounds with the answer model before the evidence is shown; a stable opinion is kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import interleave, top, top_each
from policies.contract import Answer, Asking, Query, Read, ReadReply, Refused, Setup, Window

ASK = "Without any record: which option sounds as if somebody had written it as the answer, and which as filler?"
EACH = 4


class Policy:
    """An opinion that survives another order of the options needs no evidence."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Ask with the options turned round, then with evidence if the opinions differ."""
        letters = list(query.choices)
        opinions: Counter[str] = Counter()
        for turn in range(max(self.budget.reads - 1, 0)):
            order = letters[turn:] + letters[:turn]
            shown = dict(zip(letters, (query.choices[letter] for letter in order), strict=True))
            try:
                reply = yield Read(query.question, shown, "(none)", ASK)
            except Refused:
                break
            if isinstance(reply, ReadReply) and reply.choice in shown:
                opinions[order[letters.index(reply.choice)]] += 1
        if opinions and max(opinions.values()) > 1:
            return Answer(opinions.most_common(1)[0][0], "opinion")
        alone = bm25_question(self.memory, query)
        both = bm25_choices(self.memory, query) + alone[:, None]
        head = asked_at(query) + SEPARATOR
        found = interleave([top(alone, EACH), *top_each(both, EACH)])
        items = fit(((at, raw(self.memory, at)) for at in found), self.budget.context_chars - len(head))
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        return (yield from read(query, head + joined(items), "evidence", evidence))
