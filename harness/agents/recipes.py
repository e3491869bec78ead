"""Recipes: what the offline author recombines. A recipe names building blocks and is rendered to a readable policy.

A recipe stands in the docstring of the policy it became, so that a child can be made from a parent's file alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from policies import library


@dataclass(frozen=True, slots=True)
class Recipe:
    """One composition; every component is one of ``COMPONENTS`` and says which block or constant is used."""

    retriever: str = "uniform"
    """Which windows: evenly spread, the latest, by BM25, or by the five fields."""
    match: str = "question"
    """What they are matched with: the question alone, or question and choice together."""
    pick: str = "each"
    """The best windows of every choice in turn, or the best over all choices."""
    weight: str = "1"
    """Weight of the choice's score beside the question's."""
    bonus: str = "0"
    """Added where question and choice match in the same window."""
    recency: str = "0"
    """Largest shift towards later (earlier) windows where the question asks for the last (first)."""
    turn: str = "0"
    """Where the question asks for the last (first): so many of the latest (earliest) strong matches, and no others."""
    focus: str = "0"
    """Share of the best score that a window needs to be shown."""
    slots: str = "60"
    """Windows shown at most."""
    around: str = "0"
    """Neighbours on each side, told in the same passage."""
    lines: str = "all"
    """All lines of a window, those that match, or each of those as a passage of its own."""
    words: str = "clock"
    """Times as the clock shows them, or also as people say them from the query time."""
    show: str = "raw"
    """Raw captions, the five fields, or one headline."""
    order: str = "time"
    """Order of the context."""
    cap: str = "12500"
    """Characters of context."""
    habit: str = "read"
    """Questions for a habit: read by f, or answered where one choice's support leads clearly."""
    route: str = "read"
    """Read by f always, or answered directly where one choice's best score leads clearly."""
    lead: str = "1.3"
    """How many times the second choice's score the first needs for a direct answer."""

    def normal(self) -> Recipe:
        """With the components that play no part set to their defaults, so that equal policies have equal recipes."""
        plain = Recipe()
        recipe = self
        if recipe.retriever in ("uniform", "recent"):
            idle = ("match", "pick", "weight", "bonus", "recency", "turn", "focus", "order", "habit", "route")
            recipe = replace(recipe, **{name: getattr(plain, name) for name in idle})
        if recipe.match == "question":
            recipe = replace(recipe, pick=plain.pick, weight=plain.weight, bonus=plain.bonus, route=plain.route)
        if recipe.show != "raw":
            recipe = replace(recipe, lines=plain.lines)
        if recipe.route == "read":
            recipe = replace(recipe, lead=plain.lead)
        return recipe

    def text(self) -> str:
        """``name=value`` for what differs from the defaults, retriever first; ``parse_text`` reads it."""
        plain = Recipe()
        changed = [
            f.name for f in fields(self) if f.name == "retriever" or getattr(self, f.name) != getattr(plain, f.name)
        ]
        return " ".join(f"{name}={getattr(self, name)}" for name in changed)


COMPONENTS: Mapping[str, tuple[str, ...]] = {
    "retriever": ("uniform", "recent", "bm25", "fields"),
    "match": ("question", "sum"),
    "pick": ("each", "best"),
    "weight": ("0.5", "1", "2", "4"),
    "bonus": ("0", "2", "4", "8"),
    "recency": ("0", "1", "2", "4", "8"),
    "turn": ("0", "1", "2", "4"),
    "focus": ("0", "0.5", "0.7", "0.85"),
    "slots": ("4", "8", "12", "18", "24", "36", "60"),
    "around": ("0", "1", "2"),
    "lines": ("all", "matching", "apart"),
    "words": ("clock", "relative"),
    "show": ("raw", "five_fields", "headline"),
    "order": ("time", "score"),
    "cap": ("3000", "5000", "8000", "12500"),
    "habit": ("read", "support"),
    "route": ("read", "direct"),
    "lead": ("1.05", "1.15", "1.3", "1.6"),
}
"""Values of every component. Not given by the source but for those of V1 (weight 2, bonus 4, slots 18, cap 12,500)."""

KNOWN: Mapping[str, Recipe] = {
    "v00": Recipe(retriever="uniform"),
    "v01": Recipe(retriever="fields", match="sum", weight="2", bonus="4", recency="2", slots="18", show="five_fields"),
    "bm25": Recipe(retriever="bm25", match="sum", slots="4", route="direct", lead="1.05"),
}
"""The nearest recipe of policies that were not rendered from one."""

_PAIR = re.compile(r"\b([a-z]+)=([\w.]+)")


def parse_text(text: str) -> Recipe | None:
    """The recipe in ``text`` (after ``Recipe:``), or None; unknown components and values are ignored."""
    _, found, rest = text.partition("Recipe:")
    pairs = {name: value for name, value in _PAIR.findall(rest) if value in COMPONENTS.get(name, ())}
    return Recipe(**pairs).normal() if found and "retriever" in pairs else None


def recover(files: Mapping[str, str]) -> Recipe:
    """The recipe that a package states or is known by, else the nearest by the blocks that it imports."""
    code = files.get("policy.py", "")
    try:
        stated = parse_text(ast.get_docstring(ast.parse(code)) or "")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        stated = None
    if stated is not None:
        return stated
    data = {path: text.encode("utf-8", "surrogatepass") for path, text in files.items()}
    for name, recipe in KNOWN.items():
        if name in library.names() and library.load(name) == data:
            return recipe
    for block, name in (("fields", "v01"), ("scoring", "v01"), ("bm25", "bm25")):
        if f"policies.blocks.{block}" in code:
            return KNOWN[name]
    return KNOWN["v00"]
