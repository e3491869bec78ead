"""What the camera sees in each window: the part of the world that captions leave out. No pixel is made here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.data.lifelog.draw import Draw
from harness.data.lifelog.palette import CLUTTER, COLOURS, COLUMNS, FLOORS, HEIGHT, ROWS, SHAPES, SIZES, WALLS, WIDTH
from harness.data.lifelog.world import WEARER, Event, World

SEEN_SHARE = 0.92
"""How often a window has a frame: now and then the lens is covered."""
BYSTANDER_SHARE = 0.4
"""How often somebody stands there although nothing happens."""
HELD = ("put", "use", "give", "handle", "joint")
"""Kinds of events in which the thing is in hands."""
CLUTTER_PIECES = (6, 12)
LIKE_SHARE = (2, 5)
"""How many items of one kind are in every scene, the fewest and the most: numbers worth asking for."""
OTHERS = (2, 4)
"""How many items of other kinds."""


@dataclass(frozen=True, slots=True)
class Item:
    """A thing that nobody speaks of, in a cell of the wall's grid; ``dx`` and ``dy`` are pixels off its centre."""

    kind: str
    colour: str
    row: int
    column: int
    size: int
    dx: int
    dy: int


@dataclass(frozen=True, slots=True)
class Scene:
    """One frame. ``clutter`` are rectangles (left, top, right, bottom, tone)."""

    items: tuple[Item, ...]
    wall: int
    floor: int
    clutter: tuple[tuple[int, int, int, int, int], ...]
    side: int
    person: str = ""
    shirt: str = ""
    thing: str = ""
    thing_colour: str = ""

    def of(self, kind: str) -> list[Item]:
        """All items of a kind."""
        return [item for item in self.items if item.kind == kind]

    def at(self, row: int, column: int) -> Item | None:
        """The item in a cell."""
        return next((item for item in self.items if (item.row, item.column) == (row, column)), None)


Scenes = Sequence[Scene | None]
"""One for each window; None where the lens was covered."""


def see(world: World, draw: Draw) -> tuple[Scene | None, ...]:
    """The scenes of a stream; one that belongs to an event stays for all of its windows."""
    events: dict[int, Event] = {}
    for happened in world.events:
        if happened.kind != "enter":
            events |= dict.fromkeys(range(happened.slot, happened.last + 1), happened)
    things = {name: draw.pick(tuple(COLOURS)) for name, _ in world.words.objects}
    shirts: dict[tuple[str, int], str] = {}
    scenes: list[Scene | None] = []
    for number, slot in enumerate(world.slots):
        seen = draw.chance(SEEN_SHARE)
        event = events.get(number)
        if event is not None and event.slot < number and (before := scenes[-1]) is not None:
            scenes.append(before if seen else None)
            continue
        person = ""
        if event is not None:
            person = event.actor if event.actor != WEARER else ""
        elif draw.chance(BYSTANDER_SHARE):
            person = draw.pick(slot.present)
        shirt = ""
        if person:
            shirt = shirts.setdefault((person, slot.day), draw.pick(tuple(COLOURS)))
        thing = event.thing if event is not None and event.kind in HELD else ""
        scenes.append(arrange(draw, person, shirt, thing, things.get(thing, "")) if seen else None)
    return tuple(scenes)


def arrange(draw: Draw, person: str, shirt: str, thing: str, thing_colour: str) -> Scene:
    """Items of random kinds and colours in random cells, among clutter."""
    often = draw.pick(SHAPES)
    rest = [kind for kind in SHAPES if kind != often]
    kinds = [often] * draw.integer(*LIKE_SHARE) + [draw.pick(rest) for _ in range(draw.integer(*OTHERS))]
    cells = draw.sample([(row, column) for row in range(ROWS) for column in range(COLUMNS)], len(kinds))
    items = tuple(
        Item(
            kind,
            draw.pick(tuple(COLOURS)),
            row,
            column,
            draw.pick(SIZES),
            draw.integer(-1, 1),
            draw.integer(-1, 1),
        )
        for kind, (row, column) in zip(kinds, cells, strict=True)
    )
    pieces: list[tuple[int, int, int, int, int]] = []
    for _ in range(draw.integer(*CLUTTER_PIECES)):
        left, top = draw.integer(0, WIDTH - 4), draw.integer(0, HEIGHT - 4)
        wide = draw.chance(0.5)
        right = left + (draw.integer(8, 40) if wide else draw.integer(1, 3))
        bottom = top + (draw.integer(1, 3) if wide else draw.integer(8, 24))
        pieces.append((left, top, min(right, WIDTH), min(bottom, HEIGHT), draw.integer(0, len(CLUTTER) - 1)))
    wall, floor = draw.integer(0, len(WALLS) - 1), draw.integer(0, len(FLOORS) - 1)
    return Scene(items, wall, floor, tuple(pieces), draw.integer(0, 1), person, shirt, thing, thing_colour)
