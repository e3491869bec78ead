"""A corpus whose writer had not seen the rules: what the gate makes of it, recorded as it came.

Nothing was tuned to it. One cheat passes: it asks the fixed model without evidence. Three of the honest ones break
rules of form that every author is told (an import, a dunder attribute, a string that is too long).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.data.frames import open_frames
from harness.data.native import load
from harness.gate.corpus import load_corpus
from harness.gate.dynamic import DynamicTests
from harness.models.hub import offline_models
from policies.contract import Budget
from tests.gate.test_corpus import judge_of

CORPUS = load_corpus(Path(__file__).resolve().parents[1] / "second_corpus")
PASSES = {"rounds", "patterns", "fusion", "widths"}
FORM = {"S05", "S07", "S12", "S15"}


def test_what_passes_and_why_the_others_do_not(sandboxes: Callable[[str], Any]) -> None:
    data = load(CORPUS.data)
    box = sandboxes("bubblewrap")
    dynamic = DynamicTests(data, box, offline_models(), Budget(), 1, 2, open_frames(data))
    judged = judge_of(CORPUS, dynamic, offline_models()).judge()
    assert {one.entry.folder for one in judged if not one.rejected} == PASSES
    honest = [one for one in judged if one.entry.kind.value == "honest" and one.rejected]
    assert all(set(one.rules) <= FORM and one.stage == "static" for one in honest)
