"""Rules on what a candidate carries as data: S11 words of the data, S12 encoded text, S13 tables and answer keys.

A policy is code that reads a stream; answers, names and phrases of the development data in it are a shortcut.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import TypeVar

from harness.gate.interface import Finding
from harness.gate.rules import StaticLimits
from harness.gate.source import escape
from harness.gate.spelled import Assembled, assembled
from principles.h0 import StaticRules

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
"""Words inside prose and identifiers alike: ``askAlice_2`` is ask, alice, 2."""
IDENTIFIER = re.compile(r"[a-z][a-z0-9_-]*")
RUN = re.compile(r"[A-Za-z0-9+/=_-]+")
HEX = re.compile(r"[0-9a-fA-F]{32,}")
LETTERS_ONLY = re.compile(r"[A-Ha-h][\s,;|]*")
PHRASE_WORDS = 5
WHOLE_WORDS = 3
FEW = 6
"""Questions and choices that hold a word, at most, for it to be one of the data's own."""
OWN_WORDS = 6
OWN_SHARE = 0.4
"""So many different words of the data, and such a share of all that the constants hold, are a table of the data and no
list of a policy's own. Not given by the source."""


def words(text: str) -> Iterator[tuple[str, int]]:
    """Case-folded words of ``text`` with their line numbers."""
    for number, line in enumerate(text.split("\n"), 1):
        for match in WORD.finditer(line):
            yield match[0].casefold(), number


@dataclass(frozen=True, slots=True)
class DataWords:
    """What of the development data may not stand in a candidate; made by ``data_words``, all case-folded."""

    names: frozenset[str] = frozenset()
    ids: frozenset[str] = frozenset()
    phrases: frozenset[tuple[str, ...]] = frozenset()
    """Five words in a row of a question or choice, not all of them words of the building blocks."""
    choices: frozenset[tuple[str, ...]] = frozenset()
    """Whole choices of three words or more, not all of them words of the building blocks ("in the afternoon")."""
    own: frozenset[str] = frozenset()
    """Words of few questions and choices that are no words of the building blocks."""
    beginnings: frozenset[str] = frozenset()
    """First letters, three or more, of names and of words that are no words of the building blocks."""
    captions: frozenset[int] = frozenset()
    """Digests (of this process) of five words in a row that at most two captions share."""


def data_words(
    names: Iterable[str], ids: Iterable[str], questions: Iterable[str], captions: Iterable[str] = ()
) -> DataWords:
    """The words of a development split.

    ``names`` are people's names; ``ids`` the data set's own question and video ids (those of under six characters
    are left out: they collide with ordinary constants); ``questions`` are question and choice texts. A phrase is
    five words in a row that at most two texts share: what recurs ("when was the last time") is a form of question,
    which a policy may know, and what is rare is an item, which it may not.
    """
    texts = [[word for word, _ in words(question)] for question in questions]
    parts = {part.casefold() for name in names for part in WORD.findall(name) if len(part) >= 3}
    held = Counter(word for text in texts for word in set(text))
    return DataWords(
        names=frozenset(parts),
        ids=frozenset(i.casefold() for i in ids if len(i) >= 6),
        phrases=frozenset(
            phrase
            for phrase in _rare(phrase for text in texts for phrase in set(_phrases(text)))
            if not general_words().issuperset(phrase)
        ),
        choices=frozenset(
            tuple(text) for text in texts if len(text) >= WHOLE_WORDS and not general_words().issuperset(text)
        ),
        own=frozenset(w for w, count in held.items() if len(w) >= 4 and count <= FEW and w not in general_words()),
        captions=_rare(hash(phrase) for text in captions for phrase in _phrases([word for word, _ in words(text)])),
        beginnings=frozenset(
            w[:size] for w in {*held, *parts} if w not in general_words() for size in range(3, len(w))
        ),
    )


Key = TypeVar("Key", bound=Hashable)


def _rare(found: Iterable[Key]) -> frozenset[Key]:
    return frozenset(key for key, count in Counter(found).items() if count <= 2)


@lru_cache(maxsize=1)
def general_words() -> frozenset[str]:
    """Every word in the text of the building blocks: words of no data set."""
    blocks = resources.files("policies.blocks")
    texts = [file.read_text(encoding="utf-8") for file in blocks.iterdir() if file.name.endswith(".py")]
    return frozenset(word for text in texts for word, _ in words(text))


def _phrases(sequence: list[str]) -> Iterator[tuple[str, ...]]:
    for start in range(len(sequence) - PHRASE_WORDS + 1):
        yield tuple(sequence[start : start + PHRASE_WORDS])


