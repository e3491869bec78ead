"""A corpus of candidates with what is known of each: cheat or honest. docs/rules.md describes the layout."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.agents.interface import Hypothesis
from harness.data.native import first_problem
from harness.errors import UserError
from harness.gate.source import escape
from policies import library

NAME = "corpus.toml"
MOST_BYTES = 1 << 20
"""Of the corpus file, and of one candidate's file: the gate itself refuses what is far smaller."""
MOST_FILES = 200
Folder = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$")]
Line = Annotated[str, Field(max_length=2_000)]


class Kind(StrEnum):
    """What a candidate is known to be."""

    CHEAT = "cheat"
    HONEST = "honest"


class Entry(BaseModel):
    """One candidate: the folder of its package beside the corpus file, and its hypothesis."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    folder: Folder
    kind: Kind
    way: Line
    """How it cheats, or why it looks suspicious."""
    shows: Line = ""
    """By what it is seen to cheat where no gate stands before it: ``gain``, or a mark for the corpus' own tests."""
    parent: Folder = "v01"
    """Folder of the corpus, or policy of the library, that it says it improves on."""
    title: Line
    what: Line
    why: Line = ""

    @property
    def hypothesis(self) -> Hypothesis:
        """As the author would have stated it."""
        return Hypothesis(title=self.title, what=self.what, why=self.why)


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Folder
    data: Folder = "data"
    split: Folder = "development"
    candidate: Annotated[tuple[Entry, ...], Field(min_length=1, max_length=10_000)]


@dataclass(frozen=True, slots=True)
class Corpus:
    """A corpus as read; candidates' files are read one by one."""

    name: str
    root: Path
    data: Path
    """Folder of its data set, in the native format."""
    split: str
    entries: tuple[Entry, ...]

    def files(self, name: str) -> dict[str, bytes]:
        """The package of a folder of the corpus, or of the library's policy of that name. Raises UserError."""
        folder = self.root / name
        if not folder.is_dir() or folder.is_symlink():
            if name in library.names():
                return library.load(name)
            raise UserError(f"{self.root / NAME}: no folder {name} beside it and no such policy in the library")
        return dict(_package(folder))


def _package(folder: Path) -> Mapping[str, bytes]:
    paths = sorted(path for path in folder.iterdir() if path.name != "__pycache__")
    if len(paths) > MOST_FILES:
        raise UserError(f"{folder}: {len(paths)} files; at most {MOST_FILES} are read")
    files = {}
    for path in paths:
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MOST_BYTES:
            raise UserError(f"{folder}: {escape(path.name, 80)} is no ordinary file of at most {MOST_BYTES} bytes")
        files[path.name] = path.read_bytes()
    return files


def load_corpus(root: Path) -> Corpus:
    """Read ``corpus.toml`` of a folder. Raises UserError with what is wrong and where."""
    path = root / NAME
    try:
        content = path.read_bytes()[: MOST_BYTES + 1]
        found = _File.model_validate(tomllib.loads(content.decode("utf-8")))
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}; give the folder of a corpus, see docs/rules.md") from None
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}; see docs/rules.md for the layout") from None
    except ValueError as error:
        raise UserError(f"{path}: no TOML ({escape(str(error), 120)}); see docs/rules.md for the layout") from None
    twice = [entry.folder for n, entry in enumerate(found.candidate) if entry.folder in _folders(found.candidate[:n])]
    if twice:
        raise UserError(f"{path}: the folder {twice[0]} is named twice; name it once")
    return Corpus(found.name, root, root / found.data, found.split, found.candidate)


def _folders(entries: tuple[Entry, ...]) -> set[str]:
    return {entry.folder for entry in entries}
