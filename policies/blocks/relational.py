"""Relational and provenance specialist: who was it with, who brought it? All that is asked, bound in one record.

Given: for interactions (meal companions, joint tasks) all queried entities must co-occur in the same action record
before it can answer; unrelated records can never establish the link. Several choices bound: it abstains (ours).
"""

from __future__ import annotations

import re

import numpy as np

from policies.blocks.events import EventMemory
from policies.blocks.postings import Bools
from policies.blocks.recency import direction
from policies.blocks.route import Direct, only
from policies.blocks.tokens import content
from policies.contract import Query

ROUTE = "relational"
ENTITIES = 2
"""Terms that a question must name. Not given: "who was with me" alone is bound by every record with a name."""

_TRIGGER = re.compile(
    r"\bwith (whom|who)\b|\bwho\b.*\bwith\b|\btogether\b|\bwho (gave|brought|bought|helped)\b", re.IGNORECASE
)
"""Questions of interaction. The kind is given, the patterns are not."""
_FORM = frozenset(
    ["together", "last", "time", "first", "late", "earliest", "previous", "now", "just", "usual", "usually", "often"]
)
"""Terms that name the form of such a question, no entity."""


def relational(memory: EventMemory, query: Query) -> Direct | None:
    """The one choice whose people stand in a record with everything that is asked about, or None."""
    wanted = content(query.question) - _FORM
    if not _TRIGGER.search(query.question) or len(wanted) < ENTITIES:
        return None
    action = memory.holds(wanted, ("EVENT",)) & np.all([memory.holds((term,)) for term in wanted], axis=0)
    bound = [
        (int(position), column)
        for column, choice in enumerate(query.choices.values())
        for position in np.flatnonzero(action & _people(memory, choice))
    ]
    wished = direction(query.question)
    if wished and bound:
        turn = (max if wished > 0 else min)(position for position, _ in bound)
        bound = [pair for pair in bound if pair[0] == turn]
    column = only([column for _, column in bound])
    if column is None:
        return None
    return Direct(list(query.choices)[column], ROUTE, tuple(sorted(position for position, _ in bound)))


def _people(memory: EventMemory, choice: str) -> Bools:
    """Records in whose PEOPLE every term of the choice stands, shape (n,); a choice that is no name stands nowhere."""
    names = content(choice)
    if not names or not all(map(memory.is_name, names)):
        return np.zeros(len(memory), bool)
    return np.asarray(memory.overlap("PEOPLE", names) == len(names))
