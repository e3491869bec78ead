"""The simulated world of one wearer: who is where, what happens in which window. No text is made here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.data.lifelog.draw import Draw
from harness.data.lifelog.vocabulary import Vocabulary

WEARER = "I"
DAY = 86_400
WINDOW = 30
DAYPARTS = ("morning", "noon", "afternoon", "evening")
SESSION_STARTS = {
    "morning": 8 * 3600,
    "noon": 11 * 3600 + 900,
    "afternoon": 14 * 3600 + 900,
    "evening": 18 * 3600 + 900,
}
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HANDLINGS = ("clean", "repair", "drop", "label", "weigh", "wrap", "inspect", "photograph")
JOINT = ("carry", "set up", "take apart", "look for")

WEIGHTS = {
    "put": 15.0,
    "use": 11.0,
    "give": 11.0,
    "buy": 8.0,
    "handle": 13.0,
    "joint": 7.0,
    "meal": 4.0,
    "drink": 11.0,
    "pastime": 12.0,
    "ask": 7.0,
    "move": 4.0,
    "takeover": 3.0,
}
"""How often each kind of event begins."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, told in ``slots`` consecutive windows from ``slot`` on."""

    slot: int
    slots: int
    kind: str
    """``enter`` or a key of ``WEIGHTS``."""
    actor: str
    """A person's name, or ``WEARER``."""
    thing: str = ""
    """Object, goods, dish, drink, pastime or task; for ``enter`` the room."""
    others: tuple[str, ...] = ()
    """Receiver, helper, companions, who was asked, who was relieved."""
    place: str = ""
    """Spot or shop."""
    detail: str = ""
    """What was done to the object, or the weekday."""

    @property
    def last(self) -> int:
        """The last window that tells of it."""
        return self.slot + self.slots - 1


@dataclass(frozen=True, slots=True)
class Slot:
    """One window of the stream, in seconds, and who is there."""

    start: int
    end: int
    day: int
    part: str
    session: int
    present: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class World:
    """Everything that is true in one stream."""

    wearer: str
    people: tuple[str, ...]
    words: Vocabulary
    slots: tuple[Slot, ...]
    events: tuple[Event, ...]


def simulate(words: Vocabulary, wearer: str, people: Sequence[str], draw: Draw, days: int, session: int) -> World:
    """Live through ``days`` days of four recorded sessions of about ``session`` windows each."""
    slots = skeleton(people, draw, days, session)
    habits = Habits(words, people, draw)
    events: list[Event] = []
    duties: dict[str, tuple[str, str]] = {}
    free = 0
    for number, slot in enumerate(slots):
        first = number == 0 or slots[number - 1].session != slot.session
        if first or draw.chance(0.1):
            events.append(Event(number, 1, "enter", WEARER, draw.pick(words.rooms)))
        if number < free or not draw.chance(0.75):
            continue
        left = 1
        while left < 3 and number + left < len(slots) and slots[number + left].session == slot.session:
            left += 1
        event = happen(number, slot, left, words, habits, duties, draw)
        if event is not None:
            events.append(event)
            free = number + event.slots
    return World(wearer, tuple(people), words, slots, tuple(events))


def skeleton(people: Sequence[str], draw: Draw, days: int, session: int) -> tuple[Slot, ...]:
    """The windows of all sessions; in each, four of the seven people are there."""
    slots: list[Slot] = []
    for day in range(days):
        for order, part in enumerate(DAYPARTS):
            time = day * DAY + SESSION_STARTS[part] + 60 * draw.integer(0, 40)
            present = tuple(draw.sample(people, 4))
            for _ in range(session + draw.integer(-6, 6)):
                slots.append(Slot(time, time + WINDOW, day, part, day * len(DAYPARTS) + order, present))
                time += WINDOW
    return tuple(slots)


