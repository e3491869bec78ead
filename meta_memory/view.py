"""What an agent may see of an attempt: development facts and the verdict, never a figure of a held-out split.

``AttemptView`` has no field for such figures; this module also keeps them out of its texts. A cause or a lesson is
written after the measurement, by a rule or a model, and may quote one: both are scanned before they are shown. Title
and hypothesis are written before anything is measured and stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from meta_memory.records import Attempt, AttemptView

WITHHELD = "[withheld]"
NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d+(?:[.,]\d+)?|\.\d+)(?:[eE][-+]?\d+)?\s?%?")
HELD_OUT = re.compile(
    r"\b(?:valid\w*|held[\s-]?out|test(?:\s+(?:split|set))|unseen|generali[sz]\w*|confidence|interval|"
    r"mcnemar|significan\w*|p[\s-]?value|p\s*[=<>≤≥])",
    re.IGNORECASE,
)
SENTENCE = re.compile(r"(?<=[;!?\n])|(?<=\.)(?=\s)")
"""A full stop ends a sentence only before a space, so that 0.61 stays in one piece."""


def view(attempt: Attempt) -> AttemptView:
    """The attempt as agents see it."""
    return AttemptView(
        run=attempt.run,
        iteration=attempt.iteration,
        parent=attempt.parent,
        title=attempt.title,
        hypothesis=attempt.hypothesis,
        outcome=attempt.outcome,
        cause=scan(attempt.cause, attempt),
        dev_accuracy=attempt.dev_accuracy,
        dev_delta=attempt.dev_delta,
        dev_by_type=attempt.dev_by_type,
        tokens_per_question=attempt.tokens_per_question,
        lesson=scan(attempt.lesson, attempt),
    )


def in_short(attempt: Attempt) -> AttemptView:
    """The attempt as a line of a summary has it: what was tried and what came of it, without cause and lesson."""
    return view(attempt).model_copy(update={"cause": "", "lesson": "", "dev_by_type": {}})


def scan(text: str, attempt: Attempt) -> str:
    """``text`` without held-out figures: no number in a sentence that speaks of held-out data, and no number anywhere
    that is one of the attempt's own validation figures, as a share or as a percentage, to any precision written."""
    secret = tuple(_values(attempt))
    return "".join(_sentence(part, secret) for part in SENTENCE.split(text))


def _values(attempt: Attempt) -> Iterator[float]:
    if attempt.validation_accuracy is not None:
        yield from (attempt.validation_accuracy, 100 * attempt.validation_accuracy)
    if attempt.validation_p is not None:
        yield from (attempt.validation_p, 100 * attempt.validation_p)


def _sentence(text: str, secret: tuple[float, ...]) -> str:
    hidden = HELD_OUT.search(text) is not None
    return NUMBER.sub(lambda match: WITHHELD if hidden or _is_one_of(match[0], secret) else match[0], text)


def _is_one_of(written: str, secret: tuple[float, ...]) -> bool:
    """Whether a number as written is one of the values, rounded to the digits written; whole numbers are no figures."""
    digits = written.strip().rstrip("%").strip().replace(",", ".").replace("−", "-")
    if "." not in digits and "%" not in written:
        return False
    decimals = len(digits.lower().split("e")[0].partition(".")[2])
    value = abs(float(digits))
    return any(abs(value - figure) <= 0.5001 * 10.0**-decimals for figure in secret)
