"""Structured event memory: one record of five fields per window, indexed field by field.

DIALOGUE is shown with its speakers and indexed without: who speaks is evidence of PEOPLE, what is said of DIALOGUE.
Records are kept as text in one buffer and made anew when asked for; everything learnt (names, counts) comes from the
windows observed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import overload

import numpy as np
from numpy.typing import NDArray

from policies.blocks.extract import FIELDS, Line, read_line
from policies.blocks.lexicon import SPEAKER
from policies.blocks.memory import Memory
from policies.blocks.postings import ONE, Bools, Floats, Ints
from policies.blocks.store import Texts
from policies.blocks.tokens import content, words
from policies.blocks.words import ARTICLES, Word, split
from policies.contract import Window

_CACHED_LINES = 16_384
Turn = tuple[str, str, tuple[Word, ...]]
"""Speaker, text and words of something said."""
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
    """The records of all windows."""

    def __init__(self) -> None:
        self._texts = Texts()

    def append(self, texts: Iterable[str]) -> None:
        """Keep the next record: its five texts, each one line, the people between tabs."""
        self._texts.extend(("\n".join(texts),))

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
        self._spelled = Texts()
        """Per record, the words of its fields in order, a line for each field, for matching exact phrases."""
        self._speakers: set[str] = set()
        self._named: dict[str, int] = {}
        self._plain: dict[str, int] = {}
        self._read = lru_cache(maxsize=_CACHED_LINES)(read_line)

    def observe(self, windows: Sequence[Window], records: Sequence[Record | None] = ()) -> None:
        """Take in the next windows: raw text, records, indexes.

        ``records`` are a builder's, one for each window, in whose ``dialogue`` each turn is a line; where there is
        none, the rule extractor makes it.
        """
        for at, window in enumerate(windows):
            lines = [self._read(caption) for caption in window.captions]
            turns = [(_line(turn.speaker), turn.text, split(turn.text)) for turn in window.transcript]
            turns += [(line.speaker, speech, split(speech)) for line in lines for speech in line.speech]
            self.windows.append(window)
            self._learn(window, lines)
            built = records[at] if records else None
            if built is None:
                self._take(lines, turns)
            else:
                self._take_built(built, lines, turns)

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
        for term in dict.fromkeys(terms):
            np.add.at(scores, *self.matching(term, weights))
        return scores

    def matching(self, term: str, weights: Mapping[str, float]) -> tuple[Ints, Floats]:
        """The m records that hold ``term``, in order, and the weights of the fields they hold it in, added up."""
        positions, masks = self.text.masks(term)
        found = _of_mask(tuple(weights.items()))[int(self.is_name(term))][masks]
        return (positions, found) if found.all() else (positions[found > 0], found[found > 0])

    def holds(self, terms: Iterable[str], fields: Sequence[str] = FIELDS) -> Bools:
        """Whether any of ``terms`` stands in any of ``fields`` of a record, shape (n,)."""
        held = np.zeros(len(self), np.bool_)
        for term in terms:
            positions, masks = self.text.masks(term)
            held[positions[(masks & self._fields_of(term, fields)) > 0]] = True
        return held

    def with_phrase(self, text: str) -> list[int]:
        """Records of which one field holds the words of ``text`` in a row, articles left out; see ``phrase``."""
        wanted = sorted(content(text), key=self.text.frequency)
        if not wanted:
            return []
        positions, together = self.text.masks(wanted[0])
        for term in wanted[1:]:  # the rarest first, until so few are left that looking is cheaper
            if len(positions) <= _LOOKED_AT:
                break
            there, masks = self.text.masks(term)
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
        for counter, seen in (
            (self._named, {name.casefold() for line in lines for name in line.named}),
            (self._plain, {word.lower for line in lines for word in line.words if word.plain}),
        ):
            for word in seen:
                counter[word] = counter.get(word, 0) + 1

    def _take(self, lines: Sequence[Line], turns: Sequence[Turn]) -> None:
        """Make the record by rule and index it."""
        people = _unique([turn[0] for turn in turns] + [name for line in lines for name in line.named])
        texts = (
            " ".join(_unique([line.event for line in lines])),
            "\t".join(people),
            ", ".join(_unique([thing for line in lines for thing in line.objects])),
            ", ".join(_unique([place for line in lines for place in line.places])),
            _line(" ".join([f"{speaker}: {text}" if speaker else text for speaker, text, _ in turns])),
        )
        values: dict[str, int] = {}
        length = _count(values, lines, turns)
        for line in lines:
            for term in line.object_terms:
                values[term] |= _BITS["OBJECTS"]
            for term in line.place_terms:
                values[term] |= _BITS["PLACE"]
        for name in people:
            for term in _terms(name):
                values[term] = values.get(term, 0) | _BITS["PEOPLE"]
        told = " ".join([word.spelled for line in lines for word in line.words if word.spelled])
        said = [" ".join([word.spelled for word in words if word.spelled]) for _, _, words in turns]
        self._keep(texts, values, length, [told, " ".join(filter(None, map(_spelled, people))), *said])

    def _take_built(self, built: Record, lines: Sequence[Line], turns: Sequence[Turn]) -> None:
        """Index a record that a builder made; how often a term stands in the raw text is counted all the same."""
        capitalised = [part for name in built.people for part in name.split() if part[0].isupper()]
        self._speakers.update(term for part in capitalised for term in _terms(part))
        values: dict[str, int] = {}
        length = _count(values, lines, turns, fields=False)
        texts = (built.event, ", ".join(built.people), built.objects, built.place, _said(built.dialogue))
        for field, text in zip(FIELDS, texts, strict=True):
            for term in content(text):
                values[term] = values.get(term, 0) | _BITS[field]
        people = "\t".join(map(_line, built.people))
        lined = (_line(built.event), people, *map(_line, (built.objects, built.place, built.dialogue)))
        self._keep(lined, values, length, [phrase(text) for text in texts])

    def _keep(self, texts: Iterable[str], values: Mapping[str, int], length: int, spelled: Sequence[str]) -> None:
        self.records.append(texts)
        self.text.add_values(values, length)
        self._spelled.extend((" \n ".join(["", *spelled, ""]),))


@lru_cache(maxsize=64)
def _of_mask(weights: tuple[tuple[str, float], ...]) -> NDArray[np.float32]:
    """Sum of the weights of the fields in each mask, shape (2, 32): without PEOPLE, for what is no name, and with."""
    fields = [{_BITS[field]: w for field, w in weights if name or field != "PEOPLE"} for name in (False, True)]
    sums = [[sum(w for bit, w in bits.items() if mask & bit) for mask in range(_ALL + 1)] for bits in fields]
    return np.array(sums, np.float32)


def phrase(text: str) -> str:
    """Words of ``text`` between single spaces, articles left out: the form in which phrases are compared."""
    return f" {' '.join([word for word in words(text) if word not in ARTICLES])} "


def _count(values: dict[str, int], lines: Sequence[Line], turns: Sequence[Turn], fields: bool = True) -> int:
    """Count the terms of captions and transcript into ``values``, with the masks of EVENT and DIALOGUE where
    ``fields``; returns how many there are."""
    event, dialogue = (_BITS["EVENT"], _BITS["DIALOGUE"]) if fields else (0, 0)
    length = 0
    for line in lines:
        length += _add(values, line.words, event)
    for speaker, _, said in turns:
        length += _add(values, said, dialogue)
        for word in _spoken_by(speaker):
            length += len(word.terms)
            for term in word.terms:
                values[term] = values.get(term, 0) + ONE
    return length


def _add(values: dict[str, int], said: Iterable[Word], bit: int) -> int:
    length = 0
    for word in said:
        for term, counted in word.marked:
            values[term] = values.get(term, 0) + ONE | (bit & counted)
            length += 1
    return length


_terms = lru_cache(maxsize=_CACHED_LINES)(content)
_words = lru_cache(maxsize=_CACHED_LINES)(words)
"""T(x) and words of a name."""


_spoken_by = lru_cache(maxsize=_CACHED_LINES)(split)


@lru_cache(maxsize=_CACHED_LINES)
def _spelled(name: str) -> str:
    return phrase(name).strip()


def _line(text: str) -> str:
    return " ".join(text.split())


def _said(dialogue: str) -> str:
    """The turns of a dialogue without their speakers."""
    turns = (SPEAKER.match(turn) or turn for turn in dialogue.splitlines())
    return " ".join(turn if isinstance(turn, str) else turn[2] for turn in turns)


def _unique(texts: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, texts)))
