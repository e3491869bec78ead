"""The letter in an answer model's free text. What cannot be read without guessing is None.

Rules in order, of which the first that finds anything decides:

1. the whole text is one letter, or the text of one choice;
2. a declaration ("the answer is B", "I choose (B)", "B is correct"), the last one;
3. a letter that stands as a conclusion: alone on a line, "B." where a line starts, after a comma or colon at the end;
4. the only letter in brackets.

Before them come thought that a model writes first ("<think>") and JSON ("answer": "B"). The answer is None wherever
several letters are named at once ("A or B"), a letter is denied ("not B") or taken back ("wait"), or letter and choice
text disagree ("A. Tasha" where Tasha is B). All letters are read alike, so renaming the letters renames the answer: a
letter followed by a word that may follow an article ("the answer is A mug") is never taken for one, whichever it is.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Mapping
from typing import Any

LETTERS = "ABCDEFGHIJ"
"""Of the choices, in order, where somebody gives texts alone."""
KEPT = 20_000
"""Characters read from each end of a longer text."""
NEAR = 300
"""Characters read before or behind a place where a letter stands, within its line."""
KEYS = frozenset(("answer", "final_answer", "choice", "letter", "option"))
"""Keys of a JSON reply under which the answer is looked for."""
Named = set[str] | None
"""What a rule found: the letters named, empty where it is known that none can be read; None where it found nothing."""

_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_ANSWER_TAG = re.compile(r"<answer>([^<]{0,500})(?:</answer>|\Z)", re.IGNORECASE)
_FIELD = re.compile(
    r"[\"'](?:final_)?(?:answer|choice|letter|option)[\"']\s{0,5}:\s{0,5}[\"']([^\"'\n]{0,500})", re.IGNORECASE
)
_LATEX = re.compile(r"\\(?:text|mathrm|mathbf|textbf)\b")
_TOKEN = re.compile(r"<\|[^|<>]{1,40}\|>")
_QUOTED = re.compile(r"(?<!\w)['\u2018]([A-Za-z])['\u2019](?!\w)")
_DECORATION = re.compile(r"[*_`$\"\u201c\u201d\\]")

_ALONE = re.compile(r"\W{0,20}(?:(?:option|choice|letter|answer)\W{1,10})?([a-z])\W{0,20}", re.IGNORECASE)
_SAID = re.compile(
    r"\W{0,20}(?i:(?:so|thus|hence|therefore)\W{1,10})?"
    r"(?i:(?:probably|likely|i(?:'d|\s{1,5}would)\s{1,5}say|(?:i\s{1,5}(?:think|believe)\s{1,5})?it(?:'s|\s{1,5}is))\W{1,10})?"
    r"([A-Z])\W{0,20}"
)
"""Case matters, since "it is a" may go on."""
_STANDS = r"(?![\w'\u2019-])"
_ANSWER = (
    r"\b(?:answer|(?:correct|best|right|final)\s{1,5}(?:option|choice))"
    r"(?:\s{1,5}(?:is|was|would\s{1,5}be|should\s{1,5}be|must\s{1,5}be)\b)?"
    r"(?:\s{1,5}(?:most\s{1,5}likely|likely|probably|clearly|definitely|therefore|thus|simply)\b)?\s?[:=-]?"
)
_DECLARED = re.compile(
    rf"(?:{_ANSWER}|\b(?:letter|choice|option)(?:\s{{1,5}}is\b|\s?[:=])|\bboxed|\b(?:choose|select|pick|go\s{{1,5}}with))(?=\W)"
    r"[\s(\[{<']{0,4}(?P<sure>(?:option|choice|letter)\b[\s(\[{<']{0,4})?"
    rf"(?P<letter>[A-Za-z]){_STANDS}(?P<close>[)\]}}>]?)"
    r"(?P<more>(?:\s{0,2}(?:,|/|&|\bor\b|\band\b|,\s?or\b|,\s?and\b)\s{0,2}(?:option\s)?\(?[A-Z]\b\)?(?!['\u2019-])){0,30})",
    re.IGNORECASE,
)
_DECLARED_TEXT = re.compile(rf"{_ANSWER}(?=\W)\s{{0,3}}", re.IGNORECASE)
_CONFIRMED = re.compile(
    r"(?<![\w'\u2019-])(?P<letter>[A-Z])\)?\s{1,5}is\s{1,5}(?:the\s{1,5})?(?:correct|right|best|answer)\b"
)
_CHINESE = re.compile(
    r"(?<!不)(?:答案|选项|选择|选)\s{0,2}(?:应该|应当)?(?:是|为)?\s{0,2}:?\s{0,2}[(\[【]?(?P<letter>[A-Z])"
    r"(?P<more>\s{0,2}(?:或|和|、|/|,)\s{0,2}[A-Z])?(?![A-Za-z])"
)
_LONE = re.compile(r"^[ \t(\[]{0,4}([A-Z])[)\].:]{0,3}[ \t]{0,4}$", re.MULTILINE)
_START = re.compile(
    r"^[ \t]{0,4}(?i:(?:option|choice|letter)\s)?([A-Z])"
    r"(?:[.):]{1,2}(?=\s)|\s?[-\u2013\u2014](?=\s)|(?=\s(?:because|since)\b))",
    re.MULTILINE,
)
_LAST = re.compile(r"(?:[,:]|\b(?:so|hence|thus|therefore))\s{0,3}\(?([A-Z])\)?\s{0,3}[.!]?\s{0,20}$")
_BRACKETED = re.compile(r"[(\[]([A-Z])[)\]]")
_SEVERAL = re.compile(
    rf"(?<![\w'\u2019-])([A-Z])\)?\s{{0,2}}(?:,|/|&|\bor\b|\band\b|,\s?or\b)\s{{0,2}}\(?([A-Z])\)?{_STANDS}"
)

_DENIED = re.compile(
    r"(?:\bnot|n['\u2019]t|\bnever|\bcannot|\bunlikely)\s{1,3}(?:(?!but\b)[\w'\u2019]{1,30}\s{1,3}){0,3}$",
    re.IGNORECASE,
)
_NEGATION = re.compile(
    r"\b(?:not|no|never|neither|nor|wrong|incorrect|false|unlikely|cannot|except|eliminat\w{0,5}|exclud\w{0,5}"
    r"|rul(?:e|ed|es|ing)\s{1,3}out)\b|n['\u2019]t\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\s{0,3}(?:(?:it|this|that)\s{1,3})?(?:(?:is|was)\s{1,3})?(?:not|no|wrong|incorrect|false)\b", re.IGNORECASE
)
_TAKEN_BACK = re.compile(
    r"\b(?:wait|actually|hmm+|sorry|correction|alternatively|maybe|perhaps|on\s{1,3}second\s{1,3}thought"
    r"|scratch\s{1,3}that)\b",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\s{0,9}(?:an?|the)\s", re.IGNORECASE)
_NO_NOUN = {
    *("because", "since", "as", "for", "given", "from", "based", "according", "due", "which", "that", "where", "when"),
    *("while", "here", "with", "by"),
}
"""Words that may follow a letter and never an article."""


class Choices:
    """The letters that may be answered, and which of them have which text, whatever its case and punctuation."""

    def __init__(self, choices: Mapping[str, str]) -> None:
        self.letters = frozenset(choices)
        self._texts = choices
        self._whole: dict[str, set[str]] = {}
        self._bare: dict[str, set[str]] = {}
        for letter, text in choices.items():
            self._whole.setdefault(_plain(text), set()).add(letter)
            self._bare.setdefault(_plain(_ARTICLE.sub("", text)), set()).add(letter)
        self._longest = 2 * max(map(len, choices.values()), default=0) + 100

    def called(self, text: str) -> set[str]:
        """The choices whose text this is: several where two are the same, none for an empty text."""
        if len(text) > self._longest or not (plain := _plain(text)):
            return set()
        bare = text.strip() if text.lstrip().startswith("A ") else _ARTICLE.sub("", text)  # that may be the letter
        return set(self._whole.get(plain) or self._bare.get(_plain(bare)) or ())

    def after(self, letter: str, behind: str) -> str:
        """The words behind a letter without the text of its own choice."""
        own = self._texts.get(letter, "").strip().casefold()
        return behind.strip().casefold().removeprefix(own)

    def several(self, text: str) -> bool:
        """Whether two letters are named at once, as in "A or B"."""
        return any(first != second and {first, second} <= self.letters for first, second in _SEVERAL.findall(text))

    def contradicted(self, letter: str, behind: str) -> bool:
        """Whether the words behind a letter are the text of another choice."""
        named = self.called(behind)
        return bool(named) and letter not in named


def parse_letter(text: str, choices: Mapping[str, str]) -> str | None:
    """The one letter of ``choices`` (text by capital letter) that ``text`` gives as its answer, else None.

    Time is linear in the text's length; of more than ``2 * KEPT`` characters only the two ends are read.
    """
    text = _said(text)
    if len(text) > 2 * KEPT:
        text = f"{text[:KEPT]}\n{text[-KEPT:]}"
    text = unicodedata.normalize("NFKC", text)
    value = _field(text)
    text = _TOKEN.sub(" ", _LATEX.sub("", text if value is None else value))
    text = _DECORATION.sub("", _QUOTED.sub(r"\1", text)).strip()
    known = Choices(choices)
    for rule in (_alone, _choice, _declared, _concluded, _bracketed):
        named = rule(text, known)
        if named is not None:
            return named.pop() if len(named) == 1 and named <= known.letters else None
    return None


def _said(text: str) -> str:
    """``text`` without the thought before it; nothing where the thought has no end."""
    start, thinking = 0, False
    for tag in _THOUGHT.finditer(text):
        if tag[1]:
            start, thinking = tag.end(), False
        elif not thinking and text[start : tag.start()].strip():
            text = text[: tag.start()]
            break
        else:
            thinking = True
    said = "" if thinking else text[start:]
    said = said.rpartition("<|message|>")[2]
    tagged = _ANSWER_TAG.findall(said[-2 * KEPT :])
    return str(tagged[-1]) if tagged else said


def _field(text: str) -> str | None:
    """The answer of a reply that is JSON or begins like it; empty where that has none or several. Else None."""
    body = text.strip()
    if body.startswith("```"):
        body = body.partition("\n")[2].removesuffix("```").strip()
    if not body.startswith(("{", "[")):
        return None
    try:
        value: Any = json.loads(body)
    except (ValueError, RecursionError):
        fields = set(_FIELD.findall(body))
        return None if not fields else fields.pop() if len(fields) == 1 else ""
    if isinstance(value, dict):
        value = [item for key, item in value.items() if key.casefold() in KEYS]
    found = {item.strip() for item in value if isinstance(item, str)}
    return found.pop() if len(found) == 1 else ""


# ---------------------------------------------------------------- the rules


def _alone(text: str, known: Choices) -> Named:
    match = _ALONE.fullmatch(text) or _SAID.fullmatch(text)
    return {match[1].upper()} if match else None


def _choice(text: str, known: Choices) -> Named:
    """The text of a choice in place of its letter."""
    return set() if len(text) <= 100 and known.several(text) else known.called(text) or None


def _declared(text: str, known: Choices) -> Named:
    """The last declaration; whatever it says, an earlier one no longer counts."""
    found: list[tuple[int, int, set[str]]] = []

    def add(match: re.Match[str], letters: set[str]) -> None:
        if not _DENIED.search(text[max(0, match.start() - NEAR) : match.start()]):
            found.append((match.start(), match.end(), letters))

    for match in _DECLARED_TEXT.finditer(text):
        behind = _behind(text, match.end())
        if letters := known.called(behind) or known.called(re.split(r"[.;]", behind, maxsplit=1)[0]):
            add(match, letters)
    for match in _DECLARED.finditer(text):
        letter, behind = match["letter"].upper(), _behind(text, match.end())
        if _meant(match, behind, known):
            several = {*match["more"].upper()} & known.letters - {letter}
            add(match, set() if several or known.contradicted(letter, behind) else {letter})
    for match in _CONFIRMED.finditer(text):
        add(match, {match["letter"]})
    for match in _CHINESE.finditer(text):
        add(match, set() if match["more"] else {match["letter"]})
    if not found:
        return None
    _, end, letters = max(found, key=lambda one: one[0])
    return set() if _TAKEN_BACK.search(text, end) else letters


def _meant(match: re.Match[str], behind: str, known: Choices) -> bool:
    """Whether a declaration is followed by a letter, and not by an article, a pronoun or a question."""
    if behind.lstrip().startswith("?"):
        return False
    before = match[0][: match.start("letter") - match.start()]
    if match["sure"] or match["close"] or match["more"] or before.endswith(("(", "[", "{", "<")):
        return True
    following = re.match(r"\s*([\w'\u2019]*)", behind)
    word = following[1].casefold() if following else ""
    if match["letter"].islower():
        return not word and (before.rstrip().endswith((":", "=")) or behind.startswith("."))
    return not word or word in _NO_NOUN or match["letter"] in known.called(behind)


def _concluded(text: str, known: Choices) -> Named:
    """Letters, and texts of choices, that stand where a conclusion stands; different ones are none."""
    if known.several(text[-60:]):
        return set()
    named = set(_LONE.findall(text))
    for match in _START.finditer(text):
        letter, behind = match[1], _behind(text, match.end())
        own = letter in known.called(behind)
        if not own and (_NEGATED.match(known.after(letter, behind)) or known.contradicted(letter, behind)):
            return set()
        named.add(letter)
    last_line = text[text.rfind("\n") + 1 :][-NEAR:]
    if last := _LAST.search(last_line):
        named.add(last[1])
        if _NEGATION.search(last_line):
            return set()
    for line in text.split("\n"):
        named |= known.called(line)
    return named or None


def _bracketed(text: str, known: Choices) -> Named:
    named = set(_BRACKETED.findall(text))
    if not named:
        return None
    called = known.called(_BRACKETED.sub(" ", text[: 2 * NEAR]))
    return set() if _NEGATION.search(text) or (called and called != named) else named


def _behind(text: str, place: int) -> str:
    return text[place : place + NEAR].partition("\n")[0]


def _plain(text: str) -> str:
    """Words alone, in small letters."""
    return " ".join(re.findall(r"[^\W_]+", unicodedata.normalize("NFKC", text).casefold()))
