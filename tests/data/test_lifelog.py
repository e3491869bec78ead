"""The life-log: frozen bytes, gold replayed from the world's events by other means, choices that betray nothing."""

from __future__ import annotations

import hashlib
import math
import os
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from harness.data.check import check
from harness.data.lifelog import VERSION, make_lifelog
from harness.data.lifelog.asking import TEMPLATES
from harness.data.lifelog.looking import LOOKS
from harness.data.lifelog.make import Asked, Stream, make_split
from harness.data.lifelog.phrases import PAST
from harness.data.lifelog.vocabulary import vocabulary
from harness.data.lifelog.world import WEARER, Event, World
from harness.data.native import SPLITS, DataError, load
from policies.contract import Window

FROZEN = {4: "2d09e63c316247570cd756248b98c66e5e5abd3012c9347234a024955f3b84c2"}
"""Digest of the manifest, which holds the digests of all files, of seed 0 by version. New bytes need a new version."""
TYPES = {"EntityLog": 112, "EventRecall": 116, "HabitInsight": 94, "RelationMap": 84, "TaskMaster": 84}
PLAIN = {template.__name__ for templates in TEMPLATES.values() for template in templates}
VISUAL = {look.__name__ for looks in LOOKS.values() for look, _ in looks}

streams = cache(make_split)


def plain(found: list[tuple[Stream, Asked]]) -> list[tuple[Stream, Asked]]:
    return [(s, asked) for s, asked in found if asked.template in PLAIN]


def everything(seeds: Iterable[int] = (0,)) -> list[tuple[Stream, Asked]]:
    return [(s, asked) for seed in seeds for split in SPLITS for s in streams(split, seed) for asked in s.asked]


# ---------------------------------------------------------------- bytes


def test_the_bytes_of_seed_0_are_frozen(tmp_path: Path) -> None:
    written = make_lifelog(tmp_path / "data", 0)
    dataset = load(tmp_path / "data")
    assert dataset.digest == FROZEN[VERSION]
    assert check(tmp_path / "data") == []
    assert written.questions == {split: 490 for split in SPLITS}
    assert all(700 <= count <= 1_000 for count in written.windows.values())
    assert [len(dataset.gold(split)) for split in SPLITS] == [490] * 3


def test_a_process_with_other_hashes_writes_the_same_bytes(tmp_path: Path) -> None:
    make_lifelog(tmp_path / "here", 5, 0.2)
    code = "import sys, pathlib, harness.data.lifelog as made; made.make_lifelog(pathlib.Path(sys.argv[1]), 5, 0.2)"
    environment = {**os.environ, "PYTHONHASHSEED": "12345"}
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "there")], check=True, env=environment)
    assert load(tmp_path / "here").digest == load(tmp_path / "there").digest


def test_another_seed_is_another_world(tmp_path: Path) -> None:
    texts = [{line for s in streams("test", seed) for w in s.video.windows for line in w.captions} for seed in (0, 1)]
    assert len(texts[0] & texts[1]) < 0.5 * len(texts[0])


def test_a_scale_out_of_range_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="scale"):
        make_lifelog(tmp_path / "data", 0, 0.01)


# ---------------------------------------------------------------- shape


def test_every_type_has_its_share_and_every_letter_too() -> None:
    for split in SPLITS:
        asked = [a for s in streams(split, 0) for a in s.asked]
        assert Counter(a.question.type for a in asked) == TYPES
        assert Counter(a.question.type for a in asked if a.template in PLAIN) == {kind: 84 for kind in TYPES}
        assert max(Counter(a.gold.answer for a in asked).values()) <= 126
        assert len({a.question.id for a in asked}) == len(asked)


def test_windows_are_half_minutes_with_gaps_and_several_lines() -> None:
    for s in streams("validation", 0):
        windows = s.video.windows
        assert all(w.end - w.start == 30 for w in windows)
        assert all(b.start >= a.end for a, b in pairwise(windows))
        assert sum(b.start > a.end for a, b in pairwise(windows)) == 11
        assert all(w.captions or w.transcript for w in windows)
        assert sum(len(w.captions) + len(w.transcript) for w in windows) / len(windows) > 3


