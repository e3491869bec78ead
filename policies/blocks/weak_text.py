"""WeakText: can the text answer be relied on? Weak unless all reliability checks hold.

Given: the inputs p (a letter was read), d (the route was direct), the route's name, and h1 >= h2 (the two highest
choice-hit counts), and that all checks must hold. Their formula is missing in the source; two readings are built.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypeAlias

from policies.blocks import frequency, relational, temporal_delta

Reading: TypeAlias = Literal["all", "either"]
SPECIALISTS = frozenset({temporal_delta.ROUTE, frequency.ROUTE, relational.ROUTE})
HITS = 2
"""Least h1 of reliable text. Not given by the source: one caption may be chance."""
LEAD = 1
"""Least h1 - h2 of the second reading. Not given by the source: any lead."""


def weak_text(parsed: bool, direct: bool, route: str, hits: Sequence[int], reading: Reading = "all") -> bool:
    """``hits`` are the choice-hit counts in any order.

    Reading ``all``: p, d, a specialist's route, h1 >= 2 and h1 > h2 must hold, so that an answer of f is always weak.
    Reading ``either``: p, and d or h1 >= 2, and h1 - h2 >= 1.
    """
    first, second = sorted((*hits, 0, 0), reverse=True)[:2]
    if reading == "all":
        return not (parsed and direct and route in SPECIALISTS and first >= HITS and first > second)
    return not (parsed and (direct or first >= HITS) and first - second >= LEAD)
