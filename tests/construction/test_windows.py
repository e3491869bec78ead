"""Windows: of 30 seconds, every line in exactly one, none that tells what comes after it."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.construction.lines import Line
from harness.construction.windows import WINDOW, Draft, finished, grid, put


@pytest.mark.parametrize(
    ("end", "cuts"),
    [
        (120.0, [0, 30, 60, 90, 120]),
        (120.9, [0, 30, 60, 90, 120.9]),
        (121.5, [0, 30, 60, 90, 120, 121.5]),
        (0.5, [0, 0.5]),
        (29.0, [0, 29.0]),
        (30.04, [0, 30.04]),
    ],
)
def test_the_grid_of_a_clip(end: float, cuts: list[float]) -> None:
    drafts = grid(0.0, end)
    assert [drafts[0].start, *(draft.end for draft in drafts)] == cuts


def test_a_window_is_thirty_seconds() -> None:
    assert WINDOW == 30.0


LINES = st.lists(
    st.tuples(st.integers(0, 4_000), st.integers(0, 600), st.booleans()).map(
        lambda t: Line(t[0] / 10, (t[0] + t[1]) / 10, f"line {t}", t[2])
    ),
    min_size=1,
    max_size=25,
)


CLIPS = st.lists(st.tuples(st.integers(0, 400), st.integers(10, 900)), max_size=3)
"""Of each clip, tenths of a second of the gap before it, and of its length."""


@given(LINES, CLIPS)
def test_every_line_in_one_window_that_does_not_end_before_it(lines: list[Line], clips: list[tuple[int, int]]) -> None:
    filmed: list[Draft] = []
    for gap, length in clips:
        start = (filmed[-1].end if filmed else 0.0) + gap / 10
        filmed += grid(start, start + length / 10)
    drafts = put(filmed, lines, 0.0)
    assert sorted((line for draft in drafts for line in draft.lines), key=repr) == sorted(lines, key=repr)
    assert all(before.end <= after.start + 1e-6 for before, after in pairwise(drafts))
    for draft in drafts:
        assert draft.start < draft.end and all(line.end <= draft.end + 1e-6 for line in draft.lines)
        assert draft.lines or any(draft is one for one in filmed), "no window is made without a line"
    for place, draft in enumerate(drafts):
        if place:
            assert all(line.end > drafts[place - 1].end for line in draft.lines), "it could have been told earlier"
    windows = finished(drafts, [])
    assert sum(len(w.captions) + len(w.transcript) for w in windows) == len(lines)
    if not any(drafts[-1] is one for one in filmed):
        assert windows[-1].end <= max(max(line.end for line in lines), windows[-1].start + 1.0) + 1e-6


def test_a_long_line_reaches_back_as_far_as_nothing_else_stands_there() -> None:
    windows = finished(put([], [Line(0, 10, "a", False), Line(5, 95, "b", False)], 0.0), [])
    assert [(w.start, w.end, w.captions) for w in windows] == [(0, 30, ("a",)), (30, 95, ("b",))]


def test_far_times_make_no_windows_between() -> None:
    windows = finished(put([], [Line(0, 1, "a", False), Line(9e8, 9e8 + 1, "b", False)], 0.0), [])
    assert len(windows) == 2 and windows[1].start == 9e8


def test_frames_are_told_by_their_times() -> None:
    drafts = put(grid(0.0, 90.0), [Line(at, at + 1, "x", False) for at in (0, 30, 60)], 0.0)
    assert [w.frames for w in finished(drafts, [30.0, 59.9])] == [False, True, False]
