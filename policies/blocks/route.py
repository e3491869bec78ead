"""Routes of the text stage and their metadata z_t: a specialist's direct answer, or the structured event fallback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from policies.blocks.instructions import STRUCTURED
from policies.blocks.memory import Memory
from policies.blocks.packing import LIMIT, Packed
from policies.blocks.reading import read
from policies.blocks.scoring import Scored
from policies.contract import Answer, Asking, Budget, Json, Query

STRUCTURED_EVENT = "structured_event"
"""Name of the fallback's route. Not given by the source, which gives no route names."""


@dataclass(frozen=True, slots=True)
class Direct:
    """What a specialist computed from memory alone, without asking f. None in its place: the specialist abstains."""

    letter: str
    route: str
    positions: tuple[int, ...]
    """The records it rests on, the most important first."""


def characters(budget: Budget) -> int:
    """Cap of the context in characters: the method's own, or the host's where that is tighter."""
    return min(LIMIT, budget.context_chars)


def metadata(query: Query, scored: Scored, memory: Json) -> dict[str, Json]:
    """The part of z_t that both routes have; ``memory`` says who made the records."""
    return {"support": dict(zip(query.choices, scored.counts, strict=True)), "memory": memory}


def direct_answer(memory: Memory, direct: Direct, notes: dict[str, Json], budget: Budget) -> Answer:
    """The specialist's answer, with z_t in its diagnostics."""
    evidence = memory.references(direct.positions)[: budget.evidence]
    return Answer(direct.letter, direct.route, evidence, {**notes, "direct": True, "parsed": True})


def structured_event(memory: Memory, query: Query, packed: Packed, notes: dict[str, Json], budget: Budget) -> Asking:
    """Ask f once over the packed evidence and return the ``Answer``, with z_t in its diagnostics."""
    evidence = memory.references((*packed.positions, *packed.near))[: budget.evidence]
    kept: dict[str, Json] = {**notes, "direct": False, "dropped": packed.dropped}
    return (yield from read(query, packed.text, STRUCTURED_EVENT, evidence, STRUCTURED, kept))


def only(columns: Sequence[int]) -> int | None:
    """The one column named, None where there is none or several."""
    distinct = set(columns)
    return distinct.pop() if len(distinct) == 1 else None
