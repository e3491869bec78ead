"""Support of the choices: how many records or captions speak for each. Lexical counts, not probabilities."""

from __future__ import annotations

import numpy as np

from policies.blocks.memory import Memory
from policies.blocks.postings import Floats
from policies.blocks.tokens import content
from policies.contract import Query


def support_counts(asked: Floats, chosen: Floats) -> list[int]:
    """n_c: records in which question and choice both match, each counted once whatever it scores.

    ``asked`` is S_q (n,), ``chosen`` S_c (n, k); all eligible records count, shown or not.
    """
    matched = asked > 0
    return [int(np.count_nonzero(matched & (row > 0))) for row in chosen.T]


def choice_hit_counts(memory: Memory, query: Query) -> list[int]:
    """Raw windows whose captions or transcript hold any content term of each choice, for the visual gate.

    The rule is not given by the source; what is given is that these differ from ``support_counts``.
    """
    return [memory.text.holding(content(text)) for text in query.choices.values()]


def leader(values: Floats | list[int], least: float, ratio: float, lead: float) -> int | None:
    """Column of the clear leader: at least ``least``, ``ratio`` times and ``lead`` more than the second; else None."""
    ranked = sorted(((float(value), -column) for column, value in enumerate(values)), reverse=True)
    if not ranked:
        return None
    (best, column), second = ranked[0], ranked[1][0] if len(ranked) > 1 else 0.0
    clear = best >= least and best >= ratio * second and best - second >= lead and best > second
    return -column if clear else None
