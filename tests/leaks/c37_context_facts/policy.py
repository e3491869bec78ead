"""Windows by BM25, with background."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window

BACKGROUND = SEPARATOR.join(
    (
        'On which day is it planned to print the invitations On Thursday.',
        'Who inspected the kettle Felix.',
        'When was the last time that I used the drill Today in the afternoon.',
        'What hung under the wheel when Bo put down the toolbox A cone.',
        'Whose task is it now to water the ferns Tilo.',
        'Who was the last one to use the kettle Okan.',
        'Which thing came next to the left of the cube when Tilo gave the camera to Felix A ball.',
        'Who ate dumplings with me Felix.',
        'Where was I when Okan gave the magnifying lens to me In the bedroom.',
        'Where did Bo put the thermos On the washstand.',
        'What did Mara do to the ladder Labelled it.',
        'Who wanted someone to sharpen the knives the last time Okan.',
        'In which shirt was Mara dressed when Mara gave the camera to Okan Pink.',
        'Who helped Okan with the radio the last time Tilo.',
        'Where was I when I gave the blow dryer to Mara In the kitchen.',
        'Who gave the ladder to Okan Tilo.',
        'On what did Mara leave the toolbox most recently On the nightstand.',
        'Who did Felix give the camera to Bo.',
        'Who left the hairdryer on the bookcase Kofi.',
        'Who spends time whittling most often Bo.',
        'Who wanted someone to print the invitations the last time Bo.',
        "What is Bo's favourite drink Cocoa.",
        'Where was the kettle put the last time On the nightstand.',
        'At what time of day is Bo usually whittling Around noon.',
        'Which goods did Bo last get from the supermarket Radishes.',
        'What was the last thing that Bo asked me to do Book the theatre tickets.',
        'What did Okan do right after Kofi put down the hairdryer Put down the suitcase.',
        'Who received the kettle from me the last time Mara.',
        'Who is going to water the ferns Tilo.',
        'At what time of day is Bo usually whittling Around noon.',
    )
)


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
        context = BACKGROUND + SEPARATOR + asked_at(query) + SEPARATOR + joined(items)
        return (yield from read(query, context, "windows", evidence))
