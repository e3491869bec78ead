"""Baseline: the longest option, whatever was seen or asked. No memory, no model."""

from __future__ import annotations

from collections.abc import Sequence

from policies.contract import Answer, Query, Setup, Window


class Policy:
    """Ties go to the first letter."""

    def __init__(self, setup: Setup) -> None:
        pass

    def observe(self, windows: Sequence[Window]) -> None:
        """Nothing is kept."""

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Answer:
        """The option of most characters."""
        return Answer(max(query.choices, key=lambda letter: len(query.choices[letter])), "longest option")
