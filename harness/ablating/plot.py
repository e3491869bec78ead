"""The curves as a picture: gain on the development split and transfer to validation, against what was spent.

Drawn from the points in memory, or from the table of an earlier ``harness ablate harness``.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from markupsafe import Markup
from pydantic import ValidationError

from harness.ablating.curves import Point
from harness.data.native import first_problem
from harness.errors import UserError
from harness.history import OFFLINE
from harness.report.drawing import Drawing, grid_x, grid_y, joined, label, spanning, tag
from harness.report.plot import Table, write

NAME = "curves"
"""Of the table and the picture in an ablation's folder."""
MOST_BYTES = 16_000_000
"""Of a table that is read: some 200,000 attempts."""
WIDTH, TOP, BOTTOM, LEFT = 420.0, 36.0, 250.0, 56.0
LEGEND = 150.0
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00")
"""Told apart by colour-blind readers too (Okabe and Ito)."""

Value = Callable[[Point], float]


def plot(points: Sequence[Point], out: Path, name: str) -> list[Path]:
    """Write the picture and its table into ``out``, which is made. Returns the files. Raises UserError."""
    fields = list(Point.model_fields)
    rows: Table = [fields, *([getattr(point, field) for field in fields] for point in points)]
    return write(out, {name: drawing(points)}, {name: rows}, [measured_by(points)])


def measured_by(points: Sequence[Point]) -> str:
    """Which models the figures are of, in words."""
    profiles = sorted({point.profile for point in points})
    if profiles == ["offline"]:
        return OFFLINE
    return "profile " + ", ".join(profile or "not recorded" for profile in profiles)


def read_points(source: Path) -> tuple[Point, ...]:
    """The points of a table, or of the one in an ablation's folder. Raises UserError: file, line, what is wrong."""
    path = source / f"{NAME}.csv" if source.is_dir() else source
    again = "write it anew with: harness ablate harness"
    if not path.is_file():
        raise UserError(f"{path} is not there; name an ablation's folder or its {NAME}.csv, or {again}")
    try:
        if path.stat().st_size > MOST_BYTES:
            raise UserError(f"{path} is larger than {MOST_BYTES // 1_000_000} MB: it is no ablation's table; {again}")
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read ({error}); {again}") from None
    points: list[Point] = []
    lines = csv.DictReader(text.splitlines(), strict=True)
    try:
        for row in lines:
            points.append(Point.model_validate({str(name): value for name, value in row.items()}))
    except ValidationError as error:
        raise UserError(f"{path}:{lines.line_num}: {first_problem(error)}; {again}") from None
    except csv.Error as error:
        raise UserError(f"{path}:{lines.line_num}: {error}; {again}") from None
    variants = {point.variant for point in points}
    if not 1 <= len(variants) <= len(COLOURS):
        raise UserError(f"{path} holds {len(variants)} variants, from 1 to {len(COLOURS)} can be told apart; {again}")
    return tuple(points)


def drawing(points: Sequence[Point]) -> Drawing:
    """Two panels, one line for each run, coloured by variant."""
    spends = any(point.search_tokens for point in points)
    across: Value = (lambda p: float(p.search_tokens)) if spends else (lambda p: float(p.answer_tokens))
    name = "search tokens" if spends else "answer tokens (no model searches)"
    variants = list(dict.fromkeys(point.variant for point in points))
    colours = dict(zip(variants, COLOURS, strict=False))
    panels = [
        _panel(points, across, lambda p: 100 * p.dev_gain, "development gain, points", name, colours),
        _panel(points, across, lambda p: 100 * p.transfer_gain, "transfer gain (validation), points", name, colours),
    ]
    parts = [tag("g", panel, transform=f"translate({n * WIDTH:.0f} 0)") for n, panel in enumerate(panels)]
    for n, variant in enumerate(variants):
        x, y = 2 * WIDTH + 5, TOP + 18 * n
        parts += [_line(f"M{x:.0f} {y:.0f}h22", colours[variant]), label(x + 28, y + 4, variant)]
    return Drawing(2 * WIDTH + LEGEND, BOTTOM + 44, "Gains of the variants against what they spent", joined(parts))


def _panel(
    points: Sequence[Point], across: Value, value: Value, title: str, name: str, colours: Mapping[str, str]
) -> Markup:
    """A step line for each run."""
    x = spanning([0.0, *map(across, points)], LEFT, WIDTH - 20)
    y = spanning([0.0, *map(value, points)], BOTTOM, TOP)
    parts = [grid_y(y, LEFT, WIDTH - 20), grid_x(x, TOP, BOTTOM, "{:,.0f}", 3), label(LEFT, 22, title, kind="strong")]
    parts.append(label(WIDTH - 20, BOTTOM + 32, name, "end", "tick"))
    for key in dict.fromkeys((p.variant, p.seed) for p in points):
        mine = [(x.at(across(p)), y.at(value(p))) for p in points if (p.variant, p.seed) == key]
        steps = "".join(f"H{a:.1f}V{b:.1f}" for a, b in mine[1:])
        parts.append(_line(f"M{mine[0][0]:.1f} {mine[0][1]:.1f}{steps}", colours[key[0]]))
    return joined(parts)


def _line(path: str, colour: str) -> Markup:
    return tag("path", d=path, fill="none", stroke=colour, stroke_width=1.8, opacity=0.8)
