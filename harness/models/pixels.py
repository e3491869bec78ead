"""The offline stand-in for an answer model's eyes: reads frames of the generated life-log from their pixels alone.

It knows the palette, the shapes and the places of ``harness.data.lifelog.palette`` and nothing else: no file name, no
state of the world. It has an opinion only where the question asks for a colour, a number or a position, where a frame
shows the person and the thing that the question names, and where all such frames say the same. A picture that is not
wholly of that palette, as any real one, says nothing. It is never reported as a vision-language model's result.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from harness.data.lifelog import palette as p

WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
NUMBERS = {word: str(number) for number, word in enumerate(WORDS)} | {str(number): str(number) for number in range(11)}
WORD = re.compile(r"[a-z0-9]+")
ABOVE, BELOW, LEFT, RIGHT = "above", "below", "left", "right"
PLACE = re.compile(r"\b(?:(left|right) of|(above|over)|(below|under)) the (\w+)", re.IGNORECASE)
TEXT = 2_000
"""Characters of a question or a choice that are looked at."""
COLOURS = {colour: colour for colour in p.COLOURS}
NAMES = tuple(p.COLOURS)
KINDS = {kind: kind for kind in p.SHAPES}


@dataclass(frozen=True, slots=True)
class Thing:
    """A shape of one colour in a frame, with the pixel at its centre."""

    kind: str
    colour: str
    x: int
    y: int


@dataclass(frozen=True, slots=True)
class Sight:
    """What a frame shows. A mark is the bytes of its cells; empty where there is no person or no thing in hands."""

    things: tuple[Thing, ...]
    person: bytes
    shirt: str
    held: bytes
    held_colour: str


def look(question: str, choices: Mapping[str, str], images: Sequence[bytes]) -> str | None:
    """The letter of the choice that the frames show, or None for no opinion. ``images`` are PNG or JPEG bytes."""
    answer_in = asked(question[:TEXT].lower(), {letter: text[:TEXT].lower() for letter, text in choices.items()})
    if answer_in is None:
        return None
    sights = [sight for image in images if (sight := see(image)) is not None]
    said = {letter for sight in sights if (letter := answer_in(sight)) is not None}
    return said.pop() if len(said) == 1 else None


# ---------------------------------------------------------------- what is asked


def asked(question: str, choices: Mapping[str, str]) -> Callable[[Sight], str | None] | None:
    """How to find the answer's letter in a frame, or None where the question does not ask for what is seen."""
    words = set(WORD.findall(question))
    marks = {p.mark(word).tobytes() for word in words}
    kinds = [kind for kind in p.SHAPES if kind in words or kind + "s" in words]

    def shows(sight: Sight) -> bool:
        """Whether person and thing are those of the question; the wearer, "I", is not seen."""
        return sight.held in marks and (sight.person in marks if sight.person else "i" in words)

    def one(sight: Sight, kind: str) -> Thing | None:
        found = [thing for thing in sight.things if thing.kind == kind]
        return found[0] if shows(sight) and len(found) == 1 else None

    if letters := by_value(choices, COLOURS):
        if "shirt" in words:
            return lambda sight: letters.get(sight.shirt) if shows(sight) else None
        if len(kinds) == 1:
            return lambda sight: letters.get(thing.colour) if (thing := one(sight, kinds[0])) else None
        return lambda sight: letters.get(sight.held_colour) if sight.held in marks else None
    counting = "how many" in question or "number of" in question
    if counting and "times" not in words and len(kinds) == 1 and (letters := by_value(choices, NUMBERS)):
        return lambda sight: letters.get(str(count(sight, kinds[0]))) if shows(sight) else None
    place = PLACE.search(question)
    if place and place[4] in KINDS and (letters := by_value(choices, KINDS)):
        side = place[1] or (ABOVE if place[2] else BELOW)

        def beside(sight: Sight) -> str | None:
            thing = one(sight, place[4])
            other = neighbour(sight, thing, side) if thing else None
            return letters.get(other.kind) if other else None

        return beside
    return None


def count(sight: Sight, kind: str) -> int:
    """How many things of a kind are seen."""
    return sum(thing.kind == kind for thing in sight.things)


