"""The ablation: variants are the released code with other settings, and what each loses is counted pair by pair."""

import io
import json
from collections.abc import Callable

import pytest
from rich.console import Console

from harness.evaluation import ablation
from harness.evaluation.metrics import NotComparable
from harness.evaluation.outcomes import Cost, Evaluation, Item
from sandbox.interface import Bundle

Make = Callable[..., Evaluation]
MakeItem = Callable[..., Item]


def settings_of(bundle: Bundle) -> dict[str, object]:
    found: dict[str, object] = json.loads(dict(bundle.files)["settings.json"])
    return found


def test_each_variant_differs_by_one_setting() -> None:
    bundles = ablation.bundles()
    whole = bundles["v49"]
    assert settings_of(whole) == {
        "structured_memory": True,
        "co_occurrence_bonus": True,
        "specialists": True,
        "gate": "rule",
    }
    for label, changed in ablation.SETTINGS.items():
        code = {name: content for name, content in bundles[label].files if name != "settings.json"}
        assert code == {name: content for name, content in whole.files if name != "settings.json"}
        assert settings_of(bundles[label]) == settings_of(whole) | changed and len(changed) == 1
    off = {key for changed in ablation.SETTINGS.values() for key, value in changed.items() if value is False}
    assert off == {"structured_memory", "co_occurrence_bonus", "specialists"}
    assert {changed["gate"] for changed in ablation.SETTINGS.values() if "gate" in changed} == {
        "never",
        "llm-judge",
        "always",
    }
    assert list(bundles)[-4:] == ["v09", "v15", "v30", "v44"]


def test_drops_are_paired(evaluation: Make) -> None:
    found = {
        "v49": evaluation("1111111100"),
        "without specialists": evaluation("1111100001"),  # three lost, one won
        "gate: always": evaluation("1111111111"),
        "v09": evaluation("1100000000"),
        "v15": evaluation("0000000000"),
        "v44": evaluation("0000000000"),  # its parent was not measured
    }
    drops = {drop.variant: drop for drop in ablation.drops(found)}
    assert list(drops) == ["without specialists", "gate: always", "v15"]
    lost = drops["without specialists"]
    assert lost.points == pytest.approx(20) and lost.reported == 2.4 and lost.p == pytest.approx(0.625)
    assert (lost.pairs.candidate_only, lost.pairs.other_only) == (3, 1)
    assert lost.interval.low < 0.2 < lost.interval.high
    assert drops["gate: always"].points == pytest.approx(-20) and drops["gate: always"].reported is None
    assert drops["v15"].reference == "v09" and drops["v15"].points == pytest.approx(20)


def test_the_tables_say_what_was_measured(evaluation: Make, item: MakeItem) -> None:
    seen = {"verification": Cost(requests=1, prompt_tokens=50, frames=4), "gate": True}
    found = {
        "v49": evaluation([item(0, True, gate=True), item(1, True, gate=False)]),
        "gate: always": evaluation([item(0, True, **seen), item(1, False, **seen)]),
        "without specialists": evaluation("10"),
    }
    stream = io.StringIO()
    out = Console(file=stream, width=200)
    out.print(ablation.components(found))
    out.print(ablation.gates(found))
    text = stream.getvalue()
    assert "measured here: lexical reader, no language model" in text
    line = next(line for line in text.splitlines() if line.startswith(" without specialists"))
    assert "+50.0" in line and "0/1" in line and "+2.4" in line
    rule, always = (
        next(row for row in text.splitlines() if row.startswith(f" {name} ")) for name in ("rule", "always")
    )
    assert "112" in rule and " 1 " in rule and " 0 " in rule
    assert " 2 " in always and " 8 " in always and " 4 " in always
    assert ablation.as_json(found)[0]["reported_points"] == 2.4


def test_what_has_to_be_said(evaluation: Make, item: MakeItem) -> None:
    blind = {"v49": evaluation("11"), "gate: LLM judge": evaluation("11")}
    assert ["judge" in note or "frame" in note for note in ablation.notes(blind)] == [True, True]
    seen = evaluation([item(0, True, verification=Cost(requests=1)), item(1, True)], reader="m")
    assert ablation.notes({"v49": seen, "gate: LLM judge": evaluation("11", reader="m")}) == []


def test_different_questions_are_not_compared(evaluation: Make) -> None:
    with pytest.raises(NotComparable):
        list(ablation.drops({"v49": evaluation("11"), "without specialists": evaluation("111")}))
