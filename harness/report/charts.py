"""The pictures of a run: lineage, accuracy by iteration, accuracy against tokens and seconds, spend."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from markupsafe import Markup

from harness.report.drawing import Axis, Drawing, grid_x, grid_y, joined, label, mark, spanning, tag
from harness.report.spend import Spent
from harness.report.story import RUNNING, START, Figures, Row, Story

ROOM = 1_150.0
"""Pixels that the wide charts fill where few iterations let them; with many they scroll sideways."""
STEPS = (9.0, 24.0)
"""Least and most pixels for one iteration."""
LANE = 40
LEFT = 46
LEGEND = 310.0
"""Pixels: a phone shows it whole."""
NAMES = {
    "frontier": "on the frontier",
    "promoted": "promoted",
    "validate": "rejected at validate",
    "audit": "rejected at audit",
    "develop": "rejected at develop",
    "gate": "rejected before it was measured",
    "running": "running",
    "reference": "reference policy",
}
MEASURED = ("develop", "audit", "validate")
LATE_TITLE = 34
"""Characters of a title that have room beside a lane."""


def kind(row: Row) -> str:
    """The sign that stands for an attempt."""
    if row.on_frontier:
        return "frontier"
    if row.kept:
        return "promoted"
    if row.outcome == RUNNING:
        return "running"
    return row.outcome if row.outcome in MEASURED else "gate"


def told(row: Row) -> str:
    """An attempt in a line: for tooltips."""
    end = {START: "the starting policy", RUNNING: f"running, after {row.stage}", "promoted": "promoted"}
    text = f"{row.iteration:04d} {row.title}: {end.get(row.outcome, f'rejected at {row.outcome}')}"
    return f"{text}, dev {100 * row.developed.right.share:.1f} %" if row.developed else text


def _point(row: Row, x: float, y: float, linked: bool) -> Markup:
    """The sign; ``linked``: it leads to the attempt. Not in the order of the tab key: the table has the same links."""
    body = joined([tag("title", told(row)), mark(kind(row), x, y)])
    if not linked:
        return tag("g", body)
    return tag("a", body, href=f"#attempt-{row.iteration}", tabindex="-1", class_="point")


def legend(kinds: Sequence[str], x: float, y: float, width: float) -> tuple[Markup, float]:
    """Signs with their names in rows of ``width``, and the height they take."""
    parts, at, line_y = [], x, y
    for name in kinds:
        size = 26 + 6.3 * len(NAMES[name])
        if at + size > x + width and at > x:
            at, line_y = x, line_y + 20
        parts += [mark(name, at + 6, line_y), label(at + 18, line_y + 4, NAMES[name], kind="tick")]
        at += size
    return joined(parts), line_y - y + 20


def _kinds(rows: Sequence[Row], more: Sequence[str] = ()) -> list[str]:
    present = {kind(row) for row in rows} | set(more)
    return [name for name in NAMES if name in present]


def _wide(rows: Sequence[Row]) -> tuple[float, Callable[[int], float]]:
    """Width of a chart over iterations, and the place of each."""
    last = max((row.iteration for row in rows), default=0)
    step = min(max(ROOM / max(last, 1), STEPS[0]), STEPS[1])
    return max(440.0, LEFT + 40.0 + step * last), lambda k: LEFT + 14 + step * k


# ---------------------------------------------------------------- lineage


def lineage(story: Story, linked: bool = True) -> Drawing:
    """The tree: a lane for each policy that others may come from, attempts at their iteration on their parent's."""
    rows = story.rows
    _, at = _wide(rows)
    lanes = {row.iteration: 34 + LANE * n for n, row in enumerate(r for r in rows if r.kept)}
    ends: dict[int, int] = {}
    for row in rows:
        if row.parent in lanes:
            ends[row.parent] = row.iteration
    right = max([440.0, *(at(k) + 12 for k in ends.values()), *(at(k) + 8 * LATE_TITLE for k in lanes)])
    parts = []
    for row in rows:
        if not row.kept:
            continue
        x, y = at(row.iteration), lanes[row.iteration]
        lane = f"lane{' front' if row.on_frontier else ''}"
        parts.append(tag("line", x1=x, x2=at(ends.get(row.iteration, row.iteration)), y1=y, y2=y, class_=lane))
        if row.parent in lanes:
            parts.append(tag("line", x1=x, x2=x, y1=lanes[row.parent], y2=y, class_="branch"))
        share = f"  {100 * row.developed.right.share:.1f} %" if row.developed else ""
        text = f"{row.iteration:04d} {row.title[:LATE_TITLE]}{share}"
        parts.append(label(x + 8, y - 11, text, kind="label strong" if row.on_frontier else "label"))
    for row in rows:
        height = lanes[row.iteration] if row.kept else lanes.get(row.parent or 0, 34)
        parts.append(_point(row, at(row.iteration), height, linked))
    bottom = 34 + LANE * max(1, len(lanes)) - 14
    last = max((row.iteration for row in rows), default=0) or 1
    scale = Axis(0, last, at(0), at(last))
    signs, below = legend(_kinds(rows), LEFT, bottom + 44, LEGEND)
    numbers = grid_x(scale, bottom - 6, bottom, wanted=min(10, last))
    parts += [numbers, label(LEFT, bottom + 30, "iteration", kind="tick"), signs]
    title = "Lineage: attempts in order of iteration, each on the lane of the policy it was made from"
    return Drawing(right, bottom + 40 + below, title, joined(parts))


# ---------------------------------------------------------------- by iteration


