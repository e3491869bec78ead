"""Structured event memory: one record of five fields per window, indexed field by field.

DIALOGUE is shown with its speakers and indexed without: who speaks is evidence of PEOPLE, what is said of DIALOGUE.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from policies.blocks.extract import FIELDS, Line, read_line
from policies.blocks.lexicon import SPEAKER
from policies.blocks.memory import Memory
from policies.blocks.postings import Bools, Floats, Postings
from policies.blocks.tokens import content, words
from policies.contract import Window

_CACHED_LINES = 32_768
_SIGHTINGS = 2
"""Windows in which a capitalised word must stand to count as a name. Not given by the source: once may be chance."""


@dataclass(frozen=True, slots=True)
class Record:
    """One window rewritten. An absent field is an empty string (for ``people``: an empty tuple)."""

    event: str
    people: tuple[str, ...]
    """Speakers and capitalised words, as written; which of them are names, ``EventMemory`` tells."""
    objects: str
    place: str
    dialogue: str


class EventMemory(Memory):
    """Raw memory and, for window i, record i. Everything learnt (names, counts) comes from the windows observed."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[Record] = []
        self.fields = {field: Postings() for field in FIELDS}
        self.phrases: dict[str, list[str]] = {field: [] for field in FIELDS}
        """Per field and record, its words in order, for matching exact phrases; see ``phrase``."""
        self._speakers: set[str] = set()
        self._named: Counter[str] = Counter()
        self._plain: Counter[str] = Counter()
        self._read = lru_cache(maxsize=_CACHED_LINES)(read_line)

    def observe(self, windows: Sequence[Window], records: Sequence[Record | None] = ()) -> None:
        """Take in the next windows: raw text, records, indexes.

        ``records`` are a builder's, one for each window, in whose ``dialogue`` each turn is a line; where there is
        none, the rule extractor makes it.
        """
        super().observe(windows)
        for at, window in enumerate(windows):
            lines = [self._read(caption) for caption in window.captions]
            self._learn(window, lines)
            built = records[at] if records else None
            if built is None:
                spoken = _spoken(window, lines)
                record, said = _record(lines, spoken), " ".join(text for _, text in spoken)
            else:
                record, said = built, _said(built.dialogue)
                self._speakers.update(word for name in _capitalised(built.people) for word in content(name))
            self.records.append(record)
            texts = (record.event, ", ".join(record.people), record.objects, record.place, said)
            for field, text in zip(FIELDS, texts, strict=True):
                self.fields[field].add(dict.fromkeys(content(text), 1))
                self.phrases[field].append(phrase(text))

    def is_name(self, term: str) -> bool:
        """Whether a casefolded word is a person's name, by what was seen so far: a speaker, or mostly capitalised."""
        return term in self._speakers or self._named[term] >= max(_SIGHTINGS, self._plain[term] + 1)

    def people(self, position: int) -> list[str]:
        """Names in record ``position``."""
        return [name for name in self.records[position].people if any(map(self.is_name, words(name)))]

    def overlap(self, field: str, terms: Iterable[str]) -> Floats:
        """|terms and T(field)| for every record, shape (n,); in PEOPLE only names count."""
        if field == "PEOPLE":
            terms = [term for term in terms if self.is_name(term)]
        return self.fields[field].overlap(terms)

    def holds(self, terms: Iterable[str], fields: Sequence[str] = FIELDS) -> Bools:
        """Whether any of ``terms`` stands in any of ``fields`` of a record, shape (n,)."""
        terms = tuple(terms)
        return np.asarray(np.any([self.overlap(field, terms) > 0 for field in fields], axis=0))

    def _learn(self, window: Window, lines: list[Line]) -> None:
        self._speakers.update(word for line in window.transcript for word in content(line.speaker))
        self._named.update({name.casefold() for line in lines for name in line.named})
        self._plain.update({word for line in lines for word in line.plain})


def phrase(text: str) -> str:
    """Words of ``text`` between single spaces, articles left out: the form in which phrases are compared."""
    return f" {' '.join(word for word in words(text) if word not in ('a', 'an', 'the'))} "


def _spoken(window: Window, lines: list[Line]) -> list[tuple[str, str]]:
    """(speaker, text) of the transcript, then of speech inside captions."""
    heard = [(line.speaker, line.text) for line in window.transcript]
    return heard + [(line.speaker, speech) for line in lines for speech in line.speech]


def _record(lines: list[Line], spoken: list[tuple[str, str]]) -> Record:
    return Record(
        event=" ".join(_unique(line.event for line in lines)),
        people=_unique([*(name for name, _ in spoken), *(name for line in lines for name in line.named)]),
        objects=", ".join(_unique(thing for line in lines for thing in line.objects)),
        place=", ".join(_unique(place for line in lines for place in line.places)),
        dialogue=" ".join(f"{speaker}: {text}" if speaker else text for speaker, text in spoken),
    )


def _said(dialogue: str) -> str:
    """The turns of a dialogue without their speakers."""
    turns = (SPEAKER.match(turn) or turn for turn in dialogue.splitlines())
    return " ".join(turn if isinstance(turn, str) else turn[2] for turn in turns)


def _capitalised(people: Iterable[str]) -> Iterable[str]:
    return (part for name in people for part in name.split() if part[0].isupper())


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for text in texts if text))
