"""Scenes as pixels, and pixels as a video file.

The file is Matroska with run-length coded pictures (Microsoft RLE, 8 bits, a palette), each of which stands alone. It
is written here and not by a codec library, so that the same scenes are the same bytes on every machine; every common
player decodes it, without loss.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

import numpy as np

from harness.data.lifelog import palette as p
from harness.data.lifelog.scenes import Item, Scene

INDEX = {colour: index for index, colour in enumerate(p.COLOURS)}


def paint(scene: Scene) -> np.ndarray:
    """The frame as palette indices, bytes (height, width)."""
    picture = np.empty((p.HEIGHT, p.WIDTH), np.uint8)
    picture[: p.GRID_BOTTOM] = p.FIRST_WALL + scene.wall
    picture[p.GRID_BOTTOM :] = p.FIRST_FLOOR + scene.floor
    for left, top, right, bottom, tone in scene.clutter:
        picture[top:bottom, left:right] = p.FIRST_CLUTTER + tone
    for item in scene.items:
        left, top = corner(item)
        picture[top : top + item.size, left : left + item.size][p.shape(item.kind, item.size)] = INDEX[item.colour]
    if scene.person:
        paint_person(picture, p.SIDES[scene.side], scene.person, INDEX[scene.shirt])
    if scene.thing:
        paint_hands(picture, scene.thing, INDEX[scene.thing_colour])
    return picture


def corner(item: Item) -> tuple[int, int]:
    """Left and top edge of an item."""
    left = p.GRID_LEFT + item.column * p.CELL + p.CELL // 2 + item.dx - item.size // 2
    return left, p.ROW_CENTRES[item.row] + item.dy - item.size // 2


def paint_person(picture: np.ndarray, left: int, name: str, shirt: int) -> None:
    """A head, a shirt with the person's mark, and legs."""
    head = p.shape("ball", 9)
    picture[p.HEAD_TOP : p.HEAD_TOP + 9, left + 4 : left + 13][head] = p.SKIN_INDEX
    picture[p.SHIRT_TOP : p.SHIRT_BOTTOM, left : left + p.PERSON_WIDTH] = shirt
    picture[p.SHIRT_BOTTOM : p.GRID_BOTTOM + 8, left + 4 : left + 14] = p.INK_INDEX
    paint_mark(picture, left + p.BADGE_LEFT, p.BADGE_TOP, p.BADGE_CELL, name, p.INK_INDEX)


def paint_hands(picture: np.ndarray, thing: str, colour: int) -> None:
    """Two hands, and between them the thing's mark in its colour."""
    width, height = p.HAND
    size = p.MARK * p.HELD_CELL
    for left in (p.HELD_LEFT - width - 1, p.HELD_LEFT + size + 1):
        picture[p.HELD_TOP + 5 : p.HELD_TOP + 5 + height, left : left + width] = p.SKIN_INDEX
    paint_mark(picture, p.HELD_LEFT, p.HELD_TOP, p.HELD_CELL, thing, colour)


def paint_mark(picture: np.ndarray, left: int, top: int, cell: int, name: str, colour: int) -> None:
    """A name's mark, ``cell`` pixels a cell."""
    cells = p.mark(name).repeat(cell, 0).repeat(cell, 1)
    picture[top : top + len(cells), left : left + len(cells)][cells] = colour


# ---------------------------------------------------------------- the file


def film(frames: Sequence[tuple[int, np.ndarray]]) -> bytes:
    """A Matroska file of pictures with their times in milliseconds, in order; the first should be at 0."""
    pictures = [(time, run_lengths(picture)) for time, picture in frames]
    head = element(
        "1A45DFA3",
        element("4286", b"\1"),
        element("42F7", b"\1"),
        element("42F2", b"\4"),
        element("42F3", b"\x08"),
        element("4282", b"matroska"),
        element("4287", b"\4"),
        element("4285", b"\2"),
    )
    information = element(
        "1549A966",
        element("2AD7B1", number(1_000_000)),
        element("4489", struct.pack(">d", float(frames[-1][0] if frames else 0))),
        element("4D80", b"lifelog"),
        element("5741", b"lifelog"),
    )
    blocks = [
        element("1F43B675", element("E7", number(time)), element("A3", b"\x81\0\0\x80", picture))
        for time, picture in pictures
    ]
    before = len(information) + len(TRACKS) + len(cues([0] * len(blocks), pictures))
    places = [before]
    for block in blocks[:-1]:
        places.append(places[-1] + len(block))
    return head + element("18538067", information, TRACKS, cues(places, pictures), *blocks)


def cues(places: Sequence[int], pictures: Sequence[tuple[int, bytes]]) -> bytes:
    """The index by which a player seeks: where the cluster of each time stands."""
    points = [
        element("BB", element("B3", number(time)), element("B7", element("F7", b"\1"), element("F1", number(place))))
        for place, (time, _) in zip(places, pictures, strict=True)
    ]
    return element("1C53BB6B", *points)


def element(identity: str, *parts: bytes) -> bytes:
    """One element of the container: identity, length, content."""
    content = b"".join(parts)
    return bytes.fromhex(identity) + (1 << 56 | len(content)).to_bytes(8, "big") + content


def number(value: int) -> bytes:
    """A whole number in eight bytes, so that its length does not depend on it."""
    return value.to_bytes(8, "big")


def run_lengths(picture: np.ndarray) -> bytes:
    """Microsoft RLE: lines from the bottom up, as (length, value) pairs and an end: (0, 0), of the last one (0, 1)."""
    lines = picture[::-1]
    height, width = lines.shape
    changes = np.ones((height, width), bool)
    changes[:, 1:] = lines[:, 1:] != lines[:, :-1]
    starts = np.flatnonzero(changes)
    pairs = np.zeros((len(starts) + height, 2), np.uint8)
    place = np.arange(len(starts)) + starts // width
    pairs[place, 0] = np.diff(starts, append=height * width)
    pairs[place, 1] = lines.reshape(-1)[starts]
    pairs[-1] = (0, 1)
    return pairs.tobytes()


def track() -> bytes:
    """The description of the one track: a bitmap header and the palette, each colour as blue, green, red, 0."""
    colours = np.zeros((256, 4), np.uint8)
    colours[: len(p.PALETTE), :3] = p.PALETTE[:, ::-1]
    header = struct.pack("<IiiHHIIiiII", 40, p.WIDTH, p.HEIGHT, 1, 8, 1, 0, 0, 0, 256, 0)
    return element(
        "1654AE6B",
        element(
            "AE",
            element("D7", b"\1"),
            element("73C5", b"\1"),
            element("83", b"\1"),
            element("9C", b"\0"),
            element("86", b"V_MS/VFW/FOURCC"),
            element("63A2", header + colours.tobytes()),
            element("E0", element("B0", number(p.WIDTH)), element("BA", number(p.HEIGHT))),
        ),
    )


TRACKS = track()
