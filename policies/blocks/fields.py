"""Field-aware scores of the method: S_q for the question, S_c for a choice, and the total S with its bonus.

s_f(r) = |T(q) and T(r_f)| per field f; S_q(r) = sum of w_f(q) s_f(r).
S(r, c) = ALPHA S_q(r) + BETA S_c(r, c) + GAMMA [S_q(r) > 0 and S_c(r, c) > 0], the bonus once per record and choice.
All coefficients are constants, fixed during a search.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from policies.blocks.events import EventMemory
from policies.blocks.postings import Floats, Ints
from policies.blocks.tokens import content, speech_question
from policies.contract import Query

ALPHA = 1.0
BETA = 2.0
GAMMA = 4.0
"""Weights of S_q, S_c and the same-record bonus (given)."""
PHRASE = 5.0
"""Added to S_c where a field holds the choice's exact phrase (given)."""
PHRASE_TERMS = 2
"""Content terms a choice needs for its phrase to count. Not given by the source: else one name in PEOPLE would score
more than the 3.5 of its worked example. ``one_token_phrases`` lifts it."""
QUESTION_WEIGHTS: Mapping[str, float] = {"EVENT": 3.0, "PEOPLE": 2.5, "OBJECTS": 2.0, "PLACE": 2.0, "DIALOGUE": 1.5}
"""w_base of S_q. Not given by the source: the action first; its worked S_q of 3.0 fits one EVENT term."""
CHOICE_WEIGHTS: Mapping[str, float] = {"EVENT": 3.0, "PEOPLE": 3.5, "OBJECTS": 2.5, "PLACE": 2.5, "DIALOGUE": 2.0}
"""Weights of S_c. PEOPLE is given; the others are not: in the order of QUESTION_WEIGHTS, below PEOPLE."""
WHERE_PLACE = 2.0
WHO_PEOPLE = 2.0
SPEECH_DIALOGUE = 2.5
"""Added for a question's form. Which field is given, the size is not: enough to put it above or beside EVENT."""

_WHERE = re.compile(r"\bwhere\b", re.IGNORECASE)
_WHO = re.compile(r"\b(who|whom)\b", re.IGNORECASE)


def question_weights(question: str) -> dict[str, float]:
    """w(q): the base weights, and more for PLACE, PEOPLE, DIALOGUE where it asks where, who, what was said."""
    weights = dict(QUESTION_WEIGHTS)
    if _WHERE.search(question):
        weights["PLACE"] += WHERE_PLACE
    if _WHO.search(question):
        weights["PEOPLE"] += WHO_PEOPLE
    if speech_question(question):
        weights["DIALOGUE"] += SPEECH_DIALOGUE
    return weights


def fields_question(memory: EventMemory, query: Query) -> Floats:
    """S_q of every record, shape (n,)."""
    return memory.weighed(content(query.question), question_weights(query.question))


def choice_matches(memory: EventMemory, choice: str, one_token_phrases: bool = False) -> tuple[Ints, Floats]:
    """The m records that match a choice, in order, and their S_c: two arrays of shape (m,)."""
    wanted = content(choice)
    if len(wanted) == 1 and not one_token_phrases:
        return memory.matching(next(iter(wanted)), CHOICE_WEIGHTS)
    scores = memory.weighed(wanted, CHOICE_WEIGHTS)
    if one_token_phrases or len(wanted) >= PHRASE_TERMS:
        scores[memory.with_phrase(choice)] += PHRASE
    positions = np.flatnonzero(scores)
    return positions, scores[positions]


def fields_choices(memory: EventMemory, query: Query, one_token_phrases: bool = False) -> Floats:
    """S_c of every record for each choice, shape (n, k) in the order of the choices."""
    rows = np.zeros((len(query.choices), len(memory)), np.float32)
    for row, text in zip(rows, query.choices.values(), strict=True):
        positions, scores = choice_matches(memory, text, one_token_phrases)
        row[positions] = scores
    return rows.T


def totals(asked: Floats, chosen: Floats, bonus: float = GAMMA) -> Floats:
    """S from S_q (n,) and S_c (n, k), shape (n, k)."""
    rows = chosen.T
    scores: Floats = BETA * rows + ALPHA * asked + bonus * ((asked > 0) & (rows > 0)).astype(rows.dtype)
    return scores.T
