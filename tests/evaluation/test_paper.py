"""The published figures are the published ones, and stand beside measured ones without being mixed up."""

import io
import json
import os
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from harness.data.native import Dataset
from harness.evaluation import ablation, paper
from harness.evaluation.outcomes import Cost, Evaluation, Item
from policies import library

MakeItem = Callable[..., Item]
Make = Callable[..., Evaluation]
SHARED = Path(os.environ.get("LVMH_SHARED") or Path(__file__).resolve().parents[3] / "shared")


def shown(*tables: Any) -> str:
    stream = io.StringIO()
    for table in tables:
        Console(file=stream, width=200).print(table)
    return stream.getvalue()


def leaves(value: Any, place: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    if not isinstance(value, dict):
        return {place: value}
    return {key: leaf for name, part in value.items() for key, leaf in leaves(part, (*place, name)).items()}


@pytest.mark.egolife
def test_the_shipped_figures_are_the_published_ones() -> None:
    source = SHARED / "data" / "paper_figures.json"
    if not source.is_file():
        missing = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        missing(f"no figures at {source}; LVMH_SHARED names the folder that holds data/paper_figures.json")
    given = leaves(json.loads(source.read_text()))
    shipped = {place: value for place, value in leaves(dict(paper.published())).items() if place[0] != "sources"}
    assert len(shipped) > 100
    assert shipped == {place: given[place] for place in shipped}


def test_some_published_figures_by_hand() -> None:
    egolife = paper.published()["merit"]["egolifeqa"]
    assert len(egolife) == 16 and egolife["MERIT (GPT-5)"]["Avg"] == 71.2
    assert sum(paper.published()["merit"]["egolifeqa_type_counts"].values()) == 500
    drops = [paper.reported_drop(name) for name in ablation.REPORTED.values()]
    assert drops == [4.8, 3.0, 2.8, 2.4]
    assert paper.reported_drop("anything else") is None


def test_targets_of_seem(evaluation: Make, item: MakeItem) -> None:
    read = {"answering": Cost(requests=1, prompt_tokens=3_000), "seconds": 2.0, "model_seconds": 1.0}
    items = [item(n, n < 5, **read, gate=n == 3) for n in range(9)]
    items.append(item(9, True, answering=Cost(), route="frequency", gate=False))
    found = {target.name: target for target in paper.targets(evaluation(items, reader="m"), "EgoLifeQA")}
    assert found["requests per question"].reported == "0.94" and found["requests per question"].here == "0.90"
    # 7,153 tokens and 6.65 s of direct answering, over 2.1 and 3.0
    assert found["tokens per question"].reported == "3,406 (derived)" and found["tokens per question"].here == "2,700"
    assert found["seconds per question, mean"].reported == "2.22 (derived)"
    assert found["direct answers %"].here == "10.0" and "6–11" in found["direct answers %"].reported
    assert found["model call, share of seconds %"].here == "50.0"
    assert found["gate opened"].here == "1 of 10, 0 with frames" and "112" in found["gate opened"].reported
    assert all("Qwen3-VL-8B" in t.source or "benchmarks" in t.source for t in found.values())


def test_lineage_table(evaluation: Make, dataset: Dataset) -> None:
    found = {name: evaluation(marks) for name, marks in (("v00", "1100000000"), ("v01", "1111111000"))}
    text = shown(*paper.lineage_tables(found, [dataset]))
    line = next(line for line in text.splitlines() if line.startswith(" v01 ") and "(v00)" in line)
    assert "+50.0 (v00)" in line and "0.062" in line and "70.0" in line  # 5 won, none lost: 2 / 2^5
    assert "measured here: lexical reader, no language model" in text
    assert "reduces context size" in text and "v49" not in text
    assert "MERIT" not in text  # no figure of this data set was ever published
    facts = paper.as_json(found, [dataset])
    assert facts["lineage"]["v01"]["against_parent"] == 0.5 and facts["targets"] == []


def test_published_rows_stand_apart_from_measured_ones(evaluation: Make, dataset: Dataset) -> None:
    assert paper.benchmark([dataset, dataset]) == ""
    manifest = dataset.manifest.model_copy(update={"origin": {"importer": "egolife"}})
    assert paper.benchmark([dataset]) == "" and paper.benchmark([replace(dataset, manifest=manifest)]) == "EgoLifeQA"
    found = {"v49": evaluation("1100"), "merit": evaluation("1000", reader="some model")}
    lines = shown(*paper.lineage_tables(found, [replace(dataset, manifest=manifest)])).splitlines()
    published = [line for line in lines if re.search(r"reported +\d", line)]
    measured = [line for line in lines if re.search(r"measured here +\S+ +\S+ +\S+ +\S+ +\S+ +\d", line)]
    assert len(published) == 16 and len(measured) == 2
    assert sum("lexical reader, no language model" in line for line in measured) == 1
    assert sum("some model" in line for line in measured) == 1
    assert any("MERIT" in line and "GPT-5" in line and "71.2" in line for line in published)


def test_other_benchmarks(evaluation: Make, dataset: Dataset) -> None:
    def named(**origin: str) -> Dataset:
        return replace(dataset, manifest=dataset.manifest.model_copy(update={"origin": origin}))

    found = {"v49": evaluation("1100")}
    long = named(importer="videomme", length="long")
    assert paper.benchmark([named(importer="videomme", length="all")]) == ""
    assert paper.benchmark([named(importer="ego-r1")]) == "Ego-R1 Bench"
    text = shown(*paper.lineage_tables(found, [long]))
    assert len(re.findall(r"reported +\d", text)) == 13 and "77.7" in text and "EntityLog" not in text
    targets = {target.name: target.reported for target in paper.targets(found["v49"], paper.benchmark([long]))}
    assert targets["requests per question"] == "1.25" and targets["direct answers %"] == "0 (derived)"
    assert targets["tokens per question"] == "5,621 (derived)" and targets["seconds per question, p95"] == "20.4"
    lvbench = shown(*paper.lineage_tables(found, [named(importer="lvbench")]))
    assert len(re.findall(r"reported +\d", lvbench)) == 11 and "71.8" in lvbench


def test_every_policy_has_its_row_in_the_lineage() -> None:
    rows = library.lineage()
    assert rows.keys() == set(library.names())
    assert all(row.parent in rows for row in rows.values() if row.parent)
    assert paper.FINAL in rows and set(ablation.REGRESSIONS) <= rows.keys()
