"""Making a life-log: for each split its own words, for each of its two wearers a world, a telling and questions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path

from harness.data.lifelog.asking import TEMPLATES, Ask
from harness.data.lifelog.choosing import Mentions, Ranks
from harness.data.lifelog.draw import Draw
from harness.data.lifelog.telling import tell
from harness.data.lifelog.vocabulary import Vocabulary, vocabulary
from harness.data.lifelog.wording import View
from harness.data.lifelog.world import WINDOW, World, simulate
from harness.data.native import SPLITS, DataError, Gold, Question, Video
from harness.data.write import DatasetParts, Written, write
from policies.contract import Window

VERSION = 3
"""Changes whenever the same seed gives other bytes."""
STREAMS = 2
DAYS = 3
SESSION = 68
"""Windows of a recorded session, about; four sessions a day."""
PER_TYPE = 42
"""Questions of each of the five types in each stream."""
PATIENCE = 20
"""After so many questions whose choices could not be balanced, the balance may be one worse."""

MOST_MISSES = 5_000


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its gold, and which template over which part of the stream it came from."""

    question: Question
    gold: Gold
    template: str
    slot: int


@dataclass(frozen=True, slots=True)
class Stream:
    """One wearer's world, how it is told, and what is asked about it."""

    video: Video
    world: World
    asked: tuple[Asked, ...]


def make_lifelog(out: Path, seed: int, scale: float = 1.0) -> Written:
    """Write a life-log to the new folder ``out``: the same seed and scale, the same bytes.

    ``scale`` (0.2 to 1) is the share of questions; sessions shrink with its square root, for habits need time to show.
    """
    if not 0.2 <= scale <= 1:
        raise DataError(f"scale {scale:g}: a life-log is made at a scale from 0.2 to 1; choose one in between")
    streams = {split: make_split(split, seed, scale) for split in SPLITS}
    parts = DatasetParts(
        name=f"lifelog-{seed}",
        origin={"generator": "lifelog", "version": VERSION, "seed": seed, "scale": scale},
        videos=[stream.video for split in SPLITS for stream in streams[split]],
        splits={
            split: [(asked.question, asked.gold) for stream in streams[split] for asked in stream.asked]
            for split in SPLITS
        },
    )
    return write(parts, out)


def make_split(split: str, seed: int, scale: float = 1.0) -> list[Stream]:
    """The streams of a split; they share its words but no person."""
    words = vocabulary(split)
    people = Draw(seed, split, "people").shuffled(words.people)
    size = len(people) // STREAMS
    casts = [people[number * size : (number + 1) * size] for number in range(STREAMS)]
    return [make_stream(f"{split}-{number}", words, cast, seed, scale) for number, cast in enumerate(casts, 1)]


def make_stream(name: str, words: Vocabulary, cast: Sequence[str], seed: int, scale: float) -> Stream:
    """One stream; the first of the cast wears the camera."""
    world = simulate(words, cast[0], cast[1:], Draw(seed, name, "world"), DAYS, round(SESSION * sqrt(scale)))
    windows = tell(world, Draw(seed, name, "telling"))
    asked = ask_all(name, world, windows, Draw(seed, name, "asking"), round(PER_TYPE * scale))
    return Stream(Video(name, windows[-1].end + WINDOW, windows), world, asked)


def ask_all(name: str, world: World, windows: Sequence[Window], draw: Draw, per_type: int) -> tuple[Asked, ...]:
    """``per_type`` questions of each type at moments from the first quarter of the stream on, in order of time."""
    mentions, ranks = Mentions(windows), Ranks()
    straddled = {slot for event in world.events for slot in range(event.slot, event.last)}
    moments = [slot for slot in range(len(windows) // 4, len(windows)) if slot not in straddled]
    starts = [event.slot for event in world.events]
    found: list[tuple[int, str, str, Ask, list[str]]] = []
    times_asked: dict[str, int] = {}
    for kind, templates in TEMPLATES.items():
        made = misses = 0
        while made < per_type:
            template = templates[made % len(templates)] if misses % 50 < 49 else draw.pick(templates)
            slot = draw.pick(moments)
            ask = template(View(world, slot, world.events[: bisect_right(starts, slot)]), draw)
            misses += 1
            if misses > MOST_MISSES:
                raise DataError(f"scale: too little happens to ask {per_type} {kind} questions; choose a larger scale")
            if ask is None or len(ask.wrong) < 3 or times_asked.get(ask.question, 0) > 1:
                continue
            slack = 1 + misses // PATIENCE
            wrong = ranks.choose(template.__name__, ask, mentions, slot, draw, slack)
            if wrong is None:
                continue
            times_asked[ask.question] = times_asked.get(ask.question, 0) + 1
            found.append((slot, kind, template.__name__, ask, wrong))
            made, misses = made + 1, 0
    found.sort(key=lambda entry: entry[0])
    letters = draw.shuffled(["ABCD"[number % 4] for number in range(len(found))])
    return tuple(
        settle(f"{name}-{number:03}", name, world, draw, letters[number - 1], *entry)
        for number, entry in enumerate(found, 1)
    )


def settle(
    id_: str,
    video: str,
    world: World,
    draw: Draw,
    letter: str,
    slot: int,
    kind: str,
    template: str,
    ask: Ask,
    wrong: list[str],
) -> Asked:
    """The question as the data set holds it: put seconds after window ``slot`` ended, with the answer at ``letter``."""
    texts = draw.shuffled(wrong)
    texts.insert("ABCD".index(letter), ask.answer)
    choices = dict(zip("ABCD", texts, strict=True))
    oracle = tuple((float(world.slots[e.slot].start), float(world.slots[e.last].end)) for e in ask.oracle)
    time = float(world.slots[slot].end + draw.integer(0, 25))
    return Asked(Question(id_, video, kind, ask.question, choices, time), Gold(letter, oracle), template, slot)
