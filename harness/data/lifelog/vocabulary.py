"""The words of each split, read from ``vocabulary.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from importlib import resources


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """Every proper name and every word for a thing or a place that a split may use."""

    people: tuple[str, ...]
    objects: tuple[tuple[str, str], ...]
    """Name, and the other name."""
    goods: tuple[str, ...]
    spots: tuple[str, ...]
    rooms: tuple[str, ...]
    shops: tuple[str, ...]
    dishes: tuple[str, ...]
    drinks: tuple[str, ...]
    pastimes: tuple[tuple[str, str, str], ...]
    """Base form, past tense, -ing form."""
    tasks: tuple[str, ...]

    def words(self) -> frozenset[str]:
        """All single words, in lower case."""
        phrases: list[str] = [*self.people, *self.goods, *self.spots, *self.rooms, *self.shops, *self.dishes]
        phrases += [*self.drinks, *self.tasks]
        for names in (*self.objects, *self.pastimes):
            phrases.extend(names)
        return frozenset(word for phrase in phrases for word in phrase.lower().split()) - {"the", "for"}


def vocabulary(split: str) -> Vocabulary:
    """The words of one split."""
    words = tomllib.loads(resources.files(__package__).joinpath("vocabulary.toml").read_text("utf-8"))[split]
    pairs = {key: tuple(tuple(entry) for entry in words[key]) for key in ("objects", "pastimes")}
    return Vocabulary(**{key: pairs.get(key, tuple(value)) for key, value in words.items()})
