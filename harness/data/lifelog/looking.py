"""Questions that only frames can answer: colours, numbers and positions, which no caption names.

Each template returns an ``Ask`` or None, like those of ``asking``. Answers are the scenes' state. All choices of a
question are as likely as each other before the frame is seen: colours and kinds of items are drawn evenly, and for a
number the one that is to be the answer is drawn first. Some wordings ask for what can be seen without any of the words
by which a rule over wordings would know it.
"""

from __future__ import annotations

from collections.abc import Callable

from harness.data.lifelog.asking import Ask
from harness.data.lifelog.draw import Draw
from harness.data.lifelog.palette import COLOURS, COLUMNS, ROWS, SHAPES
from harness.data.lifelog.scenes import HELD, Item, Scene, Scenes
from harness.data.lifelog.wording import View, but, clause
from harness.data.lifelog.world import WEARER, Event

NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five"}
LOOKING_NAMES = frozenset({"blue", "chrome", "pewter", "striped", "silver", "wooden", "brass"})
"""Words in a thing's other name that say what it looks like: such a thing is not asked about, whatever is painted."""

COUNT_TRIES = 100
"""Events looked at for one with the number drawn: fewer would make high numbers rare."""

Look = Callable[[View, Scenes, Draw], Ask | None]


def shown(view: View, scenes: Scenes, draw: Draw) -> tuple[Event, Scene] | None:
    """An event that can be named by who and what, since the two came together only once, with its scene."""
    held = view.of(*HELD)
    event = draw.pick(held) if held else None
    if (
        event is None
        or event.kind == "joint"
        or sum((e.actor, e.thing) == (event.actor, event.thing) for e in held) > 1
    ):
        return None
    seen = [scenes[slot] for slot in range(event.slot, event.last + 1)]
    scene = seen[0]
    return None if scene is None or None in seen else (event, scene)


def when(view: View, event: Event) -> str:
    """The event as a clause, the thing by its first name."""
    return f"when {event.actor} {clause(view, event, event.thing)}"


def thing_colour(view: View, scenes: Scenes, draw: Draw) -> Ask | None:
    """The colour of a thing that was in hands; it is always the same."""
    looking = [thing for thing, other in view.world.words.objects if not LOOKING_NAMES & set(other.split())]
    thing = draw.pick(looking)
    found = [(e, scene) for e in view.of(*HELD) if e.thing == thing and (scene := scenes[e.slot]) is not None]
    if not found:
        return None
    forms = (f"What colour is the {thing}?", f"What is the colour of the {thing}?", f"What does the {thing} look like?")
    return colours(draw.pick(forms), found[0][1].thing_colour, *(event for event, _ in found))


def shirt_colour(view: View, scenes: Scenes, draw: Draw) -> Ask | None:
    """The colour of the shirt that somebody wore."""
    found = shown(view, scenes, draw)
    if found is None or found[0].actor == WEARER:
        return None
    event, scene = found
    forms = (
        f"What colour was the shirt that {event.actor} was wearing {when(view, event)}?",
        f"Which shirt was {event.actor} wearing {when(view, event)}?",
        f"In which shirt was {event.actor} dressed {when(view, event)}?",
    )
    return colours(draw.pick(forms), scene.shirt, event)


def item_colour(view: View, scenes: Scenes, draw: Draw) -> Ask | None:
    """The colour of the only item of its kind."""
    found = shown(view, scenes, draw)
    if found is None:
        return None
    event, scene = found
    alone = lone(scene)
    if not alone:
        return None
    item = draw.pick(alone)
    forms = (
        f"What colour was the {item.kind} {when(view, event)}?",
        f"Which colour did the {item.kind} on the wall have {when(view, event)}?",
    )
    return colours(draw.pick(forms), item.colour, event)


def item_count(view: View, scenes: Scenes, draw: Draw) -> Ask | None:
    """How many items of a kind there were."""
    number = draw.pick(tuple(NUMBERS))
    for _ in range(COUNT_TRIES):
        found = shown(view, scenes, draw)
        kinds = [kind for kind in SHAPES if found is not None and len(found[1].of(kind)) == number]
        if found is not None and kinds:
            break
    else:
        return None
    event = found[0]
    kind = draw.pick(kinds)
    forms = (
        f"How many {kind}s were there {when(view, event)}?",
        f"How many {kind}s were visible {when(view, event)}?",
        f"What was the number of {kind}s on the wall {when(view, event)}?",
    )
    wrong = but(tuple(NUMBERS.values()), NUMBERS[number])
    return Ask(draw.pick(forms), NUMBERS[number], wrong, (event,))


def beside(view: View, scenes: Scenes, draw: Draw) -> Ask | None:
    """What hung next to the only item of its kind, at the left or the right."""
    side = draw.pick(("left", "right"))

    def nearest(scene: Scene, item: Item) -> Item | None:
        columns = range(item.column - 1, -1, -1) if side == "left" else range(item.column + 1, COLUMNS)
        return next((other for column in columns if (other := scene.at(item.row, column)) is not None), None)

    forms = ("What was directly to the {side} of the {kind}", "Which thing came next to the {side} of the {kind}")
    return placed(view, scenes, draw, nearest, [form.replace("{side}", side) for form in forms])


def over(view: View, scenes: Scenes, draw: Draw) -> Ask | None:
    """What hung above or below the only item of its kind."""
    row = draw.integer(0, ROWS - 1)

    def facing(scene: Scene, item: Item) -> Item | None:
        return scene.at(row, item.column) if item.row != row else None

    forms = (
        ("What was above the {kind}", "What hung over the {kind}"),
        ("What was below the {kind}", "What hung under the {kind}"),
    )
    return placed(view, scenes, draw, facing, forms[row])


LOOKS: dict[str, tuple[tuple[Look, int], ...]] = {
    "EntityLog": ((thing_colour, 4), (shirt_colour, 5)),
    "EventRecall": ((item_colour, 5), (item_count, 5), (beside, 3), (over, 3)),
}
"""By type label: templates, and how many questions of each a stream has."""


def lone(scene: Scene) -> list[Item]:
    """Items that are the only one of their kind."""
    return [item for item in scene.items if len(scene.of(item.kind)) == 1]


def colours(question: str, answer: str, *events: Event) -> Ask:
    """A question for a colour."""
    return Ask(question, answer.capitalize(), tuple(c.capitalize() for c in COLOURS if c != answer), events)


def placed(
    view: View,
    scenes: Scenes,
    draw: Draw,
    neighbour: Callable[[Scene, Item], Item | None],
    forms: list[str] | tuple[str, ...],
) -> Ask | None:
    """A question for the kind of what stands next to a lone item; the choices are all other kinds."""
    found = shown(view, scenes, draw)
    if found is None:
        return None
    event, scene = found
    pairs = [(item, other) for item in lone(scene) if (other := neighbour(scene, item)) is not None]
    if not pairs:
        return None
    item, other = draw.pick(pairs)
    kinds = [f"A {kind}" for kind in SHAPES if kind != item.kind]
    question = f"{draw.pick(forms).replace('{kind}', item.kind)} {when(view, event)}?"
    return Ask(question, f"A {other.kind}", but(kinds, f"A {other.kind}"), (event,))
