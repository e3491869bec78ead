"""Tables and JSON: figures stand where they belong, offline numbers say so, hostile text stays text."""

import io
import json
from collections.abc import Callable

from rich.console import Console, RenderableType

from harness.evaluation import report
from harness.evaluation.outcomes import Cost, Evaluation, Item

Make = Callable[..., Evaluation]
MakeItem = Callable[..., Item]


def shown(renderable: RenderableType) -> str:
    stream = io.StringIO()
    Console(file=stream, width=200, force_terminal=True, color_system="truecolor").print(renderable)
    return stream.getvalue()


def test_side_by_side(evaluation: Make) -> None:
    both = {"v00": evaluation("1100"), "v01": evaluation("1110", reader="some model", split="validation")}
    text = shown(report.overview(both))
    v00 = next(line for line in text.splitlines() if "v00" in line)
    v01 = next(line for line in text.splitlines() if "v01" in line)
    assert "50.0 offline" in v00 and "15.0–85.0" in v00 and "development" in v00
    assert "75.0" in v01 and "offline" not in v01 and "30.1–95.4" in v01 and "validation" in v01
    assert report.OFFLINE_NOTE in text


def test_no_offline_note_where_nothing_is_offline(evaluation: Make, item: MakeItem) -> None:
    modelled = {"v01": evaluation("1110", reader="some model")}
    for table in (report.overview(modelled), report.types(modelled), report.routes(modelled)):
        assert "offline" not in shown(table)
    estimated = evaluation([item(0, True, answering=Cost(prompt_tokens=9, estimated=True))], reader="some model")
    assert report.ESTIMATED_NOTE in shown(report.overview({"v01": estimated}))


def test_every_place_says_offline(evaluation: Make) -> None:
    e = evaluation("1100")
    for table in [
        make({"x": e}) for make in (report.overview, report.types, report.routes, report.parts, report.construction)
    ]:
        text = " ".join(shown(table).split())  # a narrow table wraps its caption
        assert report.OFFLINE_NOTE in text and text.count("offline") >= 2
    assert report.figures(e)["offline"] is True
    assert "offline" in report.headline(e)


def test_types_and_routes(evaluation: Make, item: MakeItem) -> None:
    one = evaluation([item(0, True, type="TaskMaster"), item(1, False)])
    other = evaluation([item(0, False, type="HabitInsight", route="frequency", seconds=1.5)])
    text = shown(report.types({"one": one, "other": other}))
    assert "EventRecall" in text and "HabitInsight" in text and "TaskMaster" in text
    assert "100.0" in text and "–" in text
    line = next(line for line in shown(report.routes({"other": other})).splitlines() if "frequency" in line)
    assert "1.500" in line


def test_tokens_in_and_out_and_types_with_interval(evaluation: Make, item: MakeItem) -> None:
    costs = {
        "retrieval": Cost(requests=1, prompt_tokens=40, completion_tokens=8),
        "answering": Cost(requests=1, prompt_tokens=1_000, completion_tokens=2),
        "verification": Cost(requests=1, prompt_tokens=500, frames=3),
    }
    e = evaluation([item(0, True, **costs), item(1, True), item(2, False), item(3, False)], reader="m")
    line = next(line for line in shown(report.overview({"x": e})).splitlines() if "x " in line)
    # (1,540 + 3 x 100) / 4 in, 10 / 4 out; 3 + 3 requests and 3 frames over 4 questions
    for figure in ("460", "2.5", "1.50", "0.75", "15.0–85.0"):
        assert f" {figure} " in line, (figure, line)
    assert "50.0 (15–85)" in shown(report.types({"x": e})) and "EventRecall (4)" in shown(report.types({"x": e}))
    figures = report.figures(e)
    assert figures["by_type"]["EventRecall"]["n"] == 4 and figures["by_type"]["EventRecall"]["share"] == 0.5
    assert (figures["tokens_in_per_question"], figures["tokens_out_per_question"]) == (460, 2.5)


def test_parts_of_the_seconds_and_construction_apart(evaluation: Make, item: MakeItem) -> None:
    times = {"policy_seconds": 0.25, "frame_seconds": 0.5, "embed_seconds": 0.125, "model_seconds": 2.0}
    built = Cost(requests=17, prompt_tokens=12_345, completion_tokens=678, seconds=9.0)
    e = evaluation([item(0, True, **times)], reader="m", construction=built, observe_seconds=3.0)
    line = next(line for line in shown(report.parts({"x": e})).splitlines() if "x " in line)
    for figure in ("0.250 / 0.250", "0.500 / 0.500", "0.125 / 0.125", "2.000 / 2.000"):
        assert f" {figure} " in line, (figure, line)
    line = next(line for line in shown(report.construction({"x": e})).splitlines() if "x " in line)
    for figure in ("17", "12,345", "678", "9.0", "3.0", "13,023"):
        assert f" {figure} " in line, (figure, line)
    assert report.figures(e)["tokens_per_question"] == 100


def test_direct_gate_and_verified_shares(evaluation: Make, item: MakeItem) -> None:
    items = [
        item(0, True, answering=Cost(), route="frequency", gate=True, verification=Cost(requests=1)),
        item(1, True, gate=True, verification=Cost(requests=1)),
        item(2, False, gate=False),
        item(3, False, answering=Cost(), choice=None),  # it abstained: that is no direct answer
    ]
    figures = report.figures(evaluation(items))
    assert figures["direct"]["count"] == 1 and figures["direct"]["n"] == 4
    assert figures["gate_open"]["count"] == 2 and figures["verified"]["count"] == 2
    assert report.figures(evaluation("10"))["gate_open"] is None


def test_hostile_text_stays_text(evaluation: Make, item: MakeItem) -> None:
    evil = "[bold red]x[/]\x1b]52;c;ZWNobyBoaQ==\x07\u202etxt\x9b31m\nPASS"
    e = evaluation([item(0, True, route=evil, type="T[/]")])
    for table in [
        make({evil: e}) for make in (report.overview, report.types, report.routes, report.parts, report.construction)
    ]:
        text = shown(table)
        assert "[bold red]" in text
        assert not {"\x07", "\u202e", "\x9b"} & set(text) and "\x1b]52" not in text
        assert not any(line.startswith("PASS") for line in text.splitlines())
    name = next(iter(report.figures(e)["by_route"]))
    assert name.isprintable()


def test_figures_are_json_and_hold_no_question(evaluation: Make, item: MakeItem) -> None:
    e = evaluation([item(0, True, hit=True, question="secret-id", video="secret-video", detail="secret detail")])
    text = json.dumps(report.figures(e), allow_nan=False)
    assert "secret" not in text
    assert json.loads(text)["accuracy"] == 1.0 and json.loads(text)["hit_rate"] == 1.0
    assert json.loads(text)["cost_by_part"]["answering"]["prompt_tokens"] == 100


def test_p_values_are_never_shown_as_nothing() -> None:
    assert [report.p_value(p) for p in (1.0, 0.0625, 0.0005, 0.0004, 1e-12)] == [
        "1.000", "0.062", "0.001", "<0.001", "<0.001",
    ]  # fmt: skip
