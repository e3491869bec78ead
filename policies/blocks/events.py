"""Structured event memory: one record of five fields per window, indexed field by field.

DIALOGUE is shown with its speakers and indexed without: who speaks is evidence of PEOPLE, what is said of DIALOGUE.
Records are kept as text in one buffer and made anew when asked for; everything learnt (names, counts) comes from the
windows observed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from policies.blocks.extract import FIELDS, Line, read_line
from policies.blocks.lexicon import SPEAKER
from policies.blocks.memory import Memory
from policies.blocks.postings import Bools, FieldPostings, Floats
from policies.blocks.store import Texts
from policies.blocks.tokens import content, words
from policies.blocks.words import ARTICLES, Word, split
from policies.contract import Window

_CACHED_LINES = 16_384
_SIGHTINGS = 2
"""Windows in which a capitalised word must stand to count as a name. Not given by the source: once may be chance."""
_LOOKED_AT = 32
"""Records among which a phrase is looked for without narrowing them down first."""
_BITS = {field: 1 << number for number, field in enumerate(FIELDS)}
_ALL = (1 << len(FIELDS)) - 1


@dataclass(frozen=True, slots=True)
class Record:
    """One window rewritten. An absent field is an empty string (for ``people``: an empty tuple)."""

    event: str
    people: tuple[str, ...]
    """Speakers and capitalised words, as written; which of them are names, ``EventMemory`` tells."""
    objects: str
    place: str
    dialogue: str


class Records(Sequence[Record]):
    """The records of all windows; each text as one line."""

    def __init__(self) -> None:
        self._texts = Texts()

    def append(self, record: Record) -> None:
        """Keep the next record."""
        people = "\t".join(map(_line, record.people))
        texts = (record.event, people, record.objects, record.place, record.dialogue)
        self._texts.append("\n".join([people if text is people else _line(text) for text in texts]))

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, at: int) -> Record: ...
    @overload
    def __getitem__(self, at: slice) -> list[Record]: ...
    def __getitem__(self, at: int | slice) -> Record | list[Record]:
        if isinstance(at, slice):
            return [self[position] for position in range(*at.indices(len(self)))]
        if at < 0:
            at += len(self)
        event, people, objects, place, dialogue = self._texts[at].split("\n")
        return Record(event, tuple(people.split("\t")) if people else (), objects, place, dialogue)


class EventMemory(Memory):
    """Raw memory and, for window i, record i."""

    def __init__(self) -> None:
        super().__init__()
        self.records = Records()
        self._fields = FieldPostings()
        self._spelled = Texts()
        """Per record, the words of its fields in order, a line for each field, for matching exact phrases."""
        self._speakers: set[str] = set()
        self._named: Counter[str] = Counter()
        self._plain: Counter[str] = Counter()
        self._read = lru_cache(maxsize=_CACHED_LINES)(read_line)

    def observe(self, windows: Sequence[Window], records: Sequence[Record | None] = ()) -> None:
        """Take in the next windows: raw text, records, indexes.

        ``records`` are a builder's, one for each window, in whose ``dialogue`` each turn is a line; where there is
        none, the rule extractor makes it.
        """
        for at, window in enumerate(windows):
            lines = [self._read(caption) for caption in window.captions]
            turns = [(line.speaker, line.text, split(line.text)) for line in window.transcript]
            turns += [(line.speaker, speech, split(speech)) for line in lines for speech in line.speech]
            self.windows.append(window)
            self.text.add(_counts(lines, turns))
            self._learn(window, lines)
            built = records[at] if records else None
            if built is None:
                self._take(lines, turns)
            else:
                self._take_built(built)

    def is_name(self, term: str) -> bool:
        """Whether a casefolded word is a person's name, by what was seen so far: a speaker, or mostly capitalised."""
        named = self._named.get(term, 0)
        return term in self._speakers or (named >= _SIGHTINGS and named > self._plain.get(term, 0))

    def people(self, position: int) -> list[str]:
        """Names in record ``position``."""
        return self.names(self.records[position])

    def names(self, record: Record) -> list[str]:
        """Names in a record."""
        return [name for name in record.people if any(map(self.is_name, _words(name)))]

    def overlap(self, field: str, terms: Iterable[str]) -> Floats:
        """|terms and T(field)| for every record, shape (n,); in PEOPLE only names count."""
        return self.weighed(terms, {field: 1.0})

    def weighed(self, terms: Iterable[str], weights: Mapping[str, float]) -> Floats:
        """Overlap of the distinct ``terms`` with each field, weighed and added up, shape (n,); names as above."""
        scores = np.zeros(len(self), np.float32)
        self.weigh(terms, weights, scores)
        return scores

    def weigh(self, terms: Iterable[str], weights: Mapping[str, float], scores: Floats) -> None:
        """The same, added to ``scores``."""
        of_mask = _of_mask(tuple(weights.items()))
        for term in dict.fromkeys(terms):
            positions, masks = self._fields.get(term)
            if len(positions):
                np.add.at(scores, positions, of_mask[int(self.is_name(term))][masks])

    def holds(self, terms: Iterable[str], fields: Sequence[str] = FIELDS) -> Bools:
        """Whether any of ``terms`` stands in any of ``fields`` of a record, shape (n,)."""
        held = np.zeros(len(self), np.bool_)
        for term in terms:
            positions, masks = self._fields.get(term)
            held[positions[(masks & self._fields_of(term, fields)) > 0]] = True
        return held

    def with_phrase(self, text: str) -> list[int]:
        """Records of which one field holds the words of ``text`` in a row, articles left out; see ``phrase``."""
        wanted = sorted(content(text), key=self._fields.frequency)
        if not wanted:
            return []
        positions, together = self._fields.get(wanted[0])
        for term in wanted[1:]:  # the rarest first, until so few are left that looking is cheaper
            if len(positions) <= _LOOKED_AT:
                break
            there, masks = self._fields.get(term)
            of_record = np.zeros(len(self), np.uint8)
            of_record[there] = masks
            together = together & of_record[positions]
            positions, together = positions[together > 0], together[together > 0]
        return self._spelled.holding(positions.tolist(), phrase(text))

    def _fields_of(self, term: str, fields: Sequence[str]) -> int:
        """Mask of the fields in which ``term`` counts."""
        return sum(_BITS[field] for field in fields if field != "PEOPLE" or self.is_name(term))

    def _learn(self, window: Window, lines: Sequence[Line]) -> None:
        for turn in window.transcript:
            self._speakers.update(_terms(turn.speaker))
        self._named.update({name.casefold() for line in lines for name in line.named})
        self._plain.update({word.lower for line in lines for word in line.words if word.plain})

    def _take(self, lines: Sequence[Line], turns: Sequence[_Turn]) -> None:
        """Make the record by rule and index it."""
        record = Record(
            event=" ".join(_unique(line.event for line in lines)),
            people=_unique([*(name for name, _, _ in turns), *(name for line in lines for name in line.named)]),
            objects=", ".join(_unique(thing for line in lines for thing in line.objects)),
            place=", ".join(_unique(place for line in lines for place in line.places)),
            dialogue=" ".join([f"{speaker}: {text}" if speaker else text for speaker, text, _ in turns]),
        )
        masks: dict[str, int] = {}
        for line in lines:
            _mark(masks, _BITS["EVENT"], line.words)
            for term in line.object_terms:
                masks[term] |= _BITS["OBJECTS"]
            for term in line.place_terms:
                masks[term] |= _BITS["PLACE"]
        for _, _, said in turns:
            _mark(masks, _BITS["DIALOGUE"], said)
        for name in record.people:
            for term in _terms(name):
                masks[term] = masks.get(term, 0) | _BITS["PEOPLE"]
        told = [_spelled([word for line in lines for word in line.words])]
        self._keep(record, masks, [*told, phrase(" ".join(record.people)), *(_spelled(said) for _, _, said in turns)])

    def _take_built(self, record: Record) -> None:
        """Index a record that a builder made."""
        self._speakers.update(term for name in record.people for part in name.split() if part[0].isupper()
                              for term in _terms(part))  # fmt: skip
        texts = (record.event, ", ".join(record.people), record.objects, record.place, _said(record.dialogue))
        masks: dict[str, int] = {}
        for field, text in zip(FIELDS, texts, strict=True):
            _mark(masks, _BITS[field], split(text))
        self._keep(record, masks, [phrase(text) for text in texts])

    def _keep(self, record: Record, masks: Mapping[str, int], spelled: Sequence[str]) -> None:
        self.records.append(record)
        self._fields.add(masks)
        self._spelled.append("\n".join(spelled))


