"""From what happened to what is said about it: caption and transcript lines for every window."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from harness.data.lifelog.draw import Draw
from harness.data.lifelog.phrases import AMBIENT, CHATTER, DECOYS, HANDLE, TELL, Variant
from harness.data.lifelog.world import HANDLINGS, WEARER, WEEKDAYS, Event, World
from policies.contract import Utterance, Window

ENDING = re.compile(r"\[([^\[\]|]*)(?:\|([^\[\]]*))?\]")
SLOT = re.compile(r"\{([A-Za-z_]+)\}")
DECOY_SHARE = 0.3
PLAIN_SHARE = 0.45
"""How often the first, plainest wording is taken."""
OTHER_NAME_SHARE = 0.15
"""How often an object is called by its other name."""
DECOY_REACH = 10
"""Decoys stand at most so many windows from what they resemble."""


def tell(world: World, draw: Draw) -> tuple[Window, ...]:
    """All windows of the stream, in order."""
    enters: list[list[tuple[str, ...]]] = [[] for _ in world.slots]
    lines: list[list[tuple[str, ...]]] = [[] for _ in world.slots]
    for event in world.events:
        for offset, block in enumerate(event_lines(world, event, draw)):
            (enters if event.kind == "enter" else lines)[event.slot + offset].append(block)
        if event.kind in DECOYS and draw.chance(DECOY_SHARE):
            slot, line = decoy(world, event, draw)
            lines[slot].append((line,))
    return tuple(window(world, number, enters[number], lines[number], draw) for number in range(len(world.slots)))


def window(
    world: World, number: int, enters: Sequence[tuple[str, ...]], blocks: Sequence[tuple[str, ...]], draw: Draw
) -> Window:
    """One window: where the wearer goes comes first; what else happens stands among things of no importance."""
    slot = world.slots[number]
    rest = list(blocks)
    for _ in range(draw.integer(1, 2)):
        x = draw.pick(slot.present)
        rest.append((fill(draw.pick(AMBIENT), {"X": x}, True),))
    for _ in range(draw.integer(0, 2)):
        speaker = world.wearer if draw.chance(0.4) else draw.pick(slot.present)
        rest.append((f"{speaker}: {draw.pick(CHATTER)}",))
    told = [line for block in [*enters, *draw.shuffled(rest)] for line in block]
    spoken = [line.split(": ", 1) for line in told if is_speech(line)]
    return Window(
        number,
        slot.start,
        slot.end,
        tuple(line for line in told if not is_speech(line)),
        tuple(Utterance(speaker, text) for speaker, text in spoken),
        False,
    )


def is_speech(line: str) -> bool:
    """Whether the line starts with one name and a colon."""
    return line.split(" ", 1)[0].endswith(":")


def event_lines(world: World, event: Event, draw: Draw) -> Variant:
    """The lines that tell of an event, window by window."""
    if event.kind == "handle":
        variants: Sequence[Variant] = [((line,),) for line in HANDLE[event.detail]]
    else:
        variants = [variant for variant in TELL[event.kind] if len(variant) == event.slots]
    values = names(world, event, draw)
    variant = variants[0] if draw.chance(PLAIN_SHARE) else draw.pick(variants)
    return tuple(tuple(fill_line(world, event, line, values) for line in block) for block in variant)


def decoy(world: World, event: Event, draw: Draw) -> tuple[int, str]:
    """A line that resembles the event and says nothing of it, and the window in which it stands."""
    session = world.slots[event.slot].session
    near = range(max(0, event.slot - DECOY_REACH), min(len(world.slots), event.last + DECOY_REACH + 1))
    slot = draw.pick([number for number in near if world.slots[number].session == session])
    bystanders = [p for p in world.slots[slot].present if p != event.actor and p not in event.others]
    values = {**names(world, event, draw), "X": draw.pick(bystanders)}
    words = world.words
    wrong: Mapping[str, Sequence[str]] = {
        "buy": words.goods,
        "drink": words.drinks,
        "ask": words.tasks,
        "handle": HANDLINGS,
    }
    truth = event.detail if event.kind == "handle" else event.thing
    values["t"] = draw.pick([thing for thing in wrong.get(event.kind, words.dishes) if thing != truth])
    values["p"] = draw.pick([spot for spot in words.spots if spot != event.place])
    values["w"] = draw.pick([day for day in WEEKDAYS if day != event.detail])
    return slot, fill_line(world, event, draw.pick(DECOYS[event.kind]), values)


def names(world: World, event: Event, draw: Draw) -> dict[str, str]:
    """What the template's places stand for, people excepted."""
    values = {"o": event.thing, "s": event.place, "d": event.detail, "ds": third_person(event.detail)}
    for name, other in world.words.objects:
        if event.thing == name and draw.chance(OTHER_NAME_SHARE):
            values["o"] = other
    for base, _, ing in world.words.pastimes:
        if event.thing == base:
            values["ing"] = ing
    return values


def fill_line(world: World, event: Event, template: str, values: Mapping[str, str]) -> str:
    """Fill a template; in speech the wearer goes by name, in captions it is I and me."""
    speech = is_speech(template)
    people = {"A": event.actor, "A_": event.actor}
    people.update(zip("BC", event.others, strict=False))
    for key, person in people.items():
        if person == WEARER:
            people[key] = world.wearer if speech else WEARER if key == "A" else "me"
    first = event.actor == WEARER and not speech
    if first:
        values = {**values, "ds": event.detail}
    line = fill(template, {**values, **people, "am": "am" if first else "is"}, not first)
    return line[0].upper() + line[1:]


def fill(template: str, values: Mapping[str, str], third: bool) -> str:
    """Put the values in and choose the verb endings; values are never templates."""
    ended = ENDING.sub(lambda match: match[1] if third else match[2] or "", template)
    return SLOT.sub(lambda match: values[match[1]], ended)


def third_person(phrase: str) -> str:
    """``carry`` gives ``carries``, ``set up`` gives ``sets up``."""
    verb, _, rest = phrase.partition(" ")
    verb = verb[:-1] + "ies" if verb.endswith("ry") else verb + "s"
    return f"{verb} {rest}" if rest else verb