def test_splits_share_no_word_for_a_person_a_thing_or_a_place() -> None:
    owned = {split: vocabulary(split).words() for split in SPLITS}
    for split in SPLITS:
        said: set[str] = set()
        for s in streams(split, 0):
            for text in texts(s):
                said.update(re.findall(r"[a-z]+", text.lower()))
        assert len(said & owned[split]) > 0.9 * len(owned[split])
        for other in set(SPLITS) - {split}:
            assert not said & owned[other]


def texts(s: Stream) -> Iterable[str]:
    for w in s.video.windows:
        yield from w.captions
        yield from (f"{line.speaker}: {line.text}" for line in w.transcript)
    for a in s.asked:
        yield a.question.question
        yield from a.question.choices.values()


def test_the_streams_of_a_split_have_no_person_in_common() -> None:
    for split in SPLITS:
        one, two = streams(split, 0)
        assert not {one.world.wearer, *one.world.people} & {two.world.wearer, *two.world.people}


def test_every_event_is_told_in_its_windows() -> None:
    for s in streams("test", 0):
        for event in s.world.events:
            told = " ".join(text(w) for w in s.video.windows[event.slot : event.last + 1]).lower()
            names = [pair for pair in s.world.words.objects if pair[0] == event.thing] or [(event.thing,)]
            names += [pair for pair in s.world.words.pastimes if pair[0] == event.thing]
            assert any(name in told for pair in names for name in pair), event
            for person in (event.actor, *event.others):
                assert person == WEARER or person.lower() in told, event
            assert event.place in told


def text(w: Window) -> str:
    return " ".join([*w.captions, *(f"{line.speaker}: {line.text}" for line in w.transcript)])


# ---------------------------------------------------------------- gold, replayed

PASTS = {word: verb for verb, words in PAST.items() for word in words}
VERB = "|".join(sorted(map(re.escape, PASTS), key=len, reverse=True))
PART = {
    "morning": "in the morning",
    "noon": "around noon",
    "afternoon": "in the afternoon",
    "evening": "in the evening",
}


