"""Packing: the evidence context c_q from scored records, under its cap.

Up to GLOBALS records that matter whatever the choice, and up to EACH per choice; a header with question type,
memory mode, temporal hint, number of eligible records and support counts. The slots are filled one record per choice
first, then the globals, then the rest per choice (this order is not given by the source: it keeps the choices even
when the cap bites). A record is shown whole or not at all; where it fills several slots, later ones refer back.
Neighbours, where asked for, stand inside their anchor's slot and are filled in last.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from policies.blocks.formats import SEPARATOR, asked_at, one_line
from policies.blocks.memory import Memory
from policies.blocks.recency import hint
from policies.blocks.scoring import Scored, overall
from policies.contract import Query

GLOBALS = 6
EACH = 3
LIMIT = 12_500
"""Records and characters at most (given)."""
BESIDE = " | "
ABOVE = "(shown above)"
"""Stands for the text of a record that an earlier slot shows."""

Format = Callable[[int], str]
"""From a record's position to its text, one line."""
Beside = Callable[[int], Iterable[tuple[int, str]]]
"""From a record's position to the neighbours that may stand in its slot: (position, text)."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The context, the records it shows in the order they were chosen, and how many slots the cap left empty."""

    text: str
    positions: tuple[int, ...]
    dropped: int
    near: tuple[int, ...] = ()
    """Neighbours shown beside them."""


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
    scored: Scored,
    show: Format,
    mode: str,
    limit: int = LIMIT,
    preface: str = "",
    beside: Beside | None = None,
) -> Packed:
    """The context, never longer than ``limit`` characters; a record that scores 0 is not taken.

    ``preface`` stands between header and records where it fits.
    """
    head = header(memory, query, mode, scored.counts)
    if preface and len(head) + len(SEPARATOR) + len(preface) <= limit:
        head += SEPARATOR + preface
    if len(head) > limit:
        return Packed("", (), 0)
    left = limit - len(head)
    titles_of = [_title(query, section) for section in range(1 + len(query.choices))]
    shown: dict[int, str] = {}
    titles: set[int] = set()
    kept: list[_Slot] = []
    slots = _slots(scored)
    for slot in slots:
        body = ABOVE if slot.position in shown else show(slot.position)
        title = 0 if slot.section in titles else len(SEPARATOR) + len(titles_of[slot.section])
        need = title + len(SEPARATOR) + len(_line(memory, slot, body))
        if need > left:
            continue
        left -= need
        titles.add(slot.section)
        shown.setdefault(slot.position, body)
        kept.append(slot)
    positions = tuple(shown)
    near = _fill(shown, beside, left) if beside else ()
    return Packed(_render(memory, query, head, kept, shown), positions, len(slots) - len(kept), near)


def _fill(shown: dict[int, str], beside: Beside, left: int) -> tuple[int, ...]:
    """Add neighbours to the texts of ``shown``, each whole and once, until one does not fit; which were added."""
    near: dict[int, None] = {}
    for position in tuple(shown):
        for at, text in beside(position):
            if at in shown or at in near:
                continue
            left -= len(text) + len(BESIDE)
            if left < 0:
                return tuple(near)
            shown[position] += BESIDE + text
            near[at] = None
    return tuple(near)


def _slots(scored: Scored) -> list[_Slot]:
    """All slots in the order they are filled. The globals are ranked by their best choice's score (not given)."""
    columns = scored.each(max(GLOBALS, EACH))
    general = [_Slot(0, *found) for found in overall(columns, GLOBALS)]
    ranks = [
        [_Slot(column, *found[rank]) for column, found in enumerate(columns, 1) if rank < len(found)]
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
    return f"#{memory.windows.index_of(slot.position)} score {slot.score:.1f} {body}"