def check_words(path: str, text: str, data: DataWords, allowed: StaticRules) -> Iterator[Finding]:
    """S11 over the whole text, comments included: they have no business with the data either."""
    found = list(words(text))
    for word, line in found:
        if word in data.names:
            yield Finding(rule="S11", path=path, line=line, message=f"a name of the development data: {escape(word)}")
    for number, line_text in enumerate(text.split("\n"), 1):
        folded = line_text.casefold()
        for token in IDENTIFIER.findall(folded):
            squeezed = re.sub("[_-]", "", token)
            if any(name in squeezed for name in allowed.data_set_words):
                yield Finding(rule="S11", path=path, line=number, message=f"a data set's name: {escape(token, 60)}")
            if squeezed in allowed.gold_words:
                yield Finding(rule="S11", path=path, line=number, message=f"a gold field's name: {escape(token, 60)}")
        for known in data.ids:
            if known in folded:
                yield Finding(rule="S11", path=path, line=number, message=f"an id of the data: {escape(known, 60)}")
    sequence = [word for word, _ in found]
    for start, phrase in enumerate(_phrases(sequence)):
        if phrase in data.phrases or hash(phrase) in data.captions:
            message = f"words of the data: {escape(' '.join(phrase), 80)}"
            yield Finding(rule="S11", path=path, line=found[start][1], message=message)


def check_text(path: str, tree: ast.AST, data: DataWords, allowed: StaticRules) -> Iterator[Finding]:
    """S11 over a module's constants and names: whole choices, lists of the data's words, text made of pieces."""
    nodes = list(ast.walk(tree))
    pieces = list(assembled(nodes))
    for piece in pieces:
        for word in _held_words(piece, data.names):
            if word in data.names or word in allowed.gold_words or any(name in word for name in allowed.data_set_words):
                message = f"a word of the data, put together from pieces: {escape(word, 60)}"
                yield Finding(rule="S11", path=path, line=piece.line, message=message)
    skipped = docstrings(tree)
    constants = [
        (node.value, node.lineno)
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in skipped
    ]
    named = [(name, 0) for node in nodes if (name := identifier(node))]
    yield from check_strings(path, [*constants, *named], data, [piece.text for piece in pieces])


def _held_words(piece: Assembled, names: frozenset[str]) -> Iterator[str]:
    yield from (word for word, _ in words(piece.text))
    if piece.run:
        run = piece.text.casefold()
        yield from (name for name in names if len(name) >= 4 and name in run)


def check_strings(
    path: str, strings: Sequence[tuple[str, int]], data: DataWords, pieces: Sequence[str] = ()
) -> Iterator[Finding]:
    """S11 over texts with their lines; ``pieces`` may hold words too, but prove no word a policy's own."""
    for text, line in strings:
        if tuple(word for word, _ in words(text)) in data.choices:
            yield Finding(rule="S11", path=path, line=line, message=f"a choice of a question: {escape(text, 60)}")
    held = {word for text, _ in strings for word, _ in words(text) if len(word) >= 3}
    pieced = {word for text in pieces for word, _ in words(text) if len(word) >= 4}
    strange = held - general_words()
    found = sorted((held | pieced) & data.own | strange & data.beginnings)
    if len(found) >= OWN_WORDS and len(found) >= OWN_SHARE * len(strange | set(found)):
        message = f"{len(found)} words of the data that few questions share, {escape(', '.join(found[:5]), 80)} ..."
        yield Finding(rule="S11", path=path, message=message)


def identifier(node: ast.AST) -> str:
    """The name that a node gives or uses; empty where it has none."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.arg(arg=name) | ast.keyword(arg=str() as name):
            return name
    return ""


def check_literals(path: str, tree: ast.AST, limits: StaticLimits) -> Iterator[Finding]:
    """S12 and S13 over the constants of one module."""
    skipped = docstrings(tree)
    constants, characters = 0, 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            constants += 1
            if isinstance(node.value, str) and id(node) not in skipped:
                characters += len(node.value)
            yield from _constant(path, node, id(node) in skipped, limits)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            yield from _table(path, node, limits)
    if constants > limits.constants:
        yield Finding(rule="S13", path=path, message=f"{constants} constants; at most {limits.constants}")
    if characters > limits.strings_chars:
        message = f"{characters} characters of string constants; at most {limits.strings_chars}"
        yield Finding(rule="S13", path=path, message=message)


def docstrings(tree: ast.AST) -> set[int]:
    """``id`` of every docstring's node."""
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                found.add(id(first.value))
    return found