class Replay:
    """Answers a question by its wording from the list of events: all true answers, and whether the last one counts."""

    def __init__(self, world: World, slot: int) -> None:
        self.world = world
        self.slot = slot
        self.events = [e for e in world.events if e.last <= slot]
        self.things = {other: name for name, other in world.words.objects} | {n: n for n, _ in world.words.objects}
        self.base = {ing: base for base, _, ing in world.words.pastimes}

    def having(self, kind: str, **fields: object) -> list[Event]:
        return [e for e in self.events if e.kind == kind and all(getattr(e, k) == v for k, v in fields.items())]

    def answers(self, question: str) -> list[str]:
        """True answers in order of time; the last one is the one asked for unless the question says first."""
        for pattern, answer in RULES:
            if match := re.fullmatch(pattern, question):
                return answer(self, *match.groups())
        raise AssertionError(f"no rule for: {question}")

    def thing(self, name: str) -> str:
        return self.things.get(name, name)

    def most(self, events: Iterable[Event], value: Callable[[Event], str]) -> list[str]:
        counts = Counter(value(e) for e in events)
        top = counts.most_common(2)
        assert top[0][1] >= 3 and (len(top) == 1 or top[0][1] - top[1][1] >= 2)
        return [top[0][0]]

    def deeds(self, clause: str) -> list[Event]:
        """Events that a clause such as ``Bo cleaned the drill`` describes."""
        who, rest = clause.split(" ", 1)
        if match := re.fullmatch(rf"({VERB}) the (.+)", rest):
            found = [e for e in self.events if e.kind in ("handle", "joint") and e.detail == PASTS[match[1]]]
            return [e for e in found if who in self.doers(e) and e.thing == self.thing(match[2])]
        if match := re.fullmatch(r"used the (.+)", rest):
            return self.having("use", actor=who, thing=self.thing(match[1]))
        if match := re.fullmatch(r"put down the (.+)", rest):
            return self.having("put", actor=who, thing=self.thing(match[1]))
        if match := re.fullmatch(r"gave the (.+) to (\w+)", rest):
            return self.having("give", actor=who, thing=self.thing(match[1]), others=(self.me(match[2]),))
        if match := re.fullmatch(r"bought (\w+)", rest):
            return self.having("buy", actor=who, thing=match[1])
        raise AssertionError(f"no deed: {clause}")

    def doers(self, event: Event) -> tuple[str, ...]:
        """A thing is carried by both who carry it."""
        return (event.actor, *event.others) if event.kind == "joint" else (event.actor,)

    def me(self, person: str) -> str:
        return WEARER if person == "me" else person

    def when(self, clause: str) -> list[str]:
        slot = self.deeds(clause)[-1].slot
        then, now = self.world.slots[slot], self.world.slots[self.slot]
        day = ["Today", "Yesterday", "The day before yesterday"][int(now.start // 86400 - then.start // 86400)]
        return [f"{day} {PART[then.part]}"]

    def then(self, who: str, clause: str) -> list[str]:
        before = self.deeds(clause)
        assert len(before) == 1
        after = next(e for e in self.events if e.slot > before[0].last and e.kind != "enter")
        assert after.actor == who and after.slot == before[0].last + 1
        options = [f"{v} the {after.thing}" for v in (PAST[after.detail][0],)] if after.kind == "handle" else []
        options += {
            "use": [f"used the {after.thing}"],
            "put": [f"put down the {after.thing}"],
            "buy": [f"bought {after.thing}"],
            "give": [f"gave the {after.thing} to {'me' if after.others == (WEARER,) else ''.join(after.others)}"],
        }.get(after.kind, [])
        return [options[0][0].upper() + options[0][1:]]

    def room(self, clause: str) -> list[str]:
        events = self.deeds(clause)
        assert len(events) == 1
        return ["In the " + [e for e in self.having("enter") if e.slot <= events[0].slot][-1].thing]

    def owner(self, task: str) -> list[str]:
        owner = ""
        for e in self.events:
            if e.kind in ("ask", "takeover") and e.thing == task:
                owner = e.others[0] if e.kind == "ask" else e.actor
        return [owner]

    def helpers(self, who: str, thing: str) -> list[str]:
        return [e.others[0] for e in self.having("joint", actor=self.me(who), thing=self.thing(thing))]

    def partners(self, verb: str, thing: str, who: str) -> list[str]:
        events = self.having("joint", thing=self.thing(thing), detail=PASTS[verb])
        pairs = [self.doers(e) for e in events if self.me(who) in self.doers(e)]
        return [person for pair in pairs for person in pair if person != self.me(who)]


def cap(text: str) -> str:
    return text[0].upper() + text[1:]


def first(found: list[str]) -> list[str]:
    return found[::-1]


RULES: list[tuple[str, Callable[..., list[str]]]] = [
    (
        r"Where did somebody put the (.+)\?",
        lambda r, o: ["On the " + e.place for e in r.having("put", thing=r.thing(o))],
    ),
    (r"Where was the (.+) put the last time\?", lambda r, o: ["On the " + r.having("put", thing=r.thing(o))[-1].place]),
    (
        r"(?:Where|On what) did (\w+) (?:put|leave) the (.+?)( most recently)?\?",
        lambda r, a, o, _: ["On the " + e.place for e in r.having("put", actor=a, thing=r.thing(o))],
    ),
    (r"Who used the (.+) last\?", lambda r, o: [e.actor for e in r.having("use", thing=r.thing(o))]),
    (r"Who was the last one to use the (.+)\?", lambda r, o: [e.actor for e in r.having("use", thing=r.thing(o))]),
    (r"Who used the (.+) first\?", lambda r, o: first([e.actor for e in r.having("use", thing=r.thing(o))])),
    (
        r"Who was the first one to use the (.+)\?",
        lambda r, o: first([e.actor for e in r.having("use", thing=r.thing(o))]),
    ),
    (
        r"(?:What|Which goods) did (\w+) (?:purchase|bring back|last get) (?:at|from) the (\w+).*\?",
        lambda r, a, s: [cap(e.thing) for e in r.having("buy", actor=a, place=s)],
    ),
    (r"When was the last time that (.+)\?", Replay.when),
    (r"What did (\w+) do right after (.+)\?", Replay.then),
    (
        r"What (?:did (\w+) do to the (.+)|was the last thing that (\w+) did to the (.+))\?",
        lambda r, a, o, b, p: [
            cap(PAST[e.detail][0]) + " it" for e in r.having("handle", actor=a or b, thing=r.thing(o or p))
        ],
    ),
    (r"(?:Which room was I in|Where was I) when (.+)\?", Replay.room),
    (
        r"(?:What does (\w+) usually drink|What is (\w+)'s favourite drink|What does (\w+) drink most often)\?",
        lambda r, *a: [cap(x) for x in r.most(r.having("drink", actor=next(filter(None, a))), lambda e: e.thing)],
    ),
    (
        r"(?:Who is usually (\w+)|Who spends time (\w+) most often|Whose habit is (\w+))\?",
        lambda r, *p: r.most(r.having("pastime", thing=r.base[next(filter(None, p))]), lambda e: e.actor),
    ),
    (
        r"(?:By what does (\w+) usually spend free time|Where does (\w+) usually go for a pastime)\?",
        lambda r, *a: ["By the " + x for x in r.most(r.having("pastime", actor=a[0] or a[1]), lambda e: e.place)],
    ),
    (
        r"At what time of day is (\w+) usually (\w+)\?",
        lambda r, a, p: [
            cap(PART[x])
            for x in r.most(r.having("pastime", actor=a, thing=r.base[p]), lambda e: r.world.slots[e.slot].part)
        ],
    ),
    (
        r"Who did (\w+) give the (.+) to\?",
        lambda r, a, o: [e.others[0] for e in r.having("give", actor=a, thing=r.thing(o))],
    ),
    (
        r"Who received the (.+) from (\w+) the last time\?",
        lambda r, o, a: [r.having("give", actor=r.me(a), thing=r.thing(o))[-1].others[0]],
    ),
    (
        r"Who gave the (.+) to (\w+)\?",
        lambda r, o, b: [e.actor for e in r.having("give", others=(r.me(b),), thing=r.thing(o))],
    ),
    (
        r"From whom did (\w+) get the (.+) the last time\?",
        lambda r, b, o: [r.having("give", others=(b,), thing=r.thing(o))[-1].actor],
    ),
    (
        r"(?:Who ate (\w+) with me|Who was my companion when I had (\w+) the last time)\?",
        lambda r, *d: [x for x in r.having("meal", thing=d[0] or d[1])[-1].others],
    ),
    (r"Who helped (\w+) with the (.+) the last time\?", Replay.helpers),
    (rf"Who ({VERB}) the (.+) together with (\w+)\?", Replay.partners),
    (
        r"What (?:did (\w+) want (\w+) to do|was the last thing that (\w+) asked (\w+) to do)\?",
        lambda r, a, b, c, d: [cap(e.thing) for e in r.having("ask", actor=a or c, others=(r.me(b or d),))],
    ),
    (
        r"(?:On which day is it planned to|When will somebody) (.+)\?",
        lambda r, t: ["On " + [e for e in r.events if e.kind in ("ask", "move") and e.thing == t][-1].detail],
    ),
    (r"(?:Who is going to|Whose task is it now to) (.+)\?", Replay.owner),
    (
        r"Who (?:asked somebody|wanted someone) to (.+?)(?: the last time)?\?",
        lambda r, t: [e.actor for e in r.having("ask", thing=t)],
    ),
    (
        rf"Who (?:was it that )?({VERB}) the (.+?)(?: the last time)?\?",
        lambda r, v, o: [e.actor for e in r.having("handle", detail=PASTS[v], thing=r.thing(o))],
    ),
    (
        r"Who left the (.+) on the (\w+?)(?: the last time)?\?",
        lambda r, o, s: [e.actor for e in r.having("put", thing=r.thing(o), place=s)],
    ),
    (
        r"What was (?:the last thing )?left on the (\w+?)(?: the last time)?\?",
        lambda r, s: [f"The {e.thing}" for e in r.having("put", place=s)],
    ),
    (
        r"(?:How many times did|What is the number of times that) (\w+) (?:was seen to )?(.+)\?",
        lambda r, a, what: [NUMBERS[len(r.having(DEEDS[what], actor=a))]],
    ),
]
NUMBERS = ["None", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine", "Ten", "Eleven", "Twelve"]
DEEDS = {
    "put something down": "put",
    "use one of the things": "use",
    "hand something over": "give",
    "drink something": "drink",
}
LAST = re.compile(r"last|first|recently|right after|usual|often|favourite|habit|now|planned|When|going to|companion")


@pytest.mark.parametrize("seed", [0, 3])
def test_gold_is_what_the_world_says(seed: int) -> None:
    for s, asked in everything([seed]):
        question = asked.question
        told = [w for w in s.video.windows if w.end <= question.time]
        assert len(told) == asked.slot + 1
        if asked.template in VISUAL:  # replayed from pixels in test_lifelog_frames.py
            continue
        true = Replay(s.world, asked.slot).answers(question.question)
        answer = question.choices[asked.gold.answer]
        others = [choice for letter, choice in question.choices.items() if letter != asked.gold.answer]
        if asked.template == "meal_with":
            assert answer in true
            assert not set(others) & set(true)
        else:
            assert answer == true[-1], (question, true)
        if not LAST.search(question.question):
            assert not set(others) & set(true), (question, true)
        assert len({choice.casefold() for choice in question.choices.values()}) == 4
        assert asked.gold.oracle
        assert all(start < end <= question.time for start, end in asked.gold.oracle)


# ---------------------------------------------------------------- difficulty

STOP = re.compile(
    "a|an|and|are|as|at|be|by|did|do|does|for|from|i|in|is|it|me|my|of|on|or|the|to|was|what|when|where|which|who|with"
)


def tokens(text: str) -> list[str]:
    return [re.sub(r"(ing|ed|es|e|s)$", "", w) for w in re.findall(r"[a-z]+", text.lower()) if not STOP.fullmatch(w)]


class Reference:
    """BM25 over the windows seen, written here apart from the project's own."""

    def __init__(self, s: Stream) -> None:
        counted = [Counter(tokens(text(w))) for w in s.video.windows]
        self.lengths = np.array([counts.total() for counts in counted], float)
        places: dict[str, list[tuple[int, int]]] = defaultdict(list)
        for index, counts in enumerate(counted):
            for word, count in counts.items():
                places[word].append((index, count))
        self.places = {word: np.array(found) for word, found in places.items()}

    def scores(self, text: str, seen: int) -> np.ndarray:
        scores = np.zeros(seen)
        relative = self.lengths[:seen] / self.lengths[:seen].mean()
        for word in sorted(set(tokens(text)) & set(self.places)):
            places = self.places[word]
            at, counts = places[places[:, 0] < seen].T
            weight = math.log(1 + (seen - len(at) + 0.5) / (len(at) + 0.5))
            scores[at] += weight * counts * 2.2 / (counts + 1.2 * (0.25 + 0.75 * relative[at]))
        return scores


def measure(found: list[tuple[Stream, Asked]]) -> dict[str, float]:
    """Accuracy in points of simple scorers; a tie counts its share."""
    references: dict[int, Reference] = {}
    points: dict[str, list[float]] = defaultdict(list)
    for s, asked in found:
        if id(s) not in references:
            references[id(s)] = Reference(s)
        reference = references[id(s)]
        seen = asked.slot + 1
        asks = reference.scores(asked.question.question, seen)
        scored: dict[str, dict[str, float]] = defaultdict(dict)
        for letter, choice in asked.question.choices.items():
            says = reference.scores(choice, seen)
            mentions = np.flatnonzero(says)
            scored["options only"][letter] = round(float(says.max()), 9)
            scored["most mentioned"][letter] = len(mentions)
            scored["mentioned last"][letter] = int(mentions[-1]) if len(mentions) else -1
            scored["longest"][letter] = len(choice)
            scored["bm25"][letter] = round(float((asks + says).max()), 9)
        for name, by_letter in scored.items():
            best = [letter for letter, score in by_letter.items() if score == max(by_letter.values())]
            points[name].append(100 * (asked.gold.answer in best) / len(best))
    return {name: sum(values) / len(values) for name, values in points.items()}


def test_choices_betray_nothing_and_retrieval_helps() -> None:
    by_split = {split: measure(plain([(s, a) for s in streams(split, 0) for a in s.asked])) for split in SPLITS}
    for found in by_split.values():
        assert abs(found["options only"] - 25) <= 3
        assert 38 <= found["bm25"] <= 58
    more = [(s, a) for seed in range(1, 5) for s in streams(SPLITS[seed % 3], seed) for a in s.asked]
    over_seeds = measure(plain(everything() + more))
    for name in ("options only", "most mentioned", "mentioned last", "longest"):
        assert abs(over_seeds[name] - 25) <= 3, (name, over_seeds)
    assert 43 <= over_seeds["bm25"] <= 55, over_seeds


def test_frozen_digest_is_of_the_manifest(tmp_path: Path) -> None:
    make_lifelog(tmp_path / "data", 1, 0.2)
    content = (tmp_path / "data" / "manifest.json").read_bytes()
    assert load(tmp_path / "data").digest == hashlib.sha256(content).hexdigest()
