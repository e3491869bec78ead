"""The curves as one SVG file: gain on the development split and transfer to validation, against what was spent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from harness.ablating.curves import Point

WIDTH, HEIGHT, MARGIN, LEGEND = 420, 300, 56, 150
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#8a6d00")
"""Told apart by colour-blind readers too (Okabe and Ito)."""

Value = Callable[[Point], float]


def svg(points: Sequence[Point], label: str) -> str:
    """Two panels, one line for each run, coloured by variant. ``label`` says by what model the figures are."""
    spends = any(point.search_tokens for point in points)
    across: Value = (lambda p: p.search_tokens) if spends else (lambda p: p.answer_tokens)
    name = "search tokens" if spends else "answer tokens (no model searches)"
    panels = (
        ("development gain, points", lambda p: 100 * p.dev_gain),
        ("transfer gain (validation), points", lambda p: 100 * p.transfer_gain),
    )
    variants = list(dict.fromkeys(point.variant for point in points))
    colours = {variant: COLOURS[i % len(COLOURS)] for i, variant in enumerate(variants)}
    width, height = 2 * WIDTH + LEGEND, HEIGHT + 30
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="white"/>'
    ]
    for i, (title, value) in enumerate(panels):
        parts += _panel(points, across, value, title, name, i * WIDTH, colours)
    for i, variant in enumerate(variants):
        y = MARGIN + 18 * i
        parts.append(f'<path d="M{2 * WIDTH + 5} {y}h22" stroke="{colours[variant]}" stroke-width="2.5"/>')
        parts.append(f'<text x="{2 * WIDTH + 33}" y="{y + 4}">{escape(variant)}</text>')
    parts.append(f'<text x="{MARGIN}" y="{HEIGHT + 18}" fill="#555">{escape(label)}</text></svg>\n')
    return "\n".join(parts)


def _panel(
    points: Sequence[Point], across: Value, value: Value, title: str, name: str, left: int, colours: dict[str, str]
) -> list[str]:
    """Axes with their ends told, and a step line for each run."""
    low, high = min(0.0, *(value(p) for p in points)), max(1.0, *(value(p) for p in points))
    most = max(1.0, *(across(p) for p in points))
    right, bottom = WIDTH - 20, HEIGHT - MARGIN

    def x(p: Point) -> float:
        return round(left + MARGIN + (right - MARGIN) * across(p) / most, 1)

    def y(v: float) -> float:
        return round(bottom - (bottom - 36) * (v - low) / (high - low), 1)

    axis = f"M{left + MARGIN} 36V{bottom}H{left + right}"
    parts = [
        f'<text x="{left + MARGIN}" y="22" font-size="13">{escape(title)}</text>',
        f'<path d="{axis}" fill="none" stroke="#333"/>',
        f'<path d="M{left + MARGIN} {y(0)}H{left + right}" stroke="#bbb" stroke-dasharray="3 3"/>',
        f'<text x="{left + right}" y="{bottom + 16}" text-anchor="end">{most:,.0f} {escape(name)}</text>',
    ]
    parts += [
        f'<text x="{left + MARGIN - 6}" y="{y(v) + 4}" text-anchor="end">{v:.1f}</text>'
        for v in sorted({low, 0.0, high})
    ]
    for key in dict.fromkeys((p.variant, p.seed) for p in points):
        mine = [p for p in points if (p.variant, p.seed) == key]
        path = f"M{x(mine[0])} {y(value(mine[0]))}" + "".join(f"H{x(p)}V{y(value(p))}" for p in mine[1:])
        parts.append(f'<path d="{path}" fill="none" stroke="{colours[key[0]]}" stroke-width="1.6" opacity="0.75"/>')
    return parts
