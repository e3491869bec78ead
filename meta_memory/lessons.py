"""The lesson of an attempt, made by rule: what happened and what follows, from development facts only."""

from __future__ import annotations

from meta_memory.records import Attempt
from meta_memory.view import scan

CAUSE_CHARS = 200


def lesson_by_rule(attempt: Attempt) -> str:
    """One or two sentences. Names no figure of a held-out split, whatever the attempt's cause quotes."""
    return scan(f"{_what_happened(attempt)} {_what_follows(attempt)}", attempt)


def _what_happened(attempt: Attempt) -> str:
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
