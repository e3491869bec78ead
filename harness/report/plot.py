"""Pictures of a run as files, with the data that they show beside them: SVG and CSV, and PNG where resvg is there."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from harness import history
from harness.errors import UserError
from harness.report import charts
from harness.report.drawing import Drawing
from harness.report.page import ASSETS
from harness.report.spend import seconds_by_stage, spent
from harness.report.story import Figures, Reader, Row, Story
from harness.state.folder import write_whole
from harness.state.store import RunStore

KINDS = ("lineage", "frontier", "cost")
PNG_SCALE = 3.0
"""Pixels of a PNG for one of the SVG: some 300 to the inch in a column of a paper."""
VARIABLE = re.compile(r"(--[a-z]+): ([^;]+);")
FIGURES = ("accuracy", "low", "high", "questions", "tokens_per_question", "median_seconds")
COLUMNS = ("iteration", "parent", "title", "outcome", "on_frontier", "dev_delta", "validation_p")
Table = list[Sequence[object]]
"""Rows, the first of them the names of the columns."""


def plot(store: RunStore, kind: str, out: Path) -> list[Path]:
    """Write the pictures of ``kind`` and their data into ``out``, which is made. Returns the files.

    Raises UserError: the run cannot be read, there is nothing to show, the folder cannot be written.
    """
    story = Reader().story(store)
    drawings: dict[str, Drawing | None] = {}
    tables: dict[str, Table] = {}
    if kind == "lineage":
        drawings = {"lineage": charts.lineage(story, False), "accuracy": charts.by_iteration(story, False)}
        tables = {"lineage": _attempts(story.rows, story.offline)}
    elif kind == "frontier":
        drawings = {
            "frontier-tokens": charts.against_tokens(story, False),
            "frontier-seconds": charts.against_seconds(story, False),
        }
        tables = {"frontier": [*_attempts(story.rows, story.offline), *_references(story)]}
    else:
        calls, seconds = spent(store), seconds_by_stage(store)
        drawings = {"cost-roles": charts.spend(calls), "cost-seconds": charts.seconds(seconds)}
        heads = ("role", "stage", "calls", "lost", "prompt_tokens", "completion_tokens", "dollars", "estimated")
        tables = {
            "cost-roles": [heads, *([getattr(s, name) for name in heads] for s in calls)],
            "cost-seconds": [("stage", "seconds", "times"), *seconds],
        }
    return write(out, drawings, tables, _notes(story))


def _notes(story: Story) -> list[str]:
    return [f"run {story.name[:60]}", *([history.OFFLINE] if story.offline else [])]


def write(
    out: Path, drawings: Mapping[str, Drawing | None], tables: Mapping[str, Table], notes: Sequence[str]
) -> list[Path]:
    """Write pictures and their data, by file name without ending, into ``out``, which is made. Returns the files.

    ``notes``: one or two lines that stand over each picture. Raises UserError where the folder cannot be written.
    """
    try:
        out.mkdir(parents=True, exist_ok=True)
        return list(_written(out, drawings, tables, notes))
    except OSError as error:
        raise UserError(f"{out} cannot be written ({error.strerror}); name another folder with --out") from None


def _written(
    out: Path, drawings: Mapping[str, Drawing | None], tables: Mapping[str, Table], notes: Sequence[str]
) -> Iterable[Path]:
    for name, drawing in drawings.items():
        if drawing is None:
            continue
        svg = str(drawing.alone(style(), notes))
        path = out / f"{name}.svg"
        write_whole(path, svg + "\n")
        yield path
        if can_png():
            path = out / f"{name}.png"
            write_whole(path, _png(svg))
            yield path
    for name, rows in tables.items():
        text = StringIO()
        csv.writer(text, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
        path = out / f"{name}.csv"
        write_whole(path, text.getvalue())
        yield path


def can_png() -> bool:
    """Whether PNG files can be made here (the extra ``plot``)."""
    return find_spec("resvg_py") is not None


def _png(svg: str) -> bytes:
    import resvg_py

    return bytes(resvg_py.svg_to_bytes(svg_string=svg, zoom=PNG_SCALE, sans_serif_family="DejaVu Sans"))


def style() -> str:
    """The light colours written out: programs that set papers know no variables of style sheets."""
    text = (ASSETS / "chart.css").read_text("utf-8")
    rules = [line for line in text.splitlines() if not line.startswith("@media")]
    colours = dict(VARIABLE.findall(rules[0]))
    rules[0] = VARIABLE.sub("", rules[0])
    return re.sub(r"var\((--[a-z]+)\)", lambda found: str(colours[found[1]]), "\n".join(rules))


# ---------------------------------------------------------------- data


def _attempts(rows: Iterable[Row], offline: bool) -> Table:
    """One line an attempt; shares from 0 to 1. The last column says whether a language model answered."""
    heads = [*COLUMNS, *(f"dev_{name}" for name in FIGURES), *(f"validation_{name}" for name in FIGURES), "offline"]
    lines: Table = [heads]
    for r in rows:
        facts = [r.iteration, r.parent, r.title, r.outcome, r.on_frontier, r.delta, r.p_value]
        lines.append([*facts, *_figures(r.developed), *_figures(r.validated), offline])
    return lines


def _references(story: Story) -> Table:
    return [
        [None, None, name, "reference", False, None, None, *_figures(developed), *_figures(validated), story.offline]
        for name, (developed, validated) in story.references.items()
    ]


def _figures(found: Figures | None) -> list[object]:
    if found is None:
        return [None] * len(FIGURES)
    bounds = found.right.interval
    return [found.right.share, bounds.low, bounds.high, found.right.n, found.tokens, found.seconds]


def _cell(value: object) -> object:
    """A text that a spreadsheet would take for a formula is marked as text."""
    return f"'{value}" if isinstance(value, str) and value[:1] in tuple("=+-@") else value
