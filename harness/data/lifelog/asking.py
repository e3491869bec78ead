"""Questions about the world, answered from its events alone, never from what was told of them.

Each template looks at a ``View`` (all events whose telling has ended) and returns an ``Ask`` or None where the
world has nothing to ask about. ``wrong`` are statements that are false in the same sense in which the answer is true.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from harness.data.lifelog.draw import Draw
from harness.data.lifelog.wording import (
    PARTS,
    View,
    age,
    ages,
    but,
    called,
    capital,
    deed,
    deed_key,
    ing,
    past,
    people,
    phrase,
    same_session,
    spots,
    them,
    unique,
)
from harness.data.lifelog.world import DAYPARTS, HANDLINGS, WEARER, WEEKDAYS, Event


@dataclass(frozen=True, slots=True)
class Ask:
    """A question before its choices are drawn. ``oracle`` are the events that decide it."""

    question: str
    answer: str
    wrong: tuple[str, ...]
    oracle: tuple[Event, ...]
    ages: tuple[str, ...] = ()
    """Where choices are points in time: all of them, the newest first."""


Template = Callable[[View, Draw], Ask | None]

ONCE_SHARE = 0.65
"""How often a question is only asked of something that happened once."""


def pick_last(events: Sequence[Event], key: Callable[[Event], object], draw: Draw) -> tuple[Event | None, bool]:
    """The last of all events that are about the same as a random one, and whether it is the only one."""
    if not events:
        return None, False
    chosen = key(draw.pick(events))
    same = [event for event in events if key(event) == chosen]
    return (None, False) if len(same) > 1 and draw.chance(ONCE_SHARE) else (same[-1], len(same) == 1)


def worded(once: bool, draw: Draw, plain: str, last: str) -> str:
    """The plain question where it can only mean one event, else the one that asks for the last."""
    return plain if once and draw.chance(0.5) else last


# ---------------------------------------------------------------- EntityLog: what became of a thing


def where_last(view: View, draw: Draw) -> Ask | None:
    """The spot where an object was put last, by anybody."""
    event, once = pick_last(view.of("put"), lambda e: e.thing, draw)
    if event is None:
        return None
    thing = called(view, event.thing, draw)
    plain, last = f"Where did somebody put the {thing}?", f"Where was the {thing} put the last time?"
    return Ask(worded(once, draw, plain, last), f"On the {event.place}", spots(view, event.place), (event,))


def where_put(view: View, draw: Draw) -> Ask | None:
    """The spot where one person put an object last."""
    event, once = pick_last(view.of("put"), lambda e: (e.actor, e.thing), draw)
    if event is None:
        return None
    thing = called(view, event.thing, draw)
    plain = f"Where did {event.actor} put the {thing}?"
    last = f"On what did {event.actor} leave the {thing} most recently?"
    return Ask(worded(once, draw, plain, last), f"On the {event.place}", spots(view, event.place), (event,))


def who_used(view: View, draw: Draw) -> Ask | None:
    """Who used an object last, or first."""
    event, _ = pick_last(view.of("use"), lambda e: e.thing, draw)
    if event is None:
        return None
    thing, word = called(view, event.thing, draw), "last"
    if draw.chance(0.3):
        event, word = next(e for e in view.of("use") if e.thing == event.thing), "first"
    if event.actor == WEARER:
        return None
    forms = (f"Who used the {thing} {word}?", f"Who was the {word} one to use the {thing}?")
    return Ask(draw.pick(forms), event.actor, people(view, event.actor), (event,))


def what_bought(view: View, draw: Draw) -> Ask | None:
    """What somebody bought at a shop the last time."""
    event, _ = pick_last(view.of("buy"), lambda e: (e.actor, e.place), draw)
    if event is None:
        return None
    forms = (
        f"What did {event.actor} purchase at the {event.place} the last time?",
        f"What did {event.actor} bring back from the {event.place} most recently?",
        f"Which goods did {event.actor} last get from the {event.place}?",
    )
    return Ask(draw.pick(forms), event.thing.capitalize(), capital(but(view.world.words.goods, event.thing)), (event,))


def who_handled(view: View, draw: Draw) -> Ask | None:
    """Who did something to an object the last time."""
    event, once = pick_last(view.of("handle"), lambda e: (e.thing, e.detail), draw)
    if event is None or event.actor == WEARER:
        return None
    thing, verb = called(view, event.thing, draw), past(event.detail, draw.chance(0.7))
    plain, last = f"Who {verb} the {thing}?", f"Who was it that {verb} the {thing} the last time?"
    return Ask(worded(once, draw, plain, last), event.actor, people(view, event.actor), (event,))


# ---------------------------------------------------------------- EventRecall: when, where, what next


def when_last(view: View, draw: Draw) -> Ask | None:
    """When somebody last did something with an object, by day and part of the day."""
    event, _ = pick_last(view.of("handle", "use", "give", "buy"), lambda e: (e.kind, e.actor, e.thing, e.detail), draw)
    if event is None:
        return None
    labels = ages(view)
    answer = age(view, event.slot)
    question = f"When was the last time that {deed(view, event, draw)}?"
    return Ask(question, answer, but(labels, answer), (event,), tuple(labels))


def what_next(view: View, draw: Draw) -> Ask | None:
    """What somebody did in the window after an event that happened once."""
    simple = view.of("handle", "use", "put", "give", "buy")
    pairs = [(a, b) for a, b in itertools.pairwise(simple) if b.slot == a.last + 1 and same_session(view, a, b)]
    if not pairs:
        return None
    before, event = draw.pick(pairs)
    if sum(1 for e in simple if deed_key(e) == deed_key(before)) > 1:
        return None
    near = range(before.slot - 2, before.slot + 6)
    others = [e for e in simple if e.actor == event.actor and e.slot not in near and deed_key(e) != deed_key(event)]
    wrong = unique([phrase(view, e) for e in draw.shuffled(others)])
    question = f"What did {event.actor} do right after {deed(view, before, draw)}?"
    return Ask(question, phrase(view, event), but(wrong, phrase(view, event)), (before, event))


def what_done(view: View, draw: Draw) -> Ask | None:
    """What somebody did to an object the last time."""
    event, once = pick_last(view.of("handle"), lambda e: (e.actor, e.thing), draw)
    if event is None:
        return None
    thing = called(view, event.thing, draw)
    who = event.actor
    plain, last = f"What did {who} do to the {thing}?", f"What was the last thing that {who} did to the {thing}?"
    done = [f"{past(handling, True).capitalize()} it" for handling in HANDLINGS]
    answer = f"{past(event.detail, True).capitalize()} it"
    return Ask(worded(once, draw, plain, last), answer, but(done, answer), (event,))


def which_room(view: View, draw: Draw) -> Ask | None:
    """The room in which the wearer was when something happened that happened once."""
    events = view.of("handle", "use", "put", "give", "joint")
    if not events:
        return None
    event = draw.pick(events)
    enters = [e for e in view.of("enter") if e.slot <= event.slot]
    known = sum(1 for e in events if deed_key(e) == deed_key(event))
    if known > 1 or not enters or event.slot - enters[-1].slot > 3:
        return None
    room = enters[-1].thing
    wrong = but(view.world.words.rooms, room)
    forms = (f"Which room was I in when {deed(view, event, draw)}?", f"Where was I when {deed(view, event, draw)}?")
    return Ask(draw.pick(forms), f"In the {room}", tuple(f"In the {w}" for w in wrong), (enters[-1], event))


# ---------------------------------------------------------------- HabitInsight: what happens again and again


def usual(events: Sequence[Event], value: Callable[[Event], str]) -> str | None:
    """The most frequent value: at least three times, and two more than any other."""
    counts: dict[str, int] = {}
    for event in events:
        counts[value(event)] = counts.get(value(event), 0) + 1
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    if not ranked or ranked[0][1] < 3 or (len(ranked) > 1 and ranked[0][1] - ranked[1][1] < 2):
        return None
    return ranked[0][0]


def usual_drink(view: View, draw: Draw) -> Ask | None:
    """What a person drinks most often."""
    who = draw.pick(view.world.people)
    events = [e for e in view.of("drink") if e.actor == who]
    drink = usual(events, lambda e: e.thing)
    if drink is None:
        return None
    forms = (
        f"What does {who} usually drink?",
        f"What is {who}'s favourite drink?",
        f"What does {who} drink most often?",
    )
    wrong = capital(but(view.world.words.drinks, drink))
    return Ask(draw.pick(forms), drink.capitalize(), wrong, tuple(e for e in events if e.thing == drink))


def usual_doer(view: View, draw: Draw) -> Ask | None:
    """Who most often has a pastime."""
    pastime = draw.pick(view.world.words.pastimes)[0]
    events = [e for e in view.of("pastime") if e.thing == pastime]
    who = usual(events, lambda e: e.actor)
    if who is None:
        return None
    form = ing(view, pastime)
    forms = (f"Who is usually {form}?", f"Who spends time {form} most often?", f"Whose habit is {form}?")
    return Ask(draw.pick(forms), who, people(view, who), tuple(e for e in events if e.actor == who))


def usual_spot(view: View, draw: Draw) -> Ask | None:
    """Where a person is most often during a pastime of any kind."""
    who = draw.pick(view.world.people)
    events = [e for e in view.of("pastime") if e.actor == who]
    spot = usual(events, lambda e: e.place)
    if spot is None:
        return None
    forms = (f"By what does {who} usually spend free time?", f"Where does {who} usually go for a pastime?")
    wrong = tuple(f"By the {place}" for place in but(view.world.words.spots, spot))
    return Ask(draw.pick(forms), f"By the {spot}", wrong, tuple(e for e in events if e.place == spot))


def usual_part(view: View, draw: Draw) -> Ask | None:
    """In what part of the day a person has a pastime."""
    who = draw.pick(view.world.people)
    events = [e for e in view.of("pastime") if e.actor == who]
    things = unique([e.thing for e in events])
    if not things:
        return None
    thing = draw.pick(things)
    events = [e for e in events if e.thing == thing]
    part = usual(events, lambda e: view.world.slots[e.slot].part)
    if part is None:
        return None
    question = f"At what time of day is {who} usually {ing(view, thing)}?"
    names = [PARTS[other] for other in DAYPARTS]
    hits = tuple(e for e in events if view.world.slots[e.slot].part == part)
    return Ask(question, PARTS[part], but(names, PARTS[part]), hits)


# ---------------------------------------------------------------- RelationMap: who with whom


def gave_to(view: View, draw: Draw) -> Ask | None:
    """Who got an object from somebody the last time."""
    event, once = pick_last(view.of("give"), lambda e: (e.actor, e.thing), draw)
    if event is None or event.others[0] == WEARER:
        return None
    thing, who = called(view, event.thing, draw), event.actor
    plain, last = f"Who did {who} give the {thing} to?", f"Who received the {thing} from {them(who)} the last time?"
    return Ask(worded(once, draw, plain, last), event.others[0], people(view, who, event.others[0]), (event,))


def gave_from(view: View, draw: Draw) -> Ask | None:
    """Who gave an object to somebody the last time."""
    event, once = pick_last(view.of("give"), lambda e: (e.others, e.thing), draw)
    if event is None or event.actor == WEARER:
        return None
    thing, whom = called(view, event.thing, draw), them(event.others[0])
    plain = f"Who gave the {thing} to {whom}?"
    last = f"From whom did {event.others[0]} get the {thing} the last time?"
    return Ask(worded(once, draw, plain, last), event.actor, people(view, event.actor, event.others[0]), (event,))


def meal_with(view: View, draw: Draw) -> Ask | None:
    """Who sat at the table with the wearer when a dish was eaten the last time."""
    event, once = pick_last(view.of("meal"), lambda e: e.thing, draw)
    if event is None:
        return None
    dish, companion = event.thing, draw.pick(event.others)
    plain, last = f"Who ate {dish} with me?", f"Who was my companion when I had {dish} the last time?"
    return Ask(worded(once, draw, plain, last), companion, people(view, *event.others), (event,))


def helper(view: View, draw: Draw) -> Ask | None:
    """Who helped somebody with an object the last time."""
    event, once = pick_last(view.of("joint"), lambda e: (e.actor, e.thing), draw)
    if event is None:
        return None
    thing, who, verb = called(view, event.thing, draw), event.actor, past(event.detail, draw.chance(0.7))
    once = once and not any(e.thing == event.thing and e.others == (who,) for e in view.of("joint"))
    plain = f"Who {verb} the {thing} together with {them(who)}?"
    last = f"Who helped {them(who)} with the {thing} the last time?"
    return Ask(worded(once, draw, plain, last), event.others[0], people(view, who, event.others[0]), (event,))


# ---------------------------------------------------------------- TaskMaster: what is to be done


def asked_to(view: View, draw: Draw) -> Ask | None:
    """What one person asked another to do the last time."""
    event, once = pick_last(view.of("ask"), lambda e: (e.actor, e.others), draw)
    if event is None:
        return None
    who, whom = event.actor, them(event.others[0])
    plain, last = f"What did {who} want {whom} to do?", f"What was the last thing that {who} asked {whom} to do?"
    wrong = capital(but(view.world.words.tasks, event.thing))
    return Ask(worded(once, draw, plain, last), capital([event.thing])[0], wrong, (event,))


def due(view: View, draw: Draw) -> Ask | None:
    """The day for which a task is planned now."""
    event, _ = pick_last(view.of("ask", "move"), lambda e: e.thing, draw)
    if event is None:
        return None
    forms = (f"On which day is it planned to {event.thing}?", f"When will somebody {event.thing}?")
    return Ask(draw.pick(forms), f"On {event.detail}", tuple(f"On {d}" for d in but(WEEKDAYS, event.detail)), (event,))


def responsible(view: View, draw: Draw) -> Ask | None:
    """Who has to do a task now."""
    event, _ = pick_last(view.of("ask", "takeover"), lambda e: e.thing, draw)
    if event is None:
        return None
    who = event.others[0] if event.kind == "ask" else event.actor
    if who == WEARER:
        return None
    forms = (f"Who is going to {event.thing}?", f"Whose task is it now to {event.thing}?")
    return Ask(draw.pick(forms), who, people(view, who), (event,))


def asker(view: View, draw: Draw) -> Ask | None:
    """Who asked for a task to be done the last time."""
    event, once = pick_last(view.of("ask"), lambda e: e.thing, draw)
    if event is None or event.actor == WEARER:
        return None
    plain, last = f"Who asked somebody to {event.thing}?", f"Who wanted someone to {event.thing} the last time?"
    return Ask(worded(once, draw, plain, last), event.actor, people(view, event.actor), (event,))


TEMPLATES: dict[str, tuple[Template, ...]] = {
    "EntityLog": (where_last, where_put, who_used, what_bought, who_handled),
    "EventRecall": (when_last, what_next, what_done, which_room),
    "HabitInsight": (usual_drink, usual_doer, usual_spot, usual_part),
    "RelationMap": (gave_to, gave_from, meal_with, helper),
    "TaskMaster": (asked_to, due, responsible, asker),
}
