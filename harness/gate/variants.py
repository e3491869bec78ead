"""The same stream and questions in the ways that must not matter: pure functions from plain data to plain data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from harness.gate.swapping import NOTHING, Swap
from harness.seeds import opaque_id
from policies.contract import Query, Utterance, Window

MOST_MOVED = 5.0
"""Seconds by which a query time is moved at most; not given by the source. No window ends in between."""
STRANGE = "Nobody is here and nothing happens."
"""What windows of an altered future tell."""


@dataclass(frozen=True, slots=True)
class Variant:
    """One run: what is sent, and how its answers are read."""

    windows: tuple[Window, ...]
    queries: tuple[Query, ...]
    """In order of (time, id)."""
    original: Mapping[str, str]
    """Id of the question as it stands in the base, by the id under which it is asked here; only of those compared."""
    texts: Mapping[str, Mapping[str, str]]
    """Text of each choice in the base's words, by id asked and letter."""
    swap: Swap = NOTHING


def base(windows: tuple[Window, ...], queries: Sequence[Query]) -> Variant:
    """As in scoring."""
    return _variant(windows, {q.id: q for q in queries}, {q.id: q for q in queries})


def altered_future(of: Variant, at: Query) -> Variant:
    """Asked up to ``at`` with half of the questions before; all windows that end later tell of something else."""
    later = of.queries[-1]
    kept = [q for q in of.queries if q.time <= at.time][::-1][::2] + ([] if later.time <= at.time else [later])
    windows = tuple(
        w if w.end <= at.time else replace(w, captions=(STRANGE,), transcript=(Utterance("", STRANGE),))
        for w in of.windows
    )
    made = _variant(windows, {q.id: q for q in kept}, {q.id: q for q in kept})
    return replace(made, original={new: old for new, old in made.original.items() if _time(of, old) <= at.time})


def _time(of: Variant, name: str) -> float:
    return next(q.time for q in of.queries if q.id == name)


def renamed_questions(of: Variant, key: bytes) -> Variant:
    """Under other ids, which also changes the order of questions put at the same time."""
    return _again(of, lambda q: replace(q, id=opaque_id(q.id, key)))


def turned_choices(of: Variant) -> Variant:
    """Every choice under another letter, further by one from question to question."""
    place = {q.id: n for n, q in enumerate(of.queries)}

    def turn(query: Query) -> Query:
        letters, texts = list(query.choices), list(query.choices.values())
        by = 1 + place.get(query.id, 0) % max(1, len(letters) - 1)
        return replace(query, choices=dict(zip(letters, texts[by:] + texts[:by], strict=True)))

    return _again(of, turn)


def moved_times(of: Variant) -> Variant:
    """Each question later, by less than it takes the next window to end."""
    ends = sorted(w.end for w in of.windows)

    def move(query: Query) -> Query:
        following = next((end for end in ends if end > query.time), query.time + 2 * MOST_MOVED)
        return replace(query, time=query.time + min(MOST_MOVED, (following - query.time) / 2))

    return _again(of, move)


def swapped_words(of: Variant, swap: Swap) -> Variant:
    """Windows, questions and choices in other words."""
    windows = tuple(
        replace(
            w,
            captions=tuple(swap.there(line) for line in w.captions),
            transcript=tuple(Utterance(swap.there(u.speaker), swap.there(u.text)) for u in w.transcript),
        )
        for w in of.windows
    )
    made = _again(
        of,
        lambda q: replace(
            q, question=swap.there(q.question), choices={k: swap.there(text) for k, text in q.choices.items()}
        ),
    )
    texts = {i: {k: swap.back(text) for k, text in choices.items()} for i, choices in made.texts.items()}
    return replace(made, windows=windows, swap=swap, texts=texts)


def _again(of: Variant, change: Callable[[Query], Query]) -> Variant:
    """Every question changed; whose it is in the base is kept."""
    changed = {q.id: change(q) for q in of.queries}
    made = _variant(of.windows, changed, {q.id: q for q in of.queries}, of.original)
    return replace(made, swap=of.swap)


def _variant(
    windows: tuple[Window, ...],
    asked: Mapping[str, Query],
    before: Mapping[str, Query],
    original: Mapping[str, str] | None = None,
) -> Variant:
    names = original if original is not None else {name: name for name in before}
    queries = tuple(sorted(asked.values(), key=lambda q: (q.time, q.id)))
    return Variant(
        windows=windows,
        queries=queries,
        original={query.id: names[old] for old, query in asked.items() if old in names},
        texts={query.id: dict(query.choices) for query in asked.values()},
    )
