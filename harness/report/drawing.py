"""Small SVG drawing: shapes with escaped text, and axes. Colours come from classes, so that a page decides them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from harness.report.safe import line

NAMESPACE = "http://www.w3.org/2000/svg"
NOTE = 34
"""Pixels over a picture in a file of its own, for what is to be said of its figures."""


def tag(name: str, body: Markup | str = "", **attributes: object) -> Markup:
    """An element. Names are ours; values and a plain ``str`` as body are escaped. ``_`` stands for ``-``."""
    words = Markup("").join(
        Markup(' {}="{}"').format(key.rstrip("_").replace("_", "-"), _value(value))
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(Markup(name), words, body)


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def joined(parts: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("").join(parts)


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "label", limit: int = 100) -> Markup:
    """Text at a point, cut at ``limit`` characters."""
    return tag("text", line(text, limit), x=x, y=y, text_anchor=anchor, class_=kind)


@dataclass(frozen=True, slots=True)
class Drawing:
    """A picture of ``width`` by ``height`` pixels, told to screen readers as ``title``."""

    width: float
    height: float
    title: str
    body: Markup

    def __html__(self) -> Markup:
        """As it stands in a page, which has the classes' colours."""
        return self._svg(self.height, self.body)

    def alone(self, style: str, notes: Sequence[str]) -> Markup:
        """As a file of its own: with its colours, on paper, under one or two lines of notes."""
        paper = tag("rect", width="100%", height="100%", class_="paper")
        parts = [tag("style", Markup(style)), paper, tag("g", self.body, transform=f"translate(0 {NOTE})")]
        return self._svg(
            self.height + NOTE,
            joined([*parts, *(label(8, 13 + 13 * n, note, kind="note") for n, note in enumerate(notes))]),
        )

    def _svg(self, height: float, body: Markup) -> Markup:
        box = f"0 0 {self.width:.0f} {height:.0f}"
        size = {"width": f"{self.width:.0f}", "height": f"{height:.0f}", "viewBox": box}
        return tag("svg", tag("title", self.title) + body, xmlns=NAMESPACE, role="img", **size)


@dataclass(frozen=True, slots=True)
class Axis:
    """Values from ``low`` to ``high`` on pixels from ``start`` to ``end``; logarithmic where asked for."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def at(self, value: float) -> float:
        """The pixel of a value; values outside go to the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self, wanted: int = 5) -> list[float]:
        """Round values inside; on a logarithmic axis 1, 2 and 5 of each power of ten."""
        if self.log:
            powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
            found = [m * 10.0**p for p in powers for m in (1, 2, 5) if self.low <= m * 10.0**p <= self.high]
            return found[:: math.ceil(len(found) / wanted)] if found else [self.low]
        rough = (self.high - self.low) / wanted
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(m * power for m in (1, 2, 5, 10) if m * power >= rough)
        first = math.ceil(self.low / step - 1e-9)
        return [step * n for n in range(first, math.floor(self.high / step + 1e-9) + 1)]


def spanning(values: Sequence[float], start: float, end: float, log: bool = False, pad: float = 0.06) -> Axis:
    """An axis over the values with some room at both ends; something sensible where there are none or one."""
    log = log and bool(values) and min(values) > 0
    low, high = (min(values), max(values)) if values else (0.0, 1.0)
    if log:
        low, high = (low / 1.5, high * 1.5) if high / low < 1.5 else (low / 1.1, high * 1.1)
        return Axis(low, high, start, end, True)
    room = (high - low) * pad or abs(high) * pad or 1.0
    return Axis(max(0.0, low - room) if low >= 0 else low - room, high + room, start, end)


def grid_x(axis: Axis, top: float, bottom: float, words: str = "{:g}", wanted: int = 5) -> Markup:
    """Lines and numbers of a horizontal axis. ``words`` is ours and formats numbers only."""
    return joined(
        joined(
            [
                tag("line", x1=axis.at(tick), x2=axis.at(tick), y1=top, y2=bottom, class_="grid"),
                label(axis.at(tick), bottom + 15, words.format(tick), "middle", "tick"),
            ]
        )
        for tick in axis.ticks(wanted)
    )


def grid_y(axis: Axis, left: float, right: float, words: str = "{:g}") -> Markup:
    """The same of a vertical axis."""
    return joined(
        joined(
            [
                tag("line", x1=left, x2=right, y1=axis.at(tick), y2=axis.at(tick), class_="grid"),
                label(left - 6, axis.at(tick) + 4, words.format(tick), "end", "tick"),
            ]
        )
        for tick in axis.ticks(8)
    )


def mark(kind: str, x: float, y: float, size: float = 4.5) -> Markup:
    """The sign of an outcome: a shape and a colour each, so that neither alone carries it."""
    shape = SHAPES.get(kind, "cross")
    name = f"mark {kind}"
    if shape == "circle":
        return tag("circle", cx=x, cy=y, r=size, class_=name)
    if shape == "ring":
        outer = tag("circle", cx=x, cy=y, r=size + 3, class_="halo")
        return outer + tag("circle", cx=x, cy=y, r=size, class_=name)
    points = CORNERS.get(shape)
    if points:
        path = "M" + "L".join(f"{x + size * dx:.1f} {y + size * dy:.1f}" for dx, dy in points) + "Z"
        return tag("path", d=path, class_=name)
    s = size * 0.8
    ends = (f"M{x - s:.1f} {y - s:.1f}L{x + s:.1f} {y + s:.1f}", f"M{x - s:.1f} {y + s:.1f}L{x + s:.1f} {y - s:.1f}")
    return tag("path", d="".join(ends), class_=f"{name} stroke")


SHAPES = {
    "frontier": "ring",
    "promoted": "circle",
    "validate": "diamond",
    "audit": "triangle",
    "develop": "circle",
    "gate": "cross",
    "running": "square",
    "reference": "triangle",
}
"""Shape by kind: ``gate`` is every stage before anything was measured."""
CORNERS: dict[str, list[tuple[float, float]]] = {
    "diamond": [(0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)],
    "triangle": [(0, -1.2), (1.15, 0.9), (-1.15, 0.9)],
    "square": [(-1, -1), (1, -1), (1, 1), (-1, 1)],
}
"""Of the shapes that have corners, in sizes from the centre."""
