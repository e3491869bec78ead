"""The letter in an answer model's free text. What cannot be read without guessing is None.

In order: the text is one letter; a declaration ("the answer is B", "I choose (B)", "B is correct"), of which the last
wins; a letter that stands as a conclusion (alone on a line, "B." at the start of a line, after a comma or colon at the
very end); the only letter in brackets. Wherever several letters are named at once ("A or B") the answer is None.
"A" and "I" before further words are taken for words, and a lower-case letter counts in brackets or before an end only.
"""

from __future__ import annotations

import re
from collections.abc import Collection

KEPT = 20_000
"""Characters read from each end of a longer text."""

_DECORATION = re.compile(r"[*_`$\"\u201c\u201d\\]")
_ALONE = re.compile(r"\W{0,20}(?:(?:option|choice|answer)\W{1,10})?([a-z])\W{0,20}", re.IGNORECASE)
_GROUP = (
    r"[\s(\[{<']{0,4}(?:(?:option|choice|letter)\b[\s(\[{<']{0,4})?"
    r"(?P<first>\(?[A-Za-z])(?![\w'\u2019-])[)\]}>]?"
    r"(?P<more>(?:\s{0,2}(?:,|/|&|\bor\b|\band\b|,\s?or\b|,\s?and\b)\s{0,2}(?:option\s)?\(?[A-Z]\b\)?(?!['\u2019-]))*)"
    r"(?P<after>[^\S\n]*[\w'\u2019]*)"
)
_DECLARED = re.compile(
    r"(?:\b(?:answer|(?:correct|best|right|final)\s+(?:option|choice))"
    r"(?:\s+(?:is|was|would\s+be|should\s+be|must\s+be)\b)?\s?[:=-]?|\b(?:letter|choice|option)\s?[:=]|\bboxed|\b(?:choose|select|pick|go\s+with))"
    rf"(?=\W){_GROUP}",
    re.IGNORECASE,
)
_CONFIRMED = re.compile(r"(?<![\w'\u2019-])(?P<first>[A-Z])\)?\s+is\s+(?:the\s+)?(?:correct|right|best|answer)\b")
_LINE = re.compile(r"^(?:[ \t]{0,4}([A-Z])[.):]{1,2}(?=\s)|[ \t(\[]{0,4}([A-Z])[)\].:]{0,3}[ \t]{0,4}$)", re.MULTILINE)
_LAST = re.compile(r"[,:]\s{0,3}\(?([A-Z])\)?\s{0,3}[.!]?\s*$")
_BRACKETED = re.compile(r"[(\[]([A-Z])[)\]]")
_SEVERAL = re.compile(r"(?<![\w'\u2019-])[A-Z]\)?\s{0,2}(?:,|/|&|\bor\b|\band\b)\s{0,2}\(?[A-Z]\)?(?![\w'\u2019-])")
_REASON = frozenset(("", "because", "since", "as"))


def parse_letter(text: str, letters: Collection[str]) -> str | None:
    """The one letter of ``letters`` (capitals) that ``text`` gives as its answer, else None."""
    if len(text) > 2 * KEPT:
        text = f"{text[:KEPT]}\n{text[-KEPT:]}"
    text = _DECORATION.sub("", text).strip()
    alone = _ALONE.fullmatch(text)
    if alone:
        return _known(alone[1].upper(), letters)
    found, declared = _declared(text)
    if found:
        return _known(declared, letters)
    if _SEVERAL.search(text[-60:]):
        return None
    lines = {early or late for early, late in _LINE.findall(text)}
    for concluding in (lines | {*_LAST.findall(text)}, {*_BRACKETED.findall(text)}):
        if concluding:
            return _known(concluding.pop(), letters) if len(concluding) == 1 else None
    return None


def _known(letter: str | None, letters: Collection[str]) -> str | None:
    return letter if letter in letters else None


def _declared(text: str) -> tuple[bool, str | None]:
    """Whether anything was declared, and the last declaration's letter (None where it names several)."""
    matches = [match for match in _DECLARED.finditer(text) if _is_letter(match)]
    matches += _CONFIRMED.finditer(text)
    if not matches:
        return False, None
    last = max(matches, key=lambda match: match.start("first"))
    several = last.re is _DECLARED and last["more"]
    return True, None if several else last["first"][-1].upper()


def _is_letter(match: re.Match[str]) -> bool:
    """Whether what follows the declaration is a letter and not the article "a" or the word "I"."""
    written, after = match["first"], match["after"].strip().casefold()
    bracketed = written.startswith("(") or match[0][match.start("first") - match.start() - 1] in "([{<"
    if bracketed or match["more"]:
        return True
    if written in "AI":
        return after in _REASON
    return written.isupper() or (written != "a" and after == "")