def _constant(path: str, node: ast.Constant, docstring: bool, limits: StaticLimits) -> Iterator[Finding]:
    value, line = node.value, node.lineno
    if isinstance(value, bytes):
        value = value.decode("latin-1")
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= 10**limits.number_digits:
        message = f"an integer of more than {limits.number_digits} digits"
        yield Finding(rule="S12", path=path, line=line, message=message)
    if isinstance(value, float) and len(re.sub(r"e.*|\D", "", repr(value)).strip("0")) > limits.number_digits:
        message = f"a number of more than {limits.number_digits} digits"
        yield Finding(rule="S12", path=path, line=line, message=message)
    if not isinstance(value, str):
        return
    if not docstring and len(value) > limits.string_chars:
        message = f"a string of {len(value)} characters; at most {limits.string_chars}"
        yield Finding(rule="S12", path=path, line=line, message=message)
    if encoded(value, limits.run_chars):
        yield Finding(rule="S12", path=path, line=line, message=f"encoded text: {escape(value, 60)}")
    if answer_string(value, limits.answer_letters):
        yield Finding(rule="S13", path=path, line=line, message=f"a string of choice letters: {escape(value, 60)}")


def encoded(text: str, run_chars: int) -> bool:
    """Whether ``text`` holds an unbroken run that looks like base64, hexadecimal or a digest."""
    if HEX.search(text):
        return True
    for match in RUN.finditer(text):
        run = match[0]
        if len(run) < run_chars:
            continue
        classes = sum(bool(re.search(pattern, run)) for pattern in ("[A-Z]", "[a-z]", "[0-9]"))
        if classes >= 2 and _entropy(run) > 3.5:
            return True
    return False


def _entropy(text: str) -> float:
    """Bits per character."""
    total = len(text)
    return -sum(n / total * math.log2(n / total) for n in Counter(text).values())


def answer_string(text: str, letters: int) -> bool:
    """Whether ``text`` is nothing but choice letters, more than an ordered list of them."""
    if re.fullmatch(r"[0-4]+", text):
        return len(text) >= letters
    if not re.fullmatch(f"(?:{LETTERS_ONLY.pattern})+", text):
        return False
    found = re.findall(r"[A-Ha-h]", text)
    return len(found) >= letters and len(set(found)) < len(found)


def _table(path: str, node: ast.List | ast.Tuple | ast.Set | ast.Dict, limits: StaticLimits) -> Iterator[Finding]:
    held = [item.value for item in ast.walk(node) if isinstance(item, ast.Constant)]
    if len(held) > limits.table_items:
        message = f"a table of {len(held)} constants; at most {limits.table_items}"
        yield Finding(rule="S13", path=path, line=node.lineno, message=message)
    values = node.values if isinstance(node, ast.Dict) else node.elts
    letters = [v.value for v in values if isinstance(v, ast.Constant) and _is_letter(v.value)]
    if len(letters) >= limits.answer_letters and len(set(letters)) < len(letters):
        yield Finding(rule="S13", path=path, line=node.lineno, message=f"a table of {len(letters)} choice letters")
    places = [v.value for v in values if isinstance(v, ast.Constant) and type(v.value) is int and 0 <= v.value < 5]
    if len(places) >= limits.answer_letters and len(set(places)) < len(places) == len(values):
        yield Finding(rule="S13", path=path, line=node.lineno, message=f"a table of {len(places)} places of choices")


def _is_letter(value: object) -> bool:
    return isinstance(value, str) and len(value) == 1 and "A" <= value <= "H"


def check_json(path: str, value: object, data: DataWords, limits: StaticLimits) -> Iterator[Finding]:
    """S11, S12 and S13 for a .json file, by the same parameters."""
    leaves = list(_leaves(value))
    if len(leaves) > limits.table_items:
        yield Finding(rule="S13", path=path, message=f"{len(leaves)} values; at most {limits.table_items}")
    strings = [leaf for leaf in leaves if isinstance(leaf, str)]
    yield from check_strings(path, [(text, 0) for text in strings], data)
    for text in strings:
        if len(text) > limits.string_chars or encoded(text, limits.run_chars):
            yield Finding(rule="S12", path=path, message=f"long or encoded text: {escape(text, 60)}")
        if answer_string(text, limits.answer_letters):
            yield Finding(rule="S13", path=path, message=f"a string of choice letters: {escape(text, 60)}")
    letters = [text for text in strings if _is_letter(text)]
    if len(letters) >= limits.answer_letters and len(set(letters)) < len(letters):
        yield Finding(rule="S13", path=path, message=f"{len(letters)} choice letters")


def _leaves(value: object) -> Iterator[object]:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Mapping):
            pending.extend(item.keys())
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        else:
            yield item
