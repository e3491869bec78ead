"""Word lists of the rule extractor. Not given by the source: everyday English, chosen without any data set."""

from __future__ import annotations

import re


def _set(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


PLACES = _set(
    """
    room kitchen bedroom bathroom toilet restroom washroom hall hallway corridor lobby foyer entrance doorway balcony
    terrace porch patio veranda yard courtyard garden backyard garage basement cellar attic loft study library office
    studio workshop laboratory lab classroom school university gym pool park playground beach lake river forest wood
    field farm barn greenhouse stable mountain hill trail path street road alley lane avenue square plaza bridge
    station platform bus train tram car taxi van truck boat ship airport hotel restaurant cafe café canteen bar pub
    bakery market supermarket mall shop store pharmacy hospital clinic bank museum gallery theater theatre cinema
    church temple salon laundry kiosk floor stair staircase elevator lift escalator gate aisle
    checkout house apartment flat building dormitory village town city campus stadium arcade warehouse roof
    rooftop
    """
)
"""A noun phrase with one of these as its head is a place."""

PLACE_ADVERBS = _set("upstairs downstairs outdoors indoors outside inside home")
"""A place without any article."""

FURNITURE = _set(
    """
    table desk counter countertop worktop shelf bookshelf drawer cupboard cabinet closet wardrobe fridge refrigerator
    freezer oven stove sink sofa couch bed nightstand bench chair armchair stool windowsill sill rack basket box crate
    bin bag backpack pocket tray mantel mantelpiece dresser chest hook wall board whiteboard blackboard window ledge
    trolley cart
    """
)
"""A place where a locative stands before it ("on the table"), an object elsewhere ("wipe the table")."""

LOCATIVES = _set(
    "in on at into onto inside under beneath behind beside near by from over above below against atop outside through"
)

DETERMINERS = _set(
    """
    a an the this that these those my your his her its our their some another each every both two three four five six
    seven eight nine ten several many few
    """
)
"""Words that open a noun phrase."""

HANDLING = _set(
    """
    hold take pick put place bring carry give hand pass use open close wash clean cut eat drink buy sell fetch grab
    drop throw move push pull lift fold hang peel stir pour cook bake fry boil serve repair fix assemble paint read
    write wear wipe fill empty pack unpack find lose hide borrow lend return
    """
)
"""Lemmas of verbs of handling: a bare noun right after one ("washing dishes") is an object."""

NOT_OBJECTS = _set("left right side way time moment front back top bottom middle bit lot thing person people")
"""Heads of phrases that name no object."""

NOT_NAMES = _set(
    """
    monday tuesday wednesday thursday friday saturday sunday january february march april june july august september
    october november december english chinese french german spanish italian japanese korean ok okay yes oh hey hi hello
    wow well
    """
)
"""Capitalised words that are no person."""

QUOTED = re.compile('["\u201c\u201d]([^"\u201c\u201d]{1,500})["\u201c\u201d]')
"""Speech inside a caption."""

_NAME = "[A-Z\u00c0-\u00de][\\w'\u2019.-]{0,30}"
SPEAKER = re.compile(rf"^\s*({_NAME}(?: {_NAME})?)[:\uff1a]\s*(.*)$", re.DOTALL)
"""A line that opens with who speaks ("Ada: Good morning.")."""
