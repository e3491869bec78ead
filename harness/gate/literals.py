"""Rules on what a candidate carries as data: S11 words of the data, S12 encoded text, S13 tables and answer keys.

A policy is code that reads a stream; answers, names and phrases of the development data in it are a shortcut.
"""

from __future__ import annotations

import ast
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from harness.gate.interface import Finding
from harness.gate.rules import StaticLimits
from harness.gate.source import escape
from principles.h0 import StaticRules

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
"""Words inside prose and identifiers alike: ``askAlice_2`` is ask, alice, 2."""
IDENTIFIER = re.compile(r"[a-z][a-z0-9_-]*")
RUN = re.compile(r"[A-Za-z0-9+/=_-]+")
HEX = re.compile(r"[0-9a-fA-F]{32,}")
LETTERS_ONLY = re.compile(r"[A-Ha-h][\s,;|]*")
PHRASE_WORDS = 5


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


def data_words(names: Iterable[str], ids: Iterable[str], questions: Iterable[str]) -> DataWords:
    """The words of a development split.

    ``names`` are people's names; ``ids`` the data set's own question and video ids (those of under six characters
    are left out: they collide with ordinary constants); ``questions`` are question and choice texts. A phrase is
    five words in a row that at most two texts share: what recurs ("when was the last time") is a form of question,
    which a policy may know, and what is rare is an item, which it may not.
    """
    counts: Counter[tuple[str, ...]] = Counter()
    for question in questions:
        counts.update(set(_phrases([word for word, _ in words(question)])))
    parts = {part.casefold() for name in names for part in WORD.findall(name) if len(part) >= 3}
    return DataWords(
        names=frozenset(parts),
        ids=frozenset(i.casefold() for i in ids if len(i) >= 6),
        phrases=frozenset(phrase for phrase, count in counts.items() if count <= 2),
    )


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
        if phrase in data.phrases:
            message = f"words of a question: {escape(' '.join(phrase), 80)}"
            yield Finding(rule="S11", path=path, line=found[start][1], message=message)


def check_literals(path: str, tree: ast.AST, limits: StaticLimits) -> Iterator[Finding]:
    """S12 and S13 over the constants of one module."""
    docstrings = _docstrings(tree)
    constants, characters = 0, 0
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant):
            constants += 1
            if isinstance(node.value, str) and id(node) not in docstrings:
                characters += len(node.value)
            yield from _constant(path, node, id(node) in docstrings, limits)
        elif isinstance(node, ast.List | ast.Tuple | ast.Set | ast.Dict):
            yield from _table(path, node, limits)
    if constants > limits.constants:
        yield Finding(rule="S13", path=path, message=f"{constants} constants; at most {limits.constants}")
    if characters > limits.strings_chars:
        message = f"{characters} characters of string constants; at most {limits.strings_chars}"
        yield Finding(rule="S13", path=path, message=message)


def _docstrings(tree: ast.AST) -> set[int]:
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


def _is_letter(value: object) -> bool:
    return isinstance(value, str) and len(value) == 1 and "A" <= value <= "H"


def check_json(path: str, value: object, limits: StaticLimits) -> Iterator[Finding]:
    """S12 and S13 for a .json file, by the same parameters."""
    leaves = list(_leaves(value))
    if len(leaves) > limits.table_items:
        yield Finding(rule="S13", path=path, message=f"{len(leaves)} values; at most {limits.table_items}")
    strings = [leaf for leaf in leaves if isinstance(leaf, str)]
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
