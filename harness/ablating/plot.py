"""The curves as a picture: gain on the development split and transfer to validation, against what was spent."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from markupsafe import Markup

from harness.ablating.curves import Point
from harness.report.drawing import Drawing, grid_x, grid_y, joined, label, spanning, tag
from harness.report.plot import style

WIDTH, TOP, BOTTOM, LEFT = 420.0, 36.0, 250.0, 56.0
LEGEND = 150.0
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00")
"""Told apart by colour-blind readers too (Okabe and Ito)."""

Value = Callable[[Point], float]


def svg(points: Sequence[Point], told: str) -> str:
    """Two panels, one line for each run, coloured by variant. ``told`` says by what model the figures are."""
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
    drawing = Drawing(2 * WIDTH + LEGEND, BOTTOM + 44, "Gains of the variants against what they spent", joined(parts))
    return f"{drawing.alone(style(), [told])}\n"


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
