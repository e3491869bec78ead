"""The ablation of the harness: real searches with parts switched off, in processes of their own."""

from __future__ import annotations

import csv
import itertools
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from harness.ablating import plot, running
from harness.ablating.variants import VARIANTS
from harness.config import resolve
from harness.data.lifelog import make_lifelog
from harness.outcomes import Measured, Recalled
from harness.state.store import RunStore

ASKED = tuple(variant for variant in VARIANTS if variant.name in ("complete", "no-review", "meta-harness"))
ITERATIONS = 2
GATE_ONLY = {"static", "duplicates", "dynamic", "reviewer"}


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ablation")
    data = folder / "data"
    make_lifelog(data, seed=3, scale=0.2)
    base = resolve({"data": str(data), "sandbox": "bubblewrap"}, {}, None)
    told: list[str] = []
    running.search(base, ASKED, [4], ITERATIONS, folder / "out", 2, told.append)
    assert sorted(told) == ["complete-s4: done", "meta-harness-s4: done", "no-review-s4: done"]
    before = {path: path.stat().st_mtime_ns for path in (folder / "out").glob("*/audit.jsonl")}
    running.search(base, ASKED, [4], ITERATIONS, folder / "out", 2, told.append)
    assert before == {path: path.stat().st_mtime_ns for path in (folder / "out").glob("*/audit.jsonl")}, "done is done"
    return folder / "out"


def test_what_is_switched_off_is_off(out: Path) -> None:
    stages = {}
    for variant in ASKED:
        with RunStore.open(out / f"{variant.name}-s4", write=False) as store:
            stages[variant.name] = [(k, name) for k, name in store.stages() if k > 0]
            assert len(store.attempts()) == ITERATIONS * variant.candidates
            measured = [store.stage(k, "develop", Measured) for k, name in stages[variant.name] if name == "develop"]
            if variant.name != "complete":
                assert measured and not any(m.rejected for m in measured if m is not None)
    assert {name for _, name in stages["complete"]} >= GATE_ONLY
    assert not GATE_ONLY & {name for name in ("no-review", "meta-harness") for _, name in stages[name]}


def test_three_candidates_are_made_on_the_same_knowledge(out: Path) -> None:
    with RunStore.open(out / "meta-harness-s4", write=False) as store:
        recalled = [store.stage(k, "recall", Recalled) for k in range(1, 7)]
    known = [(r.parent, r.attempts) for r in recalled if r is not None]
    assert known[:3] == [known[0]] * 3 and known[0] == (0, ())
    assert known[3:] == [known[3]] * 3 and len(known[3][1]) == 3


def test_curves_count_what_was_spent(out: Path) -> None:
    found = running.found(out, ASKED, [4])
    assert [s.variant for s in found.summaries] == [v.name for v in ASKED]
    for variant in ASKED:
        mine = [p for p in found.points if p.variant == variant.name]
        assert [p.attempt for p in mine] == list(range(ITERATIONS * variant.candidates + 1))
        assert (mine[0].dev_gain, mine[0].validations, mine[0].search_tokens) == (0.0, 0, 0)
        pairs = list(itertools.pairwise(mine))
        assert all(a.answer_tokens <= b.answer_tokens and a.validations <= b.validations for a, b in pairs)
        with RunStore.open(out / f"{variant.name}-s4", write=False) as store:
            assert mine[-1].validations == sum(name == "validate" and k > 0 for k, name in store.stages())
    files = {path.name: path for path in plot.plot(found.points, out, plot.NAME)}
    assert {"curves.svg", "curves.csv"} <= set(files)
    rows = list(csv.DictReader(files["curves.csv"].open()))
    assert len(rows) == len(found.points) and rows[-1]["variant"] == "meta-harness"
    assert plot.read_points(out) == found.points
    drawn = ET.fromstring(files["curves.svg"].read_text())
    assert drawn.tag.endswith("svg") and "no language model was called" in "".join(drawn.itertext())
