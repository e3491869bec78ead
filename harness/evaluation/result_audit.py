"""Is a development result believable? Asked after Develop, before a use of the held-out split is spent on it.

A figure that cannot be true rejects, and a policy that answers in the fixed model's place. What is merely suspicious is
recorded as a note, which the analyst, the reader of the log and later audits see: good ideas look suspicious too.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

from harness.evaluation.metrics import construction_per_question, pair
from harness.evaluation.outcomes import Evaluation, Item
from harness.gate.interface import Decision, Finding, StageVerdict
from sandbox.interface import Verdict

PERFECT_FROM = 100
"""Questions from which 100 % is impossible: captions miss facts, and annotators err. Then it is a leak."""
TOO_GOOD = 0.97
"""Accuracy above this is noted: the best published figures on comparable tasks lie below 80 %."""
JUMP = 0.30
"""Gain over the parent from which it is noted: the source's whole search gained less than this in 50 iterations."""
GAINED = 8
"""Net questions gained before their spread is looked at: below, one group holding them all is likely by chance."""
CONCENTRATED = 0.9
"""Share of the net gain in one group from which it is noted."""
SMALL_ROUTE = 0.25
"""A route answering less than this share of the questions is small; a policy's main route holds its gain rightly."""
SAVED = 0.10
"""Answer-time saving from which construction is compared: the saving of the promotion rule."""
FAILED = 0.10
"""Share of questions without an answer from which it is noted."""
UNREAD = 0.5
"""Share of questions answered without asking the fixed answer model from which a result is rejected. Not given by the
source, whose own specialists answer 6 to 11 % so; a policy that rebuilds the reader shows no tokens at all."""


def check(candidate: Evaluation, parent: Evaluation) -> StageVerdict:
    """The audit's verdict. ``parent`` is measured on the same questions; raises NotComparable where it is not."""
    pair(candidate, parent)
    wrong = [*_impossible(candidate), *_unread(candidate)]
    notes = [*_too_good(candidate, parent), *_concentrated(candidate, parent), *_moved(candidate, parent)]
    notes += _failed(candidate)
    findings = tuple(Finding(rule=rule, message=message) for rule, message in [*wrong, *notes])
    decision = Decision.REJECT if wrong else Decision.APPROVE
    told = wrong or notes
    return StageVerdict(
        stage="audit", decision=decision, findings=findings, reason="; ".join(message for _, message in told[:3])
    )


Notes = list[tuple[str, str]]


def _impossible(e: Evaluation) -> Notes:
    """A01: figures that cannot be true."""
    notes: Notes = []
    if len(e.items) >= PERFECT_FROM and all(item.correct for item in e.items):
        notes.append(("A01", f"all {len(e.items)} answers are right; that is a leak, not a memory"))
    costs = [e.construction] + [cost for i in e.items for cost in (i.retrieval, i.answering, i.verification)]
    numbers = [
        n for c in costs for n in (c.requests, c.prompt_tokens, c.completion_tokens, c.frames, c.seconds, c.dollars)
    ]
    numbers += [i.seconds for i in e.items]
    if not all(math.isfinite(n) and n >= 0 for n in numbers):
        notes.append(("A01", "a cost is negative or not finite"))
    if any(item.correct and (item.verdict is not Verdict.OK or item.choice is None) for item in e.items):
        notes.append(("A01", "a question without an answer counts as right"))
    return notes


def _unread(e: Evaluation) -> Notes:
    """A06: most answers came without any Read."""
    unread = sum(i.choice is not None and not i.answering.requests and not i.verification.requests for i in e.items)
    if unread <= UNREAD * len(e.items):
        return []
    return [("A06", f"{unread} of {len(e.items)} questions answered without asking the fixed answer model")]


def _too_good(e: Evaluation, parent: Evaluation) -> Notes:
    """A02: better than anything known."""
    notes: Notes = []
    if e.accuracy > TOO_GOOD:
        notes.append(("A02", f"accuracy {e.accuracy:.1%} is above {TOO_GOOD:.0%}"))
    if e.accuracy - parent.accuracy >= JUMP:
        notes.append(("A02", f"accuracy jumped by {100 * (e.accuracy - parent.accuracy):.1f} points over the parent"))
    return notes


def _concentrated(e: Evaluation, parent: Evaluation) -> Notes:
    """A03: nearly all of the net gain lies in one route, question type or video."""
    was_right = {item.question: item.correct for item in parent.items}
    gain = sum(item.correct - was_right[item.question] for item in e.items)
    if gain < GAINED:
        return []
    notes: Notes = []
    kinds: dict[str, Callable[[Item], str]] = {
        "route": lambda i: i.route or "(none)",
        "question type": lambda i: i.type,
        "video": lambda i: i.video,
    }
    for kind, key in kinds.items():
        size = Counter(key(item) for item in e.items)
        gains: Counter[str] = Counter()
        for item in e.items:
            gains[key(item)] += item.correct - was_right[item.question]
        name, most = max(sorted(gains.items()), key=lambda entry: entry[1])
        small = kind != "route" or size[name] < SMALL_ROUTE * len(e.items)
        if len(size) > 1 and small and most >= CONCENTRATED * gain:
            share = f"{most} of a net gain of {gain} questions"
            # The data set's own ids are not told: the note may reach an author.
            where = "one video" if kind == "video" else f"the {kind} {ascii(name)[:70]}"
            notes.append(("A03", f"{share} lie in {where} ({size[name]} questions)"))
    return notes


def _moved(e: Evaluation, parent: Evaluation) -> Notes:
    """A04: tokens saved at answer time came back in construction."""
    saved = parent.tokens_per_question - e.tokens_per_question
    added = construction_per_question(e) - construction_per_question(parent)
    if saved < SAVED * parent.tokens_per_question or saved <= 0 or added < saved:
        return []
    return [("A04", f"{saved:.0f} tokens per question saved at answer time, {added:.0f} more spent in construction")]


def _failed(e: Evaluation) -> Notes:
    """A05: many questions ended without an answer."""
    failed = Counter(item.verdict.value for item in e.items if item.verdict is not Verdict.OK)
    if failed.total() <= FAILED * len(e.items):
        return []
    return [("A05", f"{failed.total()} of {len(e.items)} questions failed: {', '.join(sorted(failed))}")]
