"""Expansion: what was said around retrieved event anchors, close by (V47) or broadly (V15), or as a ledger (V30).

The source gives the three ideas and their outcome (V15 a regression, V30 and V47 not), no size of any.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from policies.blocks.events import EventMemory
from policies.blocks.formats import headline, raw
from policies.blocks.memory import Memory
from policies.blocks.scoring import Scored
from policies.blocks.select import neighbours, top

WIDTH = 1
"""Neighbours on each side of an anchor. Not given by the source: the nearest half minute before and after."""
ADJACENT = 60.0
"""Seconds between two windows that still are neighbours. Not given: beyond, the recording was interrupted."""
NARRATIVE = 600.0
"""Seconds told around each record. Not given by the source: ten minutes, far broader than an event."""
LEDGER = 20
"""Records in the ledger. Not given by the source: about as many as there are slots."""


def beside(memory: Memory, position: int, width: int = WIDTH) -> Iterator[tuple[int, str]]:
    """The windows next to an anchor as (position, text), in order of time; none across a gap in the recording."""
    for at in neighbours([position], width, len(memory)):
        gap = memory.windows.start(max(at, position)) - memory.windows.end(min(at, position))
        if at != position and gap <= ADJACENT * abs(at - position):
            yield at, f"{'before' if at < position else 'after'}: {raw(memory, at)}"


def narrative(memory: Memory, anchors: Sequence[int]) -> list[tuple[int, str]]:
    """All windows within ten minutes around each anchor, those of the first anchor first: (position, text), each once.

    The whole rolling narrative; the caller fits it under the cap.
    """
    starts = memory.windows.starts()
    told: dict[int, None] = {}
    for anchor in anchors:
        near = np.flatnonzero(np.abs(starts - starts[anchor]) <= NARRATIVE / 2)
        told.update(dict.fromkeys(int(at) for at in near))
    return [(at, raw(memory, at)) for at in told]


def ledger(memory: EventMemory, scored: Scored, count: int = LEDGER) -> str:
    """The records that match the question best, in order of time, one line each: time, head of EVENT, PEOPLE."""
    return "\n".join(["ledger:", *(headline(memory, at) for at in sorted(top(scored.asked, count)))])
