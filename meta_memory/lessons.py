"""The lesson of an attempt, made by rule: what happened, what was expected, what follows; development facts only."""

from __future__ import annotations

from meta_memory.records import Attempt
from meta_memory.similarity import ingredients
from meta_memory.view import scan

CAUSE_CHARS = 200
EXPECTED_CHARS = 40
"""Of one effect that the author expected, in its words."""
PARTS = 6
"""Building blocks and numbers that a lesson names."""
TYPE_POINTS = 5
"""Effects by question type are told as multiples of so many points, and those below half of it not at all: the effect
of one question does not show. Not given by the source, which allows aggregates and excludes gold."""


def lesson_by_rule(attempt: Attempt) -> str:
    """A few sentences on one line, the most telling first. Names no figure of a held-out split, whatever cause or
    expectation quote."""
    parts = (what_happened(attempt), _what_follows(attempt), _compared(attempt), _moved(attempt), _done(attempt))
    return scan(" ".join(part for part in parts if part), attempt)


def what_happened(attempt: Attempt) -> str:
    """One sentence: which stage ended the attempt and why, or what it gained."""
    cause = " ".join(attempt.cause.split())[:CAUSE_CHARS].rstrip(" .;")
    rules = f" ({', '.join(attempt.rules)})" if attempt.rules else ""
    match attempt.outcome:
        case "malformed":
            return f"No usable candidate came out: {cause or 'the answer could not be read'}."
        case "promoted":
            return f"Promoted{_effect(attempt)}."
        case "validate":
            return f"Passed the development bar{_effect(attempt)}. It did not hold on held-out data."
        case "audit":
            return f"The development result{_effect(attempt)} was not believed{rules}: {cause or 'see the audit'}."
        case "develop":
            return f"Did not pass the development bar{_effect(attempt)}."
        case stage:
            return f"Rejected at {stage}{rules}: {cause or 'no cause recorded'}."


def _effect(attempt: Attempt) -> str:
    facts = []
    if attempt.dev_delta is not None:
        facts.append(f"{100 * attempt.dev_delta:+.1f} points against its parent in development")
    if attempt.tokens_per_question is not None:
        facts.append(f"{attempt.tokens_per_question:.0f} tokens a question")
    return f" ({', '.join(facts)})" if facts else ""


def _what_follows(attempt: Attempt) -> str:
    match attempt.outcome:
        case "malformed":
            return "Write a complete package in the asked form."
        case "duplicates" if "D04" in attempt.rules:
            return "What came of it then holds now; try something else."
        case "intake" | "static" | "reviewer":
            return "The idea was not measured; keep within the rule before trying it again."
        case "duplicates":
            return "Change what the policy does, not how it is written."
        case "smoke" if "D03" in attempt.rules:
            return "Change something that shows in answers or evidence."
        case "smoke":
            return "The idea was not measured; make it run on a few questions first."
        case "dynamic":
            return "Let the choice depend on what was seen and asked, and on nothing else."
        case "promoted":
            return _by_type(attempt, "Build on it")
        case "validate":
            return "Likely fitted to the development split; look for a cause that holds elsewhere."
        case "audit":
            return "Look for a gain that is spread over types and recordings and paid for where it is used."
        case _:
            return _by_type(attempt, "Not worth repeating from the same parent without a new reason")


def _by_type(attempt: Attempt, advice: str) -> str:
    if not attempt.dev_by_type:
        return f"{advice}."
    weakest = min(attempt.dev_by_type, key=lambda kind: (attempt.dev_by_type[kind], kind))
    return f"{advice}; its weakest type in development is {weakest} ({100 * attempt.dev_by_type[weakest]:.0f} %)."


def _compared(attempt: Attempt) -> str:
    """What the author expected beside what was measured."""
    measured = {}
    if attempt.dev_delta is not None:
        measured["accuracy"] = f"{100 * attempt.dev_delta:+.1f} points"
    if attempt.tokens_per_question is not None and attempt.parent_tokens_per_question:
        change = attempt.tokens_per_question / attempt.parent_tokens_per_question - 1
        measured["tokens"] = f"{100 * change:+.0f} %"
    said = [
        f"{name} {' '.join(attempt.expected[name].split())[:EXPECTED_CHARS].rstrip(' .;!?')}, measured {found}"
        for name, found in measured.items()
        if attempt.expected.get(name)
    ]
    return f"Expected {'; '.join(said)}." if said else ""


def _moved(attempt: Attempt) -> str:
    """Question types that gained or lost, the most first."""
    moved = {kind: TYPE_POINTS * round(100 * delta / TYPE_POINTS) for kind, delta in attempt.dev_delta_by_type.items()}
    order = sorted((kind for kind in moved if moved[kind]), key=lambda kind: (-abs(moved[kind]), kind))
    return f"By type about {', '.join(f'{kind} {moved[kind]:+d}' for kind in order)} points." if order else ""


def _done(attempt: Attempt) -> str:
    """What the code did, told by itself and not by its author: building blocks and numbers that came and went."""
    used = ingredients(attempt.change)
    came, gone = (
        [name.removeprefix("@") for name, count in sorted(used.items()) if count * sign > 0][:PARTS] for sign in (1, -1)
    )
    said = [f"{word} {', '.join(names)}" for word, names in (("brought in", came), ("dropped", gone)) if names]
    return f"The code {' and '.join(said)}." if said else ""