def by_iteration(story: Story, linked: bool = True) -> Drawing:
    """Development accuracy of each measured attempt with its 95 % interval, and the validated ones beside it."""
    rows = [row for row in story.rows if row.developed]
    width, at = _wide(story.rows)
    top, bottom = 24, 250
    bounds = [b for row in rows if row.developed for b in _bounds(row.developed)]
    axis = spanning(bounds, bottom, top)
    parts = [grid_y(axis, LEFT, width - 8, "{:g} %"), _accuracy()]
    last = max((row.iteration for row in story.rows), default=0) or 1
    parts.append(grid_x(Axis(0, last, at(0), at(last)), bottom, bottom, wanted=min(10, last)))
    best = [(at(r.iteration), axis.at(100 * r.developed.right.share)) for r in rows if r.kept and r.developed]
    if best:
        steps = "".join(f"H{x:.1f}V{y:.1f}" for x, y in best[1:])
        parts.append(tag("path", d=f"M{best[0][0]:.1f} {best[0][1]:.1f}{steps}H{at(last):.1f}", class_="best"))
    for row in rows:
        if row.developed is None:
            continue
        x = at(row.iteration)
        low, high = (axis.at(b) for b in _bounds(row.developed))
        parts.append(tag("line", x1=x, x2=x, y1=low, y2=high, class_=f"whisker {kind(row)}"))
        parts.append(_point(row, x, axis.at(100 * row.developed.right.share), linked))
    signs, height = legend(_kinds(rows), LEFT, bottom + 48, LEGEND)
    parts += [label(LEFT, bottom + 32, "iteration; bars: 95 % (Wilson); line: promoted", kind="tick"), signs]
    return Drawing(width, bottom + 44 + height, "Development accuracy by iteration with 95 % intervals", joined(parts))


def _bounds(measured: Figures) -> tuple[float, float]:
    bounds = measured.right.interval
    return 100 * bounds.low, 100 * bounds.high


# ---------------------------------------------------------------- accuracy against cost


def against_tokens(story: Story, linked: bool = True) -> Drawing:
    """Development accuracy against tokens per question."""
    return _scatter(story, lambda f: f.tokens, "tokens per question" + _counted(story), "{:,.0f}", linked)


def against_seconds(story: Story, linked: bool = True) -> Drawing:
    """Development accuracy against the median seconds per question."""
    load = " (no model: this machine's load alone)" if story.offline else ""
    return _scatter(story, lambda f: f.seconds, f"seconds per question, median{load}", "{:g}", linked)


def _counted(story: Story) -> str:
    return " (counted offline)" if story.offline else ""


def _scatter(story: Story, cost: Callable[[Figures], float], name: str, words: str, linked: bool) -> Drawing:
    width, top, bottom = 440.0, 24, 270
    rows = [(row, row.developed) for row in story.rows if row.developed]
    others = [(title, found[0]) for title, found in story.references.items()]
    every = [measured for _, measured in rows] + [measured for _, measured in others]
    costs = [cost(measured) for measured in every]
    wide = bool(costs) and max(costs) > 20 * max(min(costs), 1e-9)
    across = spanning(costs, LEFT, width - 14, log=wide)
    up = spanning([100 * measured.right.share for measured in every], bottom, top)
    parts = [grid_y(up, LEFT, width - 8, "{:g} %"), grid_x(across, top, bottom, words), _accuracy()]
    order = sorted(rows, key=lambda found: found[0].on_frontier)
    parts += [_point(row, across.at(cost(m)), up.at(100 * m.right.share), linked) for row, m in order]
    parts += [_reference(title, across.at(cost(m)), up.at(100 * m.right.share)) for title, m in others]
    signs, height = legend(_kinds([row for row, _ in rows], ["reference"] if others else []), LEFT, bottom + 54, LEGEND)
    parts += [label(LEFT, bottom + 34, name + (", logarithmic" if across.log else ""), kind="tick"), signs]
    return Drawing(width, bottom + 50 + height, f"Development accuracy against {name}", joined(parts))


def _accuracy() -> Markup:
    return label(4, 12, "development accuracy", kind="tick")


def _reference(name: str, x: float, y: float) -> Markup:
    anchor, offset = ("end", -9) if x > 330 else ("start", 9)
    return mark("reference", x, y) + label(x + offset, y + 4, name, anchor, "tick")


# ---------------------------------------------------------------- spend


def spend(rows: Sequence[Spent]) -> Drawing | None:
    """Tokens by role and stage as bars; None where no model was called."""
    shown = rows[:20]
    if not shown:
        return None
    return _bars(
        [(f"{s.role} · {s.stage}", float(s.tokens), f"{s.tokens:,} tokens, ${s.dollars:.4f}") for s in shown],
        "Tokens by role and stage",
    )


def seconds(rows: Sequence[tuple[str, float, int]]) -> Drawing | None:
    """Seconds by stage as bars."""
    shown = [(stage, spent, f"{spent:,.1f} s in {count}") for stage, spent, count in rows[:14] if spent >= 0.05]
    return _bars(shown, "Seconds by stage") if shown else None


def _bars(rows: Sequence[tuple[str, float, str]], title: str) -> Drawing:
    width, left, height = 440.0, 168.0, 24
    most = max(value for _, value, _ in rows) or 1.0
    parts = []
    for n, (name, value, words) in enumerate(rows):
        y = 8 + height * n
        length = (width - left - 130) * value / most
        parts += [
            label(left - 8, y + 13, name, "end", "tick", 24),
            tag("rect", x=left, y=y + 2, width=max(1.0, length), height=height - 10, class_="bar"),
            label(left + length + 6, y + 13, words, kind="tick"),
        ]
    return Drawing(width, 12 + height * len(rows), title, joined(parts))
