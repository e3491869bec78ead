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
    for table in (report.overview({"x": e}), report.types({"x": e}), report.routes({"x": e})):
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


def test_hostile_text_stays_text(evaluation: Make, item: MakeItem) -> None:
    evil = "[bold red]x[/]\x1b]52;c;ZWNobyBoaQ==\x07\u202etxt\x9b31m\nPASS"
    e = evaluation([item(0, True, route=evil, type="T[/]")])
    for table in (report.overview({evil: e}), report.types({evil: e}), report.routes({evil: e})):
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
