"""Packing: the evidence context c_q from scored records, under its cap.

Up to GLOBALS records that matter whatever the choice, and up to EACH per choice; a header with question type,
memory mode, temporal hint, number of eligible records and support counts. The slots are filled one record per choice
first, then the globals, then the rest per choice (this order is not given by the source: it keeps the choices even
when the cap bites). A record is shown whole or not at all; where it fills several slots, later ones refer back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from policies.blocks.formats import SEPARATOR, asked_at, one_line
from policies.blocks.memory import Memory
from policies.blocks.postings import Floats
from policies.blocks.recency import hint
from policies.blocks.select import top, top_each
from policies.contract import Query

GLOBALS = 6
EACH = 3
LIMIT = 12_500
"""Records and characters at most (given)."""
ABOVE = "(shown above)"
"""Stands for the text of a record that an earlier slot shows."""

Format = Callable[[int], str]
"""From a record's position to its text."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The context, the records it shows in the order they were chosen, and how many slots the cap left empty."""

    text: str
    positions: tuple[int, ...]
    dropped: int


@dataclass(frozen=True, slots=True)
class _Slot:
    section: int
    """0 for the globals, then one per choice."""
    position: int
    score: float


def header(memory: Memory, query: Query, mode: str, counts: Sequence[int]) -> str:
    """What the answer model is told beside the records."""
    support = " ".join(f"{letter}={count}" for letter, count in zip(query.choices, counts, strict=True))
    return (
        f"question_type: {one_line(query.type)}\nmemory_mode: {mode}\n{asked_at(query)}\n"
        f"temporal_hint: {hint(query.question)}\neligible_records: {len(memory)}\n"
        f"field_cooccurrence_count: {support}"
    )


def pack(
    memory: Memory,
    query: Query,
    overall: Floats,
    each: Floats,
    counts: Sequence[int],
    show: Format,
    mode: str,
    limit: int = LIMIT,
) -> Packed:
    """The context, never longer than ``limit`` characters.

    ``overall`` (n,) ranks the globals, ``each`` (n, k) the records of each choice; a record that scores 0 is not taken.
    """
    head = header(memory, query, mode, counts)
    if len(head) > limit:
        return Packed("", (), 0)
    left = limit - len(head)
    shown: dict[int, str] = {}
    titles: set[int] = set()
    kept: list[_Slot] = []
    slots = _slots(overall, each)
    for slot in slots:
        body = ABOVE if slot.position in shown else one_line(show(slot.position))
        title = 0 if slot.section in titles else len(SEPARATOR) + len(_title(query, slot.section))
        need = title + len(SEPARATOR) + len(_line(memory, slot, body))
        if need > left:
            continue
        left -= need
        titles.add(slot.section)
        shown.setdefault(slot.position, body)
        kept.append(slot)
    return Packed(_render(memory, query, head, kept, shown), tuple(shown), len(slots) - len(kept))


def _slots(overall: Floats, each: Floats) -> list[_Slot]:
    """All slots in the order they are filled."""
    general = [_Slot(0, at, float(overall[at])) for at in top(overall, GLOBALS)]
    columns = top_each(each, EACH)
    ranks = [
        [
            _Slot(1 + column, chosen[rank], float(each[chosen[rank], column]))
            for column, chosen in enumerate(columns)
            if rank < len(chosen)
        ]
        for rank in range(EACH)
    ]
    return [*ranks[0], *general, *(slot for rank in ranks[1:] for slot in rank)]


def _render(memory: Memory, query: Query, head: str, kept: Sequence[_Slot], shown: dict[int, str]) -> str:
    """Sections in order; a record's text stands at its first slot in reading order."""
    blocks = [head]
    told: set[int] = set()
    for section in range(1 + len(query.choices)):
        mine = [slot for slot in kept if slot.section == section]
        if mine:
            blocks.append(_title(query, section))
        for slot in mine:
            blocks.append(_line(memory, slot, ABOVE if slot.position in told else shown[slot.position]))
            told.add(slot.position)
    return SEPARATOR.join(blocks)


def _title(query: Query, section: int) -> str:
    """Letters only: a choice's own words here would look like evidence for it."""
    return "[for the question]" if section == 0 else f"[for choice {list(query.choices)[section - 1]}]"


def _line(memory: Memory, slot: _Slot, body: str) -> str:
    return f"#{memory.windows[slot.position].index} score {slot.score:.1f} {body}"
