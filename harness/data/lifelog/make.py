"""Making a life-log: for each split its own words, for each of its two wearers a world, what is told of it, what is
seen of it, and questions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from pathlib import Path

from harness.data.lifelog.asking import TEMPLATES, Ask, Template
from harness.data.lifelog.choosing import Mentions, Ranks
from harness.data.lifelog.draw import Draw
from harness.data.lifelog.film import film, paint
from harness.data.lifelog.looking import LOOKS
from harness.data.lifelog.scenes import Scene, Scenes, see
from harness.data.lifelog.telling import tell
from harness.data.lifelog.traps import TRAPS
from harness.data.lifelog.vocabulary import Vocabulary, vocabulary
from harness.data.lifelog.wording import View
from harness.data.lifelog.world import WINDOW, World, simulate
from harness.data.native import SPLITS, DataError, FrameFile, Gold, Question, Video
from harness.data.write import DatasetParts, Written, write
from policies.contract import Window

VERSION = 4
"""Changes whenever the same seed gives other bytes."""
STREAMS = 2
DAYS = 3
SESSION = 68
"""Windows of a recorded session, about; four sessions a day."""
PER_TYPE = 42
"""Questions of each of the five types in each stream, beside those of ``TRAPS`` and ``LOOKS``."""
TRAPS_PER_TYPE = 5
"""Questions in each stream whose wording sounds visual and that captions answer, for each type that has some."""
PATIENCE = 20
"""After so many questions whose choices could not be balanced, the balance may be one worse."""

MOST_MISSES = 5_000


Found = tuple[int, str, str, Ask, list[str]]
"""The window after which it is asked, type label, template, question, wrong choices."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A question with its gold, and which template over which part of the stream it came from."""

    question: Question
    gold: Gold
    template: str
    slot: int


@dataclass(frozen=True, slots=True)
class Stream:
    """One wearer's world, how it is told, what is seen of it, and what is asked about it."""

    video: Video
    world: World
    scenes: tuple[Scene | None, ...]
    asked: tuple[Asked, ...]


def make_lifelog(out: Path, seed: int, scale: float = 1.0) -> Written:
    """Write a life-log to the new folder ``out``: the same seed and scale, the same bytes.

    ``scale`` (0.2 to 1) is the share of questions; sessions shrink with its square root, for habits need time to show.
    """
    if not 0.2 <= scale <= 1:
        raise DataError(f"scale {scale:g}: a life-log is made at a scale from 0.2 to 1; choose one in between")
    streams = {split: make_split(split, seed, scale) for split in SPLITS}
    frames: dict[str, bytes] = {}
    videos: list[Video] = []
    for stream in (stream for split in SPLITS for stream in streams[split]):
        reels = film_days(stream.video.id, stream.world, stream.scenes)
        frames |= {file.path: content for file, content in reels}
        videos.append(replace(stream.video, frames=tuple(file for file, _ in reels)))
    parts = DatasetParts(
        name=f"lifelog-{seed}",
        origin={"generator": "lifelog", "version": VERSION, "seed": seed, "scale": scale},
        videos=videos,
        splits={
            split: [(asked.question, asked.gold) for stream in streams[split] for asked in stream.asked]
            for split in SPLITS
        },
        frames=frames,
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
    scenes = see(world, Draw(seed, name, "seeing"))
    told = tell(world, Draw(seed, name, "telling"))
    windows = tuple(replace(window, frames=scene is not None) for window, scene in zip(told, scenes, strict=True))
    draw = Draw(seed, name, "asking")
    asked = settle_all(name, world, draw, ask_all(world, windows, draw, TEMPLATES, round(PER_TYPE * scale)), 1)
    draw = Draw(seed, name, "looking")
    found = ask_all(world, windows, draw, TRAPS, round(TRAPS_PER_TYPE * scale)) + look_all(world, scenes, draw, scale)
    asked += settle_all(name, world, draw, found, len(asked) + 1)
    return Stream(Video(name, windows[-1].end + WINDOW, windows), world, scenes, asked)


def film_days(name: str, world: World, scenes: Scenes) -> list[tuple[FrameFile, bytes]]:
    """A video file for each day: one frame in the middle of each window whose scene was seen."""
    reels: list[tuple[FrameFile, bytes]] = []
    for day in range(DAYS):
        taken = [
            (slot.start + WINDOW // 2, scene)
            for slot, scene in zip(world.slots, scenes, strict=True)
            if slot.day == day and scene is not None
        ]
        start = taken[0][0]
        content = film([((time - start) * 1000, paint(scene)) for time, scene in taken])
        reels.append((FrameFile(path=f"frames/{name}-day{day + 1}.mkv", start=float(start)), content))
    return reels


def moments_of(world: World) -> list[int]:
    """Windows after which something may be asked: from the first quarter on, and not while an event is being told."""
    straddled = {slot for event in world.events for slot in range(event.slot, event.last)}
    return [slot for slot in range(len(world.slots) // 4, len(world.slots)) if slot not in straddled]


def view_at(world: World, slot: int) -> View:
    """What has happened up to the end of a window."""
    return View(world, slot, world.events[: bisect_right(world.events, slot, key=lambda event: event.slot)])


def ask_all(
    world: World,
    windows: Sequence[Window],
    draw: Draw,
    templates_of: Mapping[str, Sequence[Template]],
    per_type: int,
) -> list[Found]:
    """``per_type`` questions of each type at random moments."""
    mentions, ranks = Mentions(windows), Ranks()
    moments = moments_of(world)
    found: list[Found] = []
    times_asked: dict[str, int] = {}
    for kind, templates in templates_of.items():
        made = misses = 0
        while made < per_type:
            template = templates[made % len(templates)] if misses % 50 < 49 else draw.pick(templates)
            slot = draw.pick(moments)
            ask = template(view_at(world, slot), draw)
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
    return found


def look_all(world: World, scenes: Scenes, draw: Draw, scale: float) -> list[Found]:
    """The questions that only frames answer, each once. No caption names a choice, so that there is no rank to deal."""
    moments = moments_of(world)
    found: list[Found] = []
    for kind, looks in LOOKS.items():
        for look, count in looks:
            made = misses = 0
            while made < max(1, round(count * scale)):
                slot = draw.pick(moments)
                ask = look(view_at(world, slot), scenes, draw)
                misses += 1
                if misses > MOST_MISSES:
                    raise DataError(f"scale: too little is seen to ask {kind} questions; choose a larger scale")
                if ask is None or any(ask.question == other.question for _, _, _, other, _ in found):
                    continue
                found.append((slot, kind, look.__name__, ask, draw.sample(ask.wrong, 3)))
                made, misses = made + 1, 0
    return found


def settle_all(name: str, world: World, draw: Draw, found: list[Found], first: int) -> tuple[Asked, ...]:
    """The questions in order of time, numbered from ``first``, their answers' letters dealt evenly."""
    ordered = sorted(found, key=lambda entry: entry[0])
    letters = draw.shuffled(["ABCD"[number % 4] for number in range(len(ordered))])
    return tuple(
        settle(f"{name}-{number:03}", name, world, draw, letter, *entry)
        for number, letter, entry in zip(range(first, first + len(ordered)), letters, ordered, strict=True)
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