class Habits:
    """What each person likes; dealt out so that nothing is liked more often than anything else."""

    def __init__(self, words: Vocabulary, people: Sequence[str], draw: Draw) -> None:
        pastimes = [base for base, _, _ in words.pastimes]
        self.drink = dict(zip(people, draw.shuffled(words.drinks), strict=True))
        self.pastime = dict(zip(people, draw.shuffled(pastimes), strict=True))
        self.spot = dict(zip(people, draw.sample(words.spots, len(people)), strict=True))
        self.part = dict(zip(people, draw.shuffled([*DAYPARTS, *DAYPARTS])[: len(people)], strict=True))


def happen(
    number: int,
    slot: Slot,
    left: int,
    words: Vocabulary,
    habits: Habits,
    duties: dict[str, tuple[str, str]],
    draw: Draw,
) -> Event | None:
    """What begins in this window, or None. ``duties`` holds who has to do a task, and on which day."""
    kind = draw.weighted(tuple(WEIGHTS), tuple(WEIGHTS.values()))
    actor = WEARER if draw.chance(0.15) else draw.pick(slot.present)
    others = tuple(draw.sample([person for person in slot.present if person != actor], 2))
    thing = draw.pick(words.objects)[0]
    spot = draw.pick(words.spots)
    if kind == "put":
        return Event(number, 2 if left > 1 and draw.chance(0.25) else 1, kind, actor, thing, place=spot)
    if kind == "use":
        return Event(number, 1, kind, actor, thing)
    if kind == "give":
        receiver = WEARER if actor != WEARER and draw.chance(0.2) else others[0]
        return Event(number, 2 if left > 1 and draw.chance(0.3) else 1, kind, actor, thing, (receiver,))
    if kind == "buy":
        goods, shop = draw.pick(words.goods), draw.pick(words.shops)
        return Event(number, 2 if left > 1 and draw.chance(0.25) else 1, kind, actor, goods, place=shop)
    if kind == "handle":
        return Event(number, 1, kind, actor, thing, detail=draw.pick(HANDLINGS))
    if kind == "joint":
        return Event(number, 1, kind, actor, thing, others[:1], detail=draw.pick(JOINT))
    if kind == "meal":
        slots = 2 if left > 1 and draw.chance(0.5) else 1
        return Event(number, slots, kind, WEARER, draw.pick(words.dishes), others)
    if kind in ("drink", "pastime"):
        return habit(number, slot, kind, words, habits, draw)
    return duty(number, kind, actor, others, slot, words, duties, draw)


def habit(number: int, slot: Slot, kind: str, words: Vocabulary, habits: Habits, draw: Draw) -> Event:
    """Something that people do again and again: six times in ten what they usually do."""
    actor = draw.pick(slot.present)
    if kind == "drink":
        drink = habits.drink[actor] if draw.chance(0.55) else draw.pick(words.drinks)
        return Event(number, 1, kind, actor, drink)
    actor = draw.weighted(slot.present, [3.0 if habits.part[person] == slot.part else 1.0 for person in slot.present])
    pastime = habits.pastime[actor] if draw.chance(0.6) else draw.pick(words.pastimes)[0]
    spot = habits.spot[actor] if draw.chance(0.6) else draw.pick(words.spots)
    return Event(number, 1, kind, actor, pastime, place=spot)


def duty(
    number: int,
    kind: str,
    actor: str,
    others: Sequence[str],
    slot: Slot,
    words: Vocabulary,
    duties: dict[str, tuple[str, str]],
    draw: Draw,
) -> Event | None:
    """Somebody is asked to do a task on some day; the day is changed; somebody else takes it over."""
    if kind == "ask":
        asked = WEARER if actor != WEARER and draw.chance(0.4) else others[0]
        task, day = draw.pick(words.tasks), draw.pick(WEEKDAYS)
        duties[task] = (asked, day)
        return Event(number, 1, kind, actor, task, (asked,), detail=day)
    known = [task for task, (person, _) in duties.items() if person == WEARER or person in slot.present]
    if not known:
        return None
    task = draw.pick(known)
    person, day = duties[task]
    if kind == "move":
        day = draw.pick([other for other in WEEKDAYS if other != day])
        duties[task] = (person, day)
        return Event(number, 1, kind, person, task, detail=day)
    new = draw.pick([other for other in slot.present if other != person])
    duties[task] = (new, day)
    return Event(number, 1, kind, new, task, (person,))
