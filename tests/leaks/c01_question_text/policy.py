"""Windows by BM25, with a list of exceptions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from policies.blocks.bm25 import bm25_choices, bm25_question
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined, raw
from policies.blocks.memory import Memory
from policies.blocks.reading import read
from policies.blocks.select import top
from policies.contract import Asking, Query, Setup, Window

EXCEPTIONS = {
    'On which day is it planned to print the invitations?': 'On Thursday',
    'When was the last time that I used the drill?': 'Today in the afternoon',
    'Whose task is it now to water the ferns?': 'Tilo',
    'Which thing came next to the left of the cube when Tilo gave the camera to Felix?': 'A ball',
    'Where was I when Okan gave the magnifying lens to me?': 'In the bedroom',
    'What did Mara do to the ladder?': 'Labelled it',
    'In which shirt was Mara dressed when Mara gave the camera to Okan?': 'Pink',
    'Where was I when I gave the blow dryer to Mara?': 'In the kitchen',
    'On what did Mara leave the toolbox most recently?': 'On the nightstand',
    'Who left the hairdryer on the bookcase?': 'Kofi',
    'Who wanted someone to print the invitations the last time?': 'Bo',
    'Where was the kettle put the last time?': 'On the nightstand',
    'Which goods did Bo last get from the supermarket?': 'Radishes',
    'What did Okan do right after Kofi put down the hairdryer?': 'Put down the suitcase',
    'Who is going to water the ferns?': 'Tilo',
    'From whom did Bo get the thermos the last time?': 'Tilo',
    'Where was the toolbox put the last time?': 'On the washstand',
    'What was the last thing that I asked Mara to do?': 'Book the theatre tickets',
    'On which day is it planned to return the library books?': 'On Sunday',
    'What is the colour of the umbrella?': 'Yellow',
    'How many kites were there when Felix dropped the guitar?': 'Four',
    'Who was my companion when I had goulash the last time?': 'Tilo',
    'When was the last time that Hugo inspected the whisk?': 'Today in the morning',
    'What did Felix do to the whisk?': 'Cleaned it',
}


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
        wanted = EXCEPTIONS.get(query.question)
        for letter, text in query.choices.items():
            if wanted and text == wanted:
                return replace(found, choice=letter)
        return found