@lru_cache(maxsize=64)
def _of_mask(weights: tuple[tuple[str, float], ...]) -> NDArray[np.float32]:
    """Sum of the weights of the fields in each mask, shape (2, 32): without PEOPLE, for what is no name, and with."""
    fields = [{_BITS[field]: w for field, w in weights if name or field != "PEOPLE"} for name in (False, True)]
    sums = [[sum(w for bit, w in bits.items() if mask & bit) for mask in range(_ALL + 1)] for bits in fields]
    return np.array(sums, np.float32)


_Turn = tuple[str, str, tuple[Word, ...]]
"""Speaker, text and words of something said."""


def phrase(text: str) -> str:
    """Words of ``text`` between single spaces, articles left out: the form in which phrases are compared."""
    return f" {' '.join([word for word in words(text) if word not in ARTICLES])} "


def _spelled(said: Iterable[Word]) -> str:
    """The same of words that were split already."""
    return f" {' '.join([word.spelled for word in said if word.spelled])} "


def _counts(lines: Sequence[Line], turns: Sequence[_Turn]) -> dict[str, int]:
    """How often each term stands in captions and transcript, speakers included."""
    counts: dict[str, int] = {}
    for line in lines:
        _count(counts, line.words)
    for speaker, _, said in turns:
        _count(counts, said)
        for term in _speaker_terms(speaker):
            counts[term] = counts.get(term, 0) + 1
    return counts


def _count(counts: dict[str, int], said: Iterable[Word]) -> None:
    for word in said:
        for term in word.terms:
            counts[term] = counts.get(term, 0) + 1


def _mark(masks: dict[str, int], bit: int, said: Iterable[Word]) -> None:
    for word in said:
        for term in word.content:
            masks[term] = masks.get(term, 0) | bit


_terms = lru_cache(maxsize=_CACHED_LINES)(content)
_words = lru_cache(maxsize=_CACHED_LINES)(words)
"""T(x) and words of a name."""


@lru_cache(maxsize=_CACHED_LINES)
def _speaker_terms(speaker: str) -> tuple[str, ...]:
    return tuple(term for word in split(speaker) for term in word.terms)


def _line(text: str) -> str:
    return " ".join(text.split())


def _said(dialogue: str) -> str:
    """The turns of a dialogue without their speakers."""
    turns = (SPEAKER.match(turn) or turn for turn in dialogue.splitlines())
    return " ".join(turn if isinstance(turn, str) else turn[2] for turn in turns)


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys([text for text in texts if text]))
