"""Questions whose wording sounds as if they asked for something to be seen, and that captions answer."""

from __future__ import annotations

from harness.data.lifelog.asking import Ask, Template, pick_last
from harness.data.lifelog.draw import Draw
from harness.data.lifelog.wording import View, but, called, capital, people, unique
from harness.data.lifelog.world import WEARER

NUMBERS = ("None", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve")
FEWEST, MOST = 5, 9
"""Counts that are asked for: none of the four numbers around them may be one, a word that people also say."""


DEEDS = {
    "put": "put something down",
    "use": "use one of the things",
    "give": "hand something over",
    "drink": "drink something",
}


def how_often(view: View, draw: Draw) -> Ask | None:
    """How many times somebody did something. The answer's rank among its four choices is drawn first."""
    who, kind, rank = draw.pick(view.world.people), draw.pick(tuple(DEEDS)), draw.integer(0, 3)
    events = [event for event in view.of(kind) if event.actor == who]
    lowest = len(events) - rank
    if not FEWEST <= len(events) <= MOST:
        return None
    choices = [NUMBERS[number] for number in range(lowest, lowest + 4)]
    question = draw.pick(
        ("How many times did {who} {what}?", "What is the number of times that {who} was seen to {what}?")
    )
    asked = question.replace("{who}", who).replace("{what}", DEEDS[kind])
    return Ask(asked, NUMBERS[len(events)], but(choices, NUMBERS[len(events)]), tuple(events))


def who_left(view: View, draw: Draw) -> Ask | None:
    """Who left a thing on a spot the last time."""
    event, once = pick_last(view.of("put"), lambda e: (e.thing, e.place), draw)
    if event is None or event.actor == WEARER:
        return None
    question = f"Who left the {called(view, event.thing, draw)} on the {event.place}"
    ending = "?" if once else " the last time?"
    return Ask(question + ending, event.actor, people(view, event.actor), (event,))


def what_left(view: View, draw: Draw) -> Ask | None:
    """What was left on a spot the last time."""
    event, _ = pick_last(view.of("put"), lambda e: e.place, draw)
    if event is None:
        return None
    things = [f"the {thing}" for thing in unique([name for name, _ in view.world.words.objects])]
    answer = capital([f"the {event.thing}"])[0]
    forms = (
        f"What was left on the {event.place} the last time?",
        f"What was the last thing left on the {event.place}?",
    )
    return Ask(draw.pick(forms), answer, but(capital(things), answer), (event,))


TRAPS: dict[str, tuple[Template, ...]] = {
    "HabitInsight": (how_often,),
    "EntityLog": (who_left, what_left),
}
