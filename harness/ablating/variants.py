"""What is switched off in each variant of the search, in words and as configuration."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Mapping[str, object]]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to search."""

    name: str
    """Names its run folders."""
    told: str
    """What is different, for people."""
    values: Values
    """Configuration that it replaces, by section and key."""
    candidates: int = 1
    """Attempts of one iteration."""


NO_REVIEW: Values = {"gate": {"checks": "none"}}

VARIANTS = (
    Variant("complete", "gate, meta-memory, separate roles", {}),
    Variant("no-review", "no gate: no rules, dynamic tests, reviewer, audit of results or development bar", NO_REVIEW),
    Variant("no-memory", "nothing is told of earlier attempts", {"memory": {"kind": "none"}}),
    Variant("single-agent", "one conversation does it all, no gate", {**NO_REVIEW, "author": {"team": "single"}}),
    Variant(
        "meta-harness",
        "no gate, a summary file for memory, three candidates an iteration",
        {**NO_REVIEW, "memory": {"kind": "summary"}, "author": {"candidates": 3}},
        candidates=3,
    ),
)
"""The four settings of the paper's ablation (LVMH, Figure 5, whose numbers it does not give), and the outer loop that
it is compared with (Figure 2), in the slim form that differs in these three things."""


def configured(base: Mapping[str, Any], variant: Variant, seed: int, iterations: int) -> dict[str, Any]:
    """The values of a run: those of ``base`` with the variant's, the seed, and as many attempts as it makes."""
    values = copy.deepcopy(dict(base))
    for section, keys in variant.values.items():
        values[section] = {**values[section], **keys}
    name = f"{variant.name}-s{seed}"
    values["run"] = {**values["run"], "seed": seed, "iterations": iterations * variant.candidates, "name": name}
    return values
