"""What a frame of the life-log is made of: its colours, its shapes and where they stand.

The generator paints with it, and the offline pixel reader (``harness.models.pixels``) knows it and nothing else.
A frame has a wall with two rows of items, maybe a person at one side, and maybe a thing in the wearer's hands. Persons
and things are told apart by a mark that follows from their name, as by a face.
"""

from __future__ import annotations

import hashlib
from functools import cache, lru_cache

import numpy as np

WIDTH, HEIGHT = 128, 80

COLOURS = {
    "red": (205, 35, 40),
    "green": (45, 145, 60),
    "yellow": (240, 215, 50),
    "orange": (240, 135, 30),
    "purple": (120, 50, 150),
    "pink": (245, 150, 190),
    "brown": (115, 70, 35),
    "white": (252, 252, 250),
}
"""Colours that are asked for. No caption names one: blue is left out since a clipboard is called blue."""
WALLS = ((201, 193, 181), (188, 197, 203), (197, 203, 187), (206, 196, 204))
FLOORS = ((151, 141, 127), (139, 146, 151), (145, 149, 133), (157, 143, 149))
CLUTTER = ((173, 166, 153), (163, 172, 178), (127, 121, 113), (217, 211, 203), (109, 116, 121))
SKIN, INK = (226, 186, 158), (31, 29, 37)
PALETTE = np.array([*COLOURS.values(), *WALLS, *FLOORS, *CLUTTER, SKIN, INK], np.uint8)
FIRST_WALL = len(COLOURS)
FIRST_FLOOR = FIRST_WALL + len(WALLS)
FIRST_CLUTTER = FIRST_FLOOR + len(FLOORS)
SKIN_INDEX, INK_INDEX = len(PALETTE) - 2, len(PALETTE) - 1

SIZES = (9, 11, 13)
COLUMNS, ROWS = 5, 2
CELL = 16
GRID_LEFT, GRID_RIGHT, GRID_BOTTOM = 24, 24 + COLUMNS * CELL, 56
ROW_CENTRES = (14, 40)

MARK = 5
"""Cells of a mark in each direction."""
SIDES = (4, 106)
"""Left edge of a person who stands at the left or the right."""
PERSON_WIDTH = 18
HEAD_TOP, SHIRT_TOP, SHIRT_BOTTOM = 6, 17, 41
BADGE_LEFT, BADGE_TOP, BADGE_CELL = 4, 23, 2
"""The mark on a shirt: from the person's left edge, from the top, pixels of a cell."""
HELD_LEFT, HELD_TOP, HELD_CELL = 56, 61, 3
"""The mark of a thing in the hands."""
HAND = (6, 9)
"""Width and height of a hand."""


@cache
def shape(kind: str, size: int) -> np.ndarray:
    """The pixels of a shape, as booleans (size, size); ``size`` is odd."""
    half = size // 2
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    distance = x * x + y * y
    masks = {
        "ball": distance <= half * half + 1,
        "cube": np.ones((size, size), bool),
        "cone": 2 * abs(x) <= y + half,
        "wheel": (distance <= half * half + 1) & (distance > (half // 2) ** 2 + 1),
        "kite": abs(x) + abs(y) <= half,
    }
    return np.asarray(masks[kind])


SHAPES = ("ball", "cube", "cone", "wheel", "kite")


@lru_cache(4_096)
def mark(name: str) -> np.ndarray:
    """The mark of a person or a thing, as booleans (5, 5), the same on both sides; from the name's digest."""
    for attempt in range(1_000):
        digest = hashlib.sha256(f"{name.lower()}/{attempt}".encode(errors="surrogatepass")).digest()
        half = np.array([digest[0] >> bit & 1 for bit in range(8)] + [digest[1] >> bit & 1 for bit in range(7)], bool)
        left = half.reshape(MARK, 3)
        cells = np.concatenate([left, left[:, 1::-1]], axis=1)
        if 8 <= cells.sum() <= 18:
            return cells
    raise AssertionError("no mark")
