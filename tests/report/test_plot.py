"""Pictures as files: well-formed, coloured, labelled, and the data beside them is the run's."""

from __future__ import annotations

import csv
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from harness.cli import cli
from harness.errors import UserError
from harness.report.drawing import Axis, spanning
from harness.report.plot import KINDS, can_png, plot
from harness.state.store import RunStore
from tests.report.conftest import QUESTIONS

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def files(hostile_run: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    out = tmp_path_factory.mktemp("plots")
    with RunStore.open(hostile_run, write=False) as store:
        return {path.name: path for kind in KINDS for path in plot(store, kind, out / "new")}


def test_pictures_stand_on_their_own(files: dict[str, Path]) -> None:
    pictures = {name: path for name, path in files.items() if path.suffix == ".svg"}
    assert set(pictures) == {
        "lineage.svg", "accuracy.svg", "frontier-tokens.svg", "frontier-seconds.svg", "cost-roles.svg",
        "cost-seconds.svg",
    }  # fmt: skip
    for path in pictures.values():
        text = path.read_text()
        root = ElementTree.fromstring(text)
        assert {e.tag.removeprefix(SVG) for e in root.iter()} <= set(
            ["svg", "title", "style", "rect", "g", "line", "path", "circle", "text"]
        )
        assert not {name for e in root.iter() for name in e.attrib if name.startswith("on") or "href" in name}
        assert "var(" not in text and "@media" not in text and "url(" not in text
        words = [e.text or "" for e in root.iter(f"{SVG}text")]
        assert any("offline profile: no language model was called" in word for word in words)
    kinds = [e.attrib["class"] for e in ElementTree.parse(files["lineage.svg"]).iter() if "mark" in e.get("class", "")]
    assert kinds.count("mark frontier") == 2 + 1 and kinds.count("mark gate stroke") == 2 + 1  # with the legend


def test_data_beside_them(files: dict[str, Path]) -> None:
    rows = list(csv.DictReader(files["lineage.csv"].open()))
    assert [row["iteration"] for row in rows] == list("012345")
    assert float(rows[1]["dev_accuracy"]) == 10 / QUESTIONS and rows[3]["dev_accuracy"] == ""
    assert [row["on_frontier"] for row in rows] == ["True", "True", *["False"] * 4]
    assert {row["offline"] for row in rows} == {"True"}
    costs = list(csv.DictReader(files["cost-roles.csv"].open()))
    assert [(row["role"], row["calls"], row["lost"], row["dollars"]) for row in costs] == [
        ("answer", "1", "1", "0.5"), ("researcher", "1", "0", "0.25"),
    ]  # fmt: skip


def test_png(files: dict[str, Path]) -> None:
    assert can_png(), "the extra plot is missing, so no PNG was made: pip install -e '.[dev]'"
    found = files["lineage.png"].read_bytes()
    assert found.startswith(b"\x89PNG") and int.from_bytes(found[16:20], "big") >= 3 * 440


HEAD = (
    "variant,profile,seed,attempt,search_tokens,answer_tokens,validations,repeats,promotions,dev_gain,transfer_gain\n"
)
START, LATER = "0,0,0,100,0,0,0,0.0,0.0\n", "0,1,500,200,1,0,1,0.25,-0.1\n"


def test_an_ablation_is_drawn_from_its_table(tmp_path: Path) -> None:
    hostile = "<b>\x1b[31m\u202e"
    rows = [f"{name},offline,{line}" for name in ("complete", hostile) for line in (START, LATER)]
    (tmp_path / "ablation").mkdir()
    (tmp_path / "ablation" / "curves.csv").write_text(HEAD + "".join(rows))
    out = tmp_path / "pictures"
    done = CliRunner().invoke(cli, ["plot", "ablation", str(tmp_path / "ablation"), "--out", str(out)])
    assert done.exit_code == 0, done.output
    assert {path.name for path in out.iterdir()} == {"ablation.svg", "ablation.csv"} | (
        {"ablation.png"} if can_png() else set()
    )
    words = "".join(ElementTree.fromstring((out / "ablation.svg").read_text()).itertext())
    assert "offline profile: no language model was called" in words and "complete" in words
    assert "<b>" in words and "\x1b" not in words and "\u202e" not in words
    again = CliRunner().invoke(cli, ["plot", "ablation", str(out / "ablation.csv"), "--out", str(tmp_path / "again")])
    assert again.exit_code == 0
    assert (tmp_path / "again" / "ablation.csv").read_bytes() == (out / "ablation.csv").read_bytes()


@pytest.mark.parametrize(
    "text, where",
    [
        (HEAD, "0 variants"),
        (HEAD + f"complete,offline,{START}complete,offline,0,1,x,0,0,0,0,0,0\n", "curves.csv:3: search_tokens"),
        (HEAD + f"complete,offline,{START.replace('0.0', 'nan')}", "curves.csv:2: dev_gain"),
        (HEAD + f"complete,offline,9,{START}", "curves.csv:2: None"),
        (HEAD + "complete\n", "curves.csv:2: profile"),
        (HEAD + "".join(f"v{n},offline,{START}" for n in range(9)), "9 variants"),
        ("\x00\n'\"", "curves.csv"),
    ],
)
def test_a_table_that_cannot_be_drawn_is_told_by_line(text: str, where: str, tmp_path: Path) -> None:
    (tmp_path / "curves.csv").write_text(text)
    done = CliRunner().invoke(cli, ["plot", "ablation", str(tmp_path), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, UserError) and where in str(done.exception), done.exception
    assert not (tmp_path / "out").exists()


def test_a_run_and_an_ablation_are_not_mixed_up(hostile_run: Path, tmp_path: Path) -> None:
    for wrong in (["ablation", "--run", str(hostile_run)], ["cost", str(tmp_path)], ["ablation", str(tmp_path)]):
        done = CliRunner().invoke(cli, ["plot", *wrong, "--out", str(tmp_path / "out")])
        assert isinstance(done.exception, UserError), done.output


@pytest.mark.parametrize("values", [[], [0.4], [5.0, 5.0], [0.0, 0.0], [0.001, 4_000.0], [-3.0, 9.0]])
@pytest.mark.parametrize("log", [False, True])
def test_axes_hold_their_values(values: list[float], log: bool) -> None:
    axis = spanning(values, 50.0, 400.0, log)
    assert all(50.0 <= axis.at(value) <= 400.0 for value in [*values, -1e9, 1e9])
    assert axis.ticks() and all(axis.low - 1e-9 <= tick <= axis.high + 1e-9 for tick in axis.ticks())


def test_ticks_are_round() -> None:
    assert Axis(0, 50, 0, 1).ticks(10) == list(range(0, 51, 5))
    assert Axis(1, 1_000, 0, 1, log=True).ticks(5) == [1, 5, 20, 100, 500]
