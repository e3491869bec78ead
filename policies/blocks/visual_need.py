"""StrongVisualNeed: does the wording ask for what can only be seen? A deterministic rule, no model call.

It reads the question-type label and the question, never choices, answer, evidence or frames. One of the trigger terms
must stand in them, as whole words in any case, and none of five exclusions may hold. The rule and the exclusions are
given; of the trigger terms only the purpose is (appearance, spatial and counting detail).
"""

from __future__ import annotations

import re

from policies.contract import Query


def _words(*terms: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(terms)})\b", re.IGNORECASE)


def _list(terms: str) -> list[str]:
    return terms.split()


COLOURS = _list(
    "color colour colors colours red orange yellow green blue purple pink brown black white gray grey silver gold "
    "golden"
)
LOOKS = _list(
    "wearing wears holding holds visible shown appear appears appearance look looks shape pattern logo sign label "
    "written text screen"
)
POSITIONS = _list("left right above below")
COUNTS = ["how many", "number of"]
LABELS = _list("count counting spatial ocr attribute")
TRIGGER = _words(*COLOURS, *LOOKS, *POSITIONS, *COUNTS, *LABELS)
"""Terms of which one must match. Not given by the source (its table of them is missing): appearance, position and
counting are its purposes, its exclusions only make sense if these words trigger, and labels belong to the text."""

FREQUENCY = _words(
    "how many times",
    "number of times",
    "most often",
    r"past\s+\d+\s+days",
    "usually",
    "often",
    "frequency",
    "frequently",
)
"""Exclusion 1, temporal frequency (given)."""
PREFERENCE = _words("like", "likes", "prefer", "prefers", "drink", "drinks")
"""Exclusion 3, preference (given). It also suppresses "look like", which the source accepts."""
IDIOM = _words("look after")
"""Exclusion 4, an idiom (given)."""
POSITION = _words(*POSITIONS)
RELATION = re.compile(
    r"\b(?:who|whom|whose|with|together|not|did not|without|participate)\b|n['\u2019]t\b", re.IGNORECASE
)
"""Exclusion 5, a position together with a relation or a negation (given)."""

_WHO = re.compile(r"\bwho\b", re.IGNORECASE)
_FOLLOWER = re.compile(r"\s+(?:is|was|were|appears?|looks?|wearing|wears|holding|holds|visible|shown)\b", re.IGNORECASE)
_CUE = _words("wearing", "wears", "holding", "holds", "visible", "shown", "color", "colour")


def strong_visual_need(query: Query, lenient_identity_cue: bool = False) -> bool:
    """The trigger and none of the exclusions. ``lenient_identity_cue`` lets "Who wears the hat?" through, whose
    follower is itself the cue; whether the source means a further one it does not say."""
    text = f"{query.type} {query.question}"
    return bool(TRIGGER.search(text)) and not excluded(text, lenient_identity_cue)


def excluded(text: str, lenient_identity_cue: bool = False) -> int:
    """Number of the first exclusion that holds, 0 where none does."""
    holds = (
        bool(FREQUENCY.search(text)),
        _unconstrained_identity(text, lenient_identity_cue),
        bool(PREFERENCE.search(text)),
        bool(IDIOM.search(text)),
        bool(POSITION.search(text) and RELATION.search(text)),
    )
    return next((number for number, held in enumerate(holds, 1) if held), 0)


def _unconstrained_identity(text: str, lenient: bool) -> bool:
    """Exclusion 2 (given): a "who", unless a follower stands right behind it and, after that, a cue."""
    for who in _WHO.finditer(text):
        follower = _FOLLOWER.match(text, who.end())
        if follower is None or not _CUE.search(text, who.end() if lenient else follower.end()):
            return True
    return False
