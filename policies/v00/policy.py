"""V0: uniform captions under the cap, answered by the fixed model. Where a search starts.

The source does not describe a V0: this is the plainest policy that keeps the budget.
"""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import uniform
from policies.contract import Asking, Query, Setup, Window


class Policy:
    """As many whole windows as fit, spread evenly over all that was seen."""

    def __init__(self, setup: Setup) -> None:
        self.limit = setup.budget.context_chars
        self.evidence = setup.budget.evidence
        self.memory = Memory()
        self.characters = 0

    def observe(self, windows: Sequence[Window]) -> None:
        """Keep the windows and how long they are once formatted."""
        first = len(self.memory)
        self.memory.observe(windows)
        self.characters += sum(len(raw(self.memory, at)) + len(SEPARATOR) for at in range(first, len(self.memory)))

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """Sample evenly, fit whole windows under the cap, ask f."""
        size, head = len(self.memory), asked_at(query) + SEPARATOR
        limit = self.limit - len(head)
        count = limit * size // max(self.characters, 1)
        items = fit(((at, raw(self.memory, at)) for at in uniform(size, max(count, 1))), limit)
        evidence = self.memory.references([at for at, _ in items])
        return (yield from read(query, (head + joined(items))[: self.limit], "uniform", evidence[: self.evidence]))
