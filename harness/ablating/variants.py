"""What is switched off in each variant of the search, in words and as configuration."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Variant:
    """One way to search."""

    name: str
    """Names its run folders."""
    told: str
    """What is different, for people."""
    values: Values
    """Configuration that it replaces, by section and key."""

    @property
    def candidates(self) -> int:
        """Attempts of one iteration."""
        return int(self.values.get("author", {}).get("candidates", 1))


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
    ),
)
"""The four settings of the paper's ablation (LVMH, Figure 5, whose numbers it does not give), and the outer loop that
it is compared with (Figure 2), in the slim form that differs in these three things."""


def configured(base: Mapping[str, Any], variant: Variant, seed: int, iterations: int) -> dict[str, Any]:
    """The values of a run: those of ``base`` with the variant's, the seed, and as many attempts as it makes."""
    values = copy.deepcopy(dict(base))
    for section, keys in variant.values.items():
        values[section] = {**values[section], **keys}
    asked = {"seed": seed, "iterations": iterations * variant.candidates, "name": run_name(variant, seed)}
    values["run"] = {**values["run"], **asked}
    return values


def run_name(variant: Variant, seed: int) -> str:
    """The folder of one search."""
    return f"{variant.name}-s{seed}"
