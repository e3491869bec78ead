"""Directions for an author that plays researcher and implementer in one call: one is drawn for each proposal.

They are mechanisms from the research wiki, spelled out, because a small model writes valid code when the formula stands
in the prompt. A larger model is free to take another.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Direction:
    """One mechanism, with an example in terms of the building blocks."""

    text: str
    code: str = ""


DIRECTIONS: tuple[Direction, ...] = (
    Direction(
        "choose windows by how well they match the question, instead of evenly.",
        "from policies.blocks.bm25 import bm25_question\nfrom policies.blocks.select import top\n"
        "positions = top(bm25_question(self.memory, query), 12)",
    ),
    Direction(
        "choose windows that match the question and a choice together: add the two scores and take the best windows "
        "of every choice.",
        "from policies.blocks.bm25 import bm25_choices, bm25_question\n"
        "from policies.blocks.select import interleave, top_each\n"
        "scores = bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)\n"
        "positions = interleave(top_each(scores, 4))",
    ),
    Direction(
        "keep the windows that are chosen now, and add one neighbour on both sides of the best three.",
        "from policies.blocks.select import neighbours\npositions = neighbours(positions[:3], 1, len(self.memory))",
    ),
    Direction("give the answer model half as many windows, the best ones, to save tokens."),
    Direction("give the answer model twice as many windows, as far as the context limit allows."),
    Direction(
        "for questions that ask for the last time, prefer later windows among those that match.",
        "if 'last' in query.question.lower():\n    scores = scores + 0.1 * np.arange(len(scores)) / len(scores)",
    ),
    Direction("put the best matching windows first in the context instead of in order of time."),
    Direction(
        "count, for each choice, how many windows hold a word of the question and a word of the choice, and write the "
        "counts in the first line of the context.",
    ),
)
