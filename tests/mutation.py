"""``python -m tests.mutation``: change every constant that the sources give, one at a time; a golden test must fail.

Each change is made in a temporary copy, in which a forked child runs the test files named with it. Prints a table of
what was changed and which test noticed, and exits with 1 where none did.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy  # noqa: F401 - before the fork, so that every child has it
import pytest
import simplemma  # noqa: F401

ROOT = Path(__file__).resolve().parent.parent
COPIED = (
    "harness",
    "sandbox",
    "policies",
    "meta_memory",
    "principles",
    "tests",
    "pyproject.toml",
    "Dockerfile.sandbox",
)
GOLDENS = "tests/policies/test_goldens.py"
KEYS = "tests/policies/test_keys.py"
CAUSALITY = "tests/sandbox/test_causality.py"


@dataclass(frozen=True)
class Mutation:
    """Replace the first ``old`` after ``marker``, which occurs once in the file, by ``new``."""

    path: str
    marker: str
    old: str
    new: str
    tests: str = GOLDENS

    @property
    def name(self) -> str:
        path, place = self.path.removeprefix("policies/"), self.marker[:32].strip()
        return " ".join(f"{path}: {place}: {self.old} -> {self.new}".split())

    def apply(self, text: str) -> str:
        """The changed text. Raises ValueError where marker or constant is not there: the list is out of date."""
        if text.count(self.marker) != 1:
            raise ValueError(f"{self.path}: {self.marker!r} occurs {text.count(self.marker)} times, not once")
        at = text.index(self.marker)
        found = text.find(self.old, at)
        if found < 0:
            raise ValueError(f"{self.path}: no {self.old!r} after {self.marker!r}")
        return text[:found] + self.new + text[found + len(self.old) :]


def _words(path: str, marker: str, listed: str, separator: str, quoted: str = "") -> Iterator[Mutation]:
    """Each of the listed words replaced by one that no text holds."""
    for word in listed.split(separator):
        yield Mutation(path, marker, f"{quoted}{word}{quoted}", f"{quoted}zzz{quoted}")


def mutations() -> tuple[Mutation, ...]:
    """One for each constant, word and rule that the sources give.

    Not "most often": the exclusion also names "often", so that nothing can depend on it.
    """
    blocks = "policies/blocks/"
    fields, packing, support = blocks + "fields.py", blocks + "packing.py", blocks + "support.py"
    recency, need, weak = blocks + "recency.py", blocks + "visual_need.py", blocks + "weak_text.py"
    texts, keys = blocks + "instructions.py", blocks + "keys.py"
    return (
        Mutation(fields, "ALPHA = ", "1.0", "1.5"),
        Mutation(fields, "BETA = ", "2.0", "1.5"),
        Mutation(fields, "GAMMA = ", "4.0", "3.5"),
        Mutation(fields, "PHRASE = ", "5.0", "4.5"),
        Mutation(fields, "CHOICE_WEIGHTS: ", '"PEOPLE": 3.5', '"PEOPLE": 3.0'),
        Mutation(fields, "def totals", "&", "|"),
        Mutation(fields, "def totals", "(asked > 0)", "(asked >= 0)"),
        Mutation(fields, 'weights["PLACE"] +=', "WHERE_PLACE", "0"),
        Mutation(fields, 'weights["PEOPLE"] +=', "WHO_PEOPLE", "0"),
        Mutation(fields, 'weights["DIALOGUE"] +=', "SPEECH_DIALOGUE", "0"),
        Mutation(fields, "_WHERE = ", "where", "zzz"),
        Mutation(fields, "_WHO = ", "who|", "zzz|"),
        Mutation(fields, "_WHO = ", "|whom", "|zzz"),
        *_words(blocks + "extract.py", "FIELDS = ", "EVENT PEOPLE OBJECTS PLACE DIALOGUE", " ", '"'),
        *_words(recency, "_LATE = ", "last latest previous", " "),
        *_words(recency, "_EARLY = ", "first earliest", " "),
        Mutation(recency, "return (rows + (rows > 0)", "(rows > 0)", "(rows >= 0)"),
        Mutation(recency, "near = np.flatnonzero", "& (scores > 0)", ""),
        Mutation(support, "def support_counts", "&", "|"),
        Mutation(support, "def support_counts", "np.count_nonzero(matched", "np.sum(row * matched"),
        Mutation(packing, "GLOBALS = ", "6", "7"),
        Mutation(packing, "GLOBALS = ", "6", "5"),
        Mutation(packing, "EACH = ", "3", "4"),
        Mutation(packing, "EACH = ", "3", "2"),
        Mutation(packing, "LIMIT = ", "12_500", "12_600"),
        Mutation(packing, "LIMIT = ", "12_500", "12_000"),
        *_words(
            packing,
            "support = ",
            "question_type memory_mode temporal_hint eligible_records field_cooccurrence_count",
            " ",
        ),
        Mutation(packing, "def _line", "score {slot", "{slot"),
        Mutation("policies/contract.py", "context_chars: int = ", "12_500", "12_600"),
        Mutation("policies/contract.py", "frames: int = ", "4", "5"),
        Mutation(blocks + "verification.py", "FRAMES = ", "4", "5"),
        Mutation(blocks + "verification.py", "FRAMES = ", "4", "3"),
        Mutation(blocks + "verification.py", "choice=verdict or", "verdict or text.choice", "verdict"),
        *_words(need, "FREQUENCY = ", "how many times,number of times,usually", ",", '"'),
        *_words(need, "FREQUENCY = ", "often,frequency,frequently", ",", '"'),
        Mutation(need, "FREQUENCY = ", r"past\s", r"zzz\s"),
        Mutation(need, "FREQUENCY = ", r"\d+", r"\w+"),
        *_words(need, "_FOLLOWER = ", "is|was|were|appears?|looks?|wearing|wears|holding|holds|visible|shown", "|"),
        Mutation(need, "_FOLLOWER = ", "appears?", "appears"),
        Mutation(need, "_FOLLOWER = ", "appears?", "appear"),
        Mutation(need, "_FOLLOWER = ", "looks?", "looks"),
        Mutation(need, "_FOLLOWER = ", "looks?", "look"),
        *_words(need, "_CUE = ", "wearing wears holding holds visible shown color colour", " ", '"'),
        Mutation(need, "follower = _FOLLOWER.match", ".match", ".search"),
        *_words(need, "PREFERENCE = ", "like likes prefer prefers drink drinks", " ", '"'),
        Mutation(need, "IDIOM = ", "look after", "zzz"),
        *_words(need, "POSITIONS = ", "left right above below", " "),
        Mutation(need, r'r"\b(?:who|whom', "who|", "zzz|"),
        *_words(need, r'r"\b(?:who|whom', "|whom,|whose,|with|,|together,|not|,|without,|participate,n['", ","),
        Mutation(need, r'r"\b(?:who|whom', "|not|did not|", "|did not|"),
        Mutation(need, "def _words", "re.IGNORECASE", "0"),
        Mutation(need, "def _words", r"\b(?:", "(?:"),
        Mutation(need, 'text = f"{query.type}', "{query.type} ", ""),
        Mutation(need, "return bool(TRIGGER", "and not", "or not"),
        Mutation(weak, "return not (parsed and direct", "parsed and direct", "direct"),
        Mutation(weak, "return not (parsed and direct", "direct and ", ""),
        Mutation(weak, "return not (parsed and direct", " and route in SPECIALISTS", ""),
        Mutation(weak, "return not (parsed and direct", " and first > second", ""),
        *(
            Mutation(weak, "SPECIALISTS = ", f"{name}.ROUTE", '""')
            for name in ("temporal_delta", "frequency", "relational")
        ),
        Mutation(texts, "VERIFY = ", "Current text answer is ", "The text answer is "),
        Mutation(texts, "VERIFY = ", "Inspect frames", "Look at frames"),
        Mutation(texts, "VERIFY = ", "unambiguously ", ""),
        Mutation(texts, "STRUCTURED = ", "with the EVENT", "with the text"),
        Mutation(texts, "STRUCTURED = ", "in the same record", "in the records"),
        Mutation(texts, "STRUCTURED = ", "DIALOGUE", "EVENT"),
        Mutation(texts, "STRUCTURED = ", "a habit", "a place"),
        Mutation(texts, "STRUCTURED = ", "Never choose", "Choose"),
        *(_swapped(version, *pair) for version in ("v18", "v47", "v49") for pair in pairwise(_ORDER)),
        *(
            replace(m, tests=KEYS)
            for m in _words(keys, "KEYS = ", "EVENT_ACTION DIALOGUE_MENTION OBJECT SUMMARY", " ", '"')
        ),
        Mutation("sandbox/stream.py", "windows[upto].end <= query.time", ".end", ".start", CAUSALITY),
        Mutation("sandbox/stream.py", "windows[upto].end <= query.time", "<=", "<", CAUSALITY),
    )


_ORDER = (
    "temporal_delta(self.memory, query)",
    "frequency(self.memory, query, scored)",
    "relational(self.memory, query)",
)
"""The specialists as the versions call them, in the order that the source gives."""


def _swapped(version: str, first: str, second: str) -> Mutation:
    """Two specialists in the wrong order."""
    between = "\n            or "
    return Mutation(f"policies/{version}/policy.py", "class Policy", first + between + second, second + between + first)


class _First:
    """A pytest plugin that keeps the first test that failed."""

    name = ""

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = report.nodeid.partition("::")[2]

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed and not self.name:
            self.name = "(import)"


def noticed(copy: Path, tests: str) -> str:
    """Name of the first failing test of ``tests`` in the copy, run by a forked child; empty where all pass."""
    source, sink = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(source)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 1)
        os.dup2(null, 2)
        os.chdir(copy)
        sys.path.insert(0, str(copy))
        sys.dont_write_bytecode = True
        first = _First()
        flags = ["-x", "-q", "-p", "no:cacheprovider", "-k", "not docker"]
        status = pytest.main([*flags, *(["--noconftest"] if tests == GOLDENS else []), tests], plugins=[first])
        os.write(sink, (first.name or ("" if status == 0 else f"(pytest: {status})")).encode())
        os._exit(0)
    os.close(sink)
    with os.fdopen(source) as pipe:
        name = pipe.read()
    os.waitpid(child, 0)
    return name


def main(chosen: Sequence[str]) -> int:
    """Run those mutations whose name holds one of ``chosen`` (all, where there is none)."""
    found = [m for m in mutations() if not chosen or any(part in m.name for part in chosen)]
    survived, began = 0, time.monotonic()
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "copy")
        for part in COPIED:
            source = ROOT / part
            skip = shutil.ignore_patterns("__pycache__", "*.pyc")
            shutil.copytree(source, copy / part, ignore=skip) if source.is_dir() else shutil.copy(source, copy / part)
        for tests in {m.tests for m in found}:
            if broken := noticed(copy, tests):
                print(f"{tests} fails without any change: {broken}")
                return 2
        for mutation in found:
            path = copy / mutation.path
            text = path.read_text(encoding="utf-8")
            path.write_text(mutation.apply(text), encoding="utf-8")
            killer = noticed(copy, mutation.tests)
            path.write_text(text, encoding="utf-8")
            survived += not killer
            print(f"{'ok      ' if killer else 'SURVIVED'}  {mutation.name}  [{killer}]", flush=True)
    print(f"{len(found)} changes, {survived} that no test noticed, {time.monotonic() - began:.0f} s")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
