"""``python -m benchmarks.memory``: what the memory layer costs, in a process of its own.

V49's evidence against one ``bm25s`` query over the real stream, and a year of waking life. Evidence is all from the
question to the request that the fixed model is sent: scores, counts, specialists, packing. Every question is put once,
to a memory that holds nothing of an answer. Times are of this process's CPU clock, so that neighbours disturb less.
"""

from __future__ import annotations

import contextlib
import random
import resource
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import bm25s

from harness.data.native import load
from policies.blocks.lexicon import FURNITURE, HANDLING, PLACES
from policies.blocks.memory import window_text
from policies.contract import Budget, NoModel, Query, Setup, Utterance, Window
from policies.v49.policy import Policy

YEAR = 700_000
"""Windows of 30 s in a year of 16 waking hours a day."""
SIZES = (4_455, 20_000, 100_000, 350_000, YEAR)
ASKED = 100
"""Questions at each size."""
BATCH = 64
"""Windows in one call, as the sandbox sends them."""
BAR = 40


class Life:
    """A seeded stream: two short captions and, most times, something said; words drawn as text has them (Zipf)."""

    def __init__(self, seed: int) -> None:
        self.draw = random.Random(seed)
        syllables = [a + b for a in "bdfgklmnprstv" for b in "aeiou"]
        self.things = sorted({"".join(self.draw.sample(syllables, 3)) for _ in range(5_000)})
        self.names = sorted({"".join(self.draw.sample(syllables, 2)).capitalize() for _ in range(30)})
        self.verbs, self.places = sorted(HANDLING), sorted(PLACES | FURNITURE)

    def pick(self, words: Sequence[str]) -> str:
        """A word: the n-th comes up about 1/n as often as the first."""
        return words[int(len(words) ** self.draw.random()) - 1]

    def four(self, words: Sequence[str]) -> list[str]:
        """Four distinct words."""
        found: dict[str, None] = {}
        while len(found) < 4:
            found[self.pick(words)] = None
        return list(found)

    def caption(self) -> str:
        """ "Ada peels the dark apple in the kitchen with Ben." in made-up words."""
        who = "I" if self.draw.random() < 0.6 else self.pick(self.names)
        end = f" with {self.pick(self.names)}" if self.draw.random() < 0.2 else ""
        what = f"the {self.pick(self.things)} {self.pick(self.things)}"
        return f"{who} {self.pick(self.verbs)} {what} in the {self.pick(self.places)}{end}."

    def windows(self) -> Iterator[Window]:
        """Windows without end."""
        at = 0
        while True:
            said = (Utterance(self.pick(self.names), f"Did you see the {self.pick(self.things)} over there?"),)
            spoken = said if self.draw.random() < 0.7 else ()
            yield Window(at, 30.0 * at, 30.0 * at + 30, (self.caption(), self.caption()), spoken, False)
            at += 1

    def question(self, number: int, now: float) -> Query:
        """Of four kinds in turn, with four distinct choices."""
        verb, thing, place = self.pick(self.verbs), self.pick(self.things), self.pick(self.places)
        pairs = [f"the {one} {two}" for one, two in zip(self.four(self.things), self.four(self.things), strict=True)]
        asked, choices = (
            (f"Who did I {verb} the {thing} with in the {place}?", self.four(self.names)),
            (f"What did I {verb} in the {place} the last time?", pairs),
            (f"Where did {self.pick(self.names)} {verb} the {thing}?", [f"in the {p}" for p in self.four(self.places)]),
            (f"What do I usually {verb} first in the {place}?", self.four(self.things)),
        )[number % 4]
        return Query(f"q{number}", "EventRecall", asked, dict(zip("ABCD", choices, strict=True)), now)


def feed(policy: Policy, windows: Sequence[Window]) -> float:
    """Seconds to observe the windows, without a builder model."""
    began = time.process_time()
    for first in range(0, len(windows), BATCH):
        policy.observe(windows[first : first + BATCH])
        asking: Any = policy.settle()
        with contextlib.suppress(StopIteration):
            asking.send([NoModel("no model") for _ in next(asking)])
    return time.process_time() - began


def evidence(policy: Policy, query: Query) -> float:
    """Seconds from the question to the first request, or to a direct answer."""
    began = time.process_time()
    with contextlib.suppress(StopIteration):
        next(policy.answer(query))
    return time.process_time() - began


def against_bm25s(windows: Sequence[Window], queries: Sequence[Query]) -> tuple[float, float, float]:
    """Median milliseconds of V49's evidence and of one ``bm25s`` query with tokenisation; windows observed a second.

    The two take turns, question by question.
    """
    index = bm25s.BM25()
    index.index(bm25s.tokenize([window_text(window) for window in windows], show_progress=False), show_progress=False)
    policy = Policy(Setup(Budget(), 0))
    seconds = feed(policy, windows)
    theirs, ours = [], []
    for query in queries:
        began = time.process_time()
        index.retrieve(bm25s.tokenize([query.question], show_progress=False), k=10, show_progress=False)
        theirs.append(time.process_time() - began)
        ours.append(evidence(policy, query))
    return 1000 * statistics.median(ours), 1000 * statistics.median(theirs), len(windows) / seconds


@dataclass(frozen=True)
class Row:
    """What was measured at one size."""

    windows: int
    p50: float
    p95: float
    """Milliseconds of a question."""
    observed: float
    """Windows a second since the size before."""
    peak: float
    """Most memory of the process so far, in MB."""


def growth(sizes: Sequence[int] = SIZES, asked: int = ASKED) -> Iterator[Row]:
    """A life at one size after the other, questions at each."""
    life = Life(0)
    stream, policy, seen = life.windows(), Policy(Setup(Budget(), 0)), 0
    for size in sizes:
        before, seconds = seen, 0.0
        while seen < size:
            part = list(islice(stream, min(size - seen, 100 * BATCH)))
            seconds += feed(policy, part)
            seen += len(part)
        found = sorted(1000 * evidence(policy, life.question(number, 30.0 * seen)) for number in range(asked))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        yield Row(size, statistics.median(found), found[int(0.95 * asked)], (seen - before) / seconds, peak)


def main(egolife: Path | None) -> None:
    """Print both; ``egolife`` is the real stream's folder in the native format."""
    if egolife is not None:
        data = load(egolife)
        asked = [question for split in data.splits for question in data.questions(split)]
        (video,) = {question.video for question in asked}
        queries = [Query(q.id, q.type, q.question, dict(q.choices), q.time) for q in asked]
        ours, theirs, rate = against_bm25s(data.videos[video].windows, queries)
        print(f"V49's evidence {ours:.2f} ms, one bm25s query {theirs:.2f} ms: {ours / theirs:.1f} times")
        print(f"the real stream observed at {rate:,.0f} windows/s")
    rows = []
    print(f"{'windows':>9}  {'p50 ms':>7}  {'p95 ms':>7}  {'windows/s':>9}  {'peak MB':>7}")
    for row in growth():
        print(
            f"{row.windows:>9,}  {row.p50:>7.2f}  {row.p95:>7.2f}  {row.observed:>9,.0f}  {row.peak:>7,.0f}", flush=True
        )
        rows.append(row)
    for row in rows:
        print(f"{row.windows:>9,}  {'#' * max(round(BAR * row.p50 / rows[-1].p50), 1)} {row.p50:.2f} ms")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