def by_value(choices: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """Letters by the one known word in each choice; empty where a choice has none or two, or two choices the same."""
    found: dict[str, str] = {}
    for letter, text in choices.items():
        values = {known[word] for word in WORD.findall(text) if word in known}
        if len(values) != 1 or (value := values.pop()) in found:
            return {}
        found[value] = letter
    return found


def neighbour(sight: Sight, thing: Thing, side: str) -> Thing | None:
    """The nearest thing in the same row, or the one in the same column."""
    if side in (LEFT, RIGHT):
        row = [other for other in sight.things if abs(other.y - thing.y) < p.CELL // 2]
        beside = [other for other in row if (other.x < thing.x if side == LEFT else other.x > thing.x)]
        return min(beside, key=lambda other: abs(other.x - thing.x), default=None)
    column = [other for other in sight.things if abs(other.x - thing.x) < p.CELL // 2]
    return next((other for other in column if (other.y < thing.y if side == ABOVE else other.y > thing.y)), None)


# ---------------------------------------------------------------- what is seen


def see(image: bytes) -> Sight | None:
    """What a frame shows; None where it is no frame of the life-log, or one that cannot be made out."""
    from harness.data.pictures import image_pixels  # loads the codecs, which offline runs without frames never need

    pixels = image_pixels(image)
    if pixels is None or pixels.shape != (p.HEIGHT, p.WIDTH, 3):
        return None
    indices = np.full((p.HEIGHT, p.WIDTH), -1, np.int8)
    for index, colour in enumerate(p.PALETTE):
        indices[(pixels == colour).all(axis=2)] = index
    if (indices < 0).any():
        return None
    things = shapes(indices)
    if things is None:
        return None
    person, shirt = somebody(indices)
    held, held_colour = in_hands(indices)
    return Sight(things, person, shirt, held, held_colour)


def shapes(indices: np.ndarray) -> tuple[Thing, ...] | None:
    """All shapes of the grid; None where a coloured patch is none of them."""
    area = indices[: p.GRID_BOTTOM, p.GRID_LEFT : p.GRID_RIGHT]
    free = (area >= 0) & (area < p.FIRST_WALL)
    found: list[Thing] = []
    while free.any():
        y, x = divmod(int(np.argmax(free)), free.shape[1])
        patch = connected(free & (area == area[y, x]), y, x)
        free &= ~patch
        rows, columns = np.flatnonzero(patch.any(axis=1)), np.flatnonzero(patch.any(axis=0))
        cut = patch[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
        kind = next((kind for kind in p.SHAPES if is_shape(cut, kind)), None)
        if kind is None:
            return None
        colour = NAMES[area[y, x]]
        x, y = int(columns[0] + columns[-1]) // 2, int(rows[0] + rows[-1]) // 2
        found.append(Thing(kind, colour, p.GRID_LEFT + x, y))
    return tuple(found)


def connected(mask: np.ndarray, y: int, x: int) -> np.ndarray:
    """The pixels of ``mask`` that hang together with one of them."""
    patch = np.zeros_like(mask)
    patch[y, x] = True
    while True:
        grown = patch.copy()
        grown[1:] |= patch[:-1]
        grown[:-1] |= patch[1:]
        grown[:, 1:] |= patch[:, :-1]
        grown[:, :-1] |= patch[:, 1:]
        grown &= mask
        if (grown == patch).all():
            return patch
        patch = grown


def is_shape(cut: np.ndarray, kind: str) -> bool:
    """Whether the pixels are exactly a shape at one of its sizes."""
    return cut.shape[0] in p.SIZES and cut.shape[0] == cut.shape[1] and bool((cut == p.shape(kind, len(cut))).all())


def somebody(indices: np.ndarray) -> tuple[bytes, str]:
    """Mark and shirt colour of the person; empty where there is none."""
    for left in p.SIDES:
        shirt = indices[p.SHIRT_TOP : p.SHIRT_BOTTOM, left : left + p.PERSON_WIDTH]
        colour = int(shirt[0, 0])
        if colour < p.FIRST_WALL and np.isin(shirt, (colour, p.INK_INDEX)).all():
            cells = read_mark(indices, left + p.BADGE_LEFT, p.BADGE_TOP, p.BADGE_CELL, p.INK_INDEX)
            return cells, NAMES[colour]
    return b"", ""


def in_hands(indices: np.ndarray) -> tuple[bytes, str]:
    """Mark and colour of the thing in the hands; empty where there is none."""
    size = p.MARK * p.HELD_CELL
    area = indices[p.HELD_TOP : p.HELD_TOP + size, p.HELD_LEFT : p.HELD_LEFT + size]
    colours = np.unique(area[area < p.FIRST_WALL])
    if len(colours) != 1:
        return b"", ""
    return (
        read_mark(indices, p.HELD_LEFT, p.HELD_TOP, p.HELD_CELL, int(colours[0])),
        NAMES[colours[0]],
    )


def read_mark(indices: np.ndarray, left: int, top: int, cell: int, colour: int) -> bytes:
    """The cells that are wholly of a colour, as bytes."""
    size = p.MARK * cell
    area = indices[top : top + size, left : left + size] == colour
    cells: np.ndarray = area.reshape(p.MARK, cell, p.MARK, cell).all(axis=(1, 3))
    return cells.tobytes()
