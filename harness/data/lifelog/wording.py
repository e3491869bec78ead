"""How questions and choices are worded, and the view of the world that they are worded from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.data.lifelog.draw import Draw
from harness.data.lifelog.phrases import PAST
from harness.data.lifelog.world import WEARER, Event, World

PARTS = {
    "morning": "In the morning",
    "noon": "Around noon",
    "afternoon": "In the afternoon",
    "evening": "In the evening",
}
OTHER_NAME_SHARE = 0.15
"""How often an object is called by its other name."""


@dataclass(frozen=True, slots=True)
class View:
    """What has happened until a moment: all events told in windows up to ``slot``."""

    world: World
    slot: int
    events: tuple[Event, ...]

    def of(self, *kinds: str) -> list[Event]:
        """Events of some kinds, in order."""
        return [event for event in self.events if event.kind in kinds]


def them(person: str) -> str:
    """The person as an object."""
    return "me" if person == WEARER else person


def called(view: View, thing: str, draw: Draw) -> str:
    """An object by either of its names."""
    for name, other in view.world.words.objects:
        if name == thing and draw.chance(OTHER_NAME_SHARE):
            return other
    return thing


def ing(view: View, pastime: str) -> str:
    """The -ing form of a pastime."""
    return next(form for base, _, form in view.world.words.pastimes if base == pastime)


def people(view: View, *known: str) -> tuple[str, ...]:
    """Everybody but the wearer and those named."""
    return tuple(person for person in view.world.people if person not in known)


def but(items: Sequence[str], answer: str) -> tuple[str, ...]:
    """All items but the answer."""
    return tuple(item for item in items if item != answer)


def age(view: View, slot: int) -> str:
    """Day and part of the day of a window, as seen from now."""
    then, now = view.world.slots[slot], view.world.slots[view.slot]
    day = ("Today", "Yesterday", "The day before yesterday")[now.day - then.day]
    return f"{day} {PARTS[then.part].lower()}"


def ages(view: View) -> list[str]:
    """All parts of days until now, the newest first."""
    return unique([age(view, slot) for slot in range(view.slot, -1, -1)])


def deed_key(event: Event) -> tuple[str, ...]:
    """What makes two deeds the same in words. Who carries a thing together with another is any of the two."""
    if event.kind == "joint":
        return (event.kind, event.thing, event.detail)
    return (event.kind, event.actor, event.thing, event.detail, *event.others)


def deed(view: View, event: Event, draw: Draw) -> str:
    """The event as a clause with its subject."""
    return f"{event.actor} {clause(view, event, called(view, event.thing, draw))}"


def phrase(view: View, event: Event) -> str:
    """The event as a choice, without its subject."""
    text = clause(view, event, event.thing)
    return text[0].upper() + text[1:]


def clause(view: View, event: Event, thing: str) -> str:
    """What was done, in the past tense."""
    if event.kind in ("handle", "joint"):
        return f"{past(event.detail, True)} the {thing}"
    if event.kind == "use":
        return f"used the {thing}"
    if event.kind == "put":
        return f"put down the {thing}"
    if event.kind == "give":
        return f"gave the {thing} to {them(event.others[0])}"
    return f"bought {thing}"


def spots(view: View, answer: str) -> tuple[str, ...]:
    """All other spots as choices."""
    return tuple(f"On the {place}" for place in but(view.world.words.spots, answer))


def capital(items: Sequence[str]) -> tuple[str, ...]:
    """Items with a capital first letter."""
    return tuple(item[0].upper() + item[1:] for item in items)


def unique(items: Sequence[str]) -> list[str]:
    """Without repetitions, in order."""
    return list(dict.fromkeys(items))


def same_session(view: View, first: Event, second: Event) -> bool:
    """Whether two events belong to one recording."""
    return view.world.slots[first.slot].session == view.world.slots[second.slot].session


def past(detail: str, plain: bool) -> str:
    """Past tense of a handling or a joint task, plainly or in other words."""
    return PAST[detail][0 if plain else 1]
