"""The whole search over the real EgoLifeQA: every evaluation has every question, and the report is plain."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.data.native import load
from harness.outcomes import Measured
from harness.state.store import RunStore
from tests.endtoend.conftest import Finished

SIZES = {"development": 246, "validation": 159}


@pytest.mark.egolife
def test_every_evaluation_has_every_question(
    egolife_folder: Path, harness: Callable[..., Finished], tmp_path: Path
) -> None:
    options = ("--data", str(egolife_folder), "--name", "ego", "--sandbox", "bubblewrap")
    done = harness("run", "--iterations", "2", *options)
    assert done.returncode == 0, done.stdout + done.stderr
    asked = {split: {q.id for q in load(egolife_folder).questions(split)} for split in SIZES}
    seen: dict[str, int] = {}
    with RunStore.open(tmp_path / "runs" / "ego", write=False) as store:
        assert len(store.attempts()) == 2
        assert not any(name == "closing" for _, name in store.stages())
        for k, name in store.stages():
            if name in ("develop", "validate") or name.startswith("reference-"):
                measured = store.stage(k, name, Measured)
                assert measured is not None
                items, split = measured.evaluation.items, measured.evaluation.split
                assert len(items) == SIZES[split]
                assert {item.question for item in items} == asked[split]
                assert all(item.verdict == "OK" for item in items)
                seen[split] = seen.get(split, 0) + 1
    # the starting policy and three references on both splits, and what the two candidates came to
    assert seen["development"] >= 4 and seen["validation"] >= 4
    assert "the data has no test split; nothing was measured on one" in done.stdout
    for name in ("options_only", "longest_option", "bm25"):
        assert re.search(rf"{name} \(reference\)\W+\d+\.\d\W+\d+\.\d", done.stdout), done.stdout
    assert "not language-model results" in done.stdout
