"""The audit chain: one line for each committed stage, each holding the hash of the line before it.

``hash`` = sha256 of the previous line's hash and the line's canonical JSON without ``hash``. The lines live in run.db;
``audit.jsonl`` is completed from there. The chain shows accidents and edits; it does not stop the folder's owner.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict, ValidationError

FIRST = "0" * 64
"""What the first line holds as the hash before it."""


class AuditLine(BaseModel):
    """One committed stage. ``at``: Unix time in seconds; ``outcome``, ``attempt``: sha256 of the JSON stored."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    number: int
    at: float
    iteration: int
    stage: str
    summary: str
    outcome: str
    attempt: str | None = None
    refs: Mapping[str, str | None]
    previous: str
    hash: str = ""

    def sealed(self) -> AuditLine:
        """The line with its own hash filled in."""
        return self.model_copy(update={"hash": self._digest()})

    def intact(self) -> bool:
        """Whether the hash is that of the line's content."""
        return self.hash == self._digest()

    def text(self) -> str:
        """The line as stored: canonical JSON (sorted keys, ASCII), without a newline."""
        return canonical(self.model_dump())

    def _digest(self) -> str:
        content = canonical(self.model_dump(exclude={"hash"}))
        return hashlib.sha256((self.previous + content).encode("ascii")).hexdigest()


def digest(text: str) -> str:
    """sha256 of a stored text, in hexadecimal."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def canonical(value: object) -> str:
    """JSON with one form for one value: sorted keys, no spaces, ASCII only, finite numbers only."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def broken_line(texts: Sequence[str]) -> int | None:
    """Number (from 1) of the first line that does not continue the chain, or None."""
    previous = FIRST
    for number, text in enumerate(texts, 1):
        try:
            line = AuditLine.model_validate_json(text)
        except ValidationError:
            return number
        if line.number != number or line.previous != previous or not line.intact() or line.text() != text:
            return number
        previous = line.hash
    return None


class Edited(Exception):
    """A file that is completed from run.db holds a line that run.db does not. ``line`` counts from 1."""

    def __init__(self, line: int, problem: str) -> None:
        self.line = line
        super().__init__(problem)


def whole_prefix(content: bytes, texts: Sequence[str], least: int) -> int:
    """How many bytes of a line file are good: a prefix of ``texts``, each with its newline.

    A last line without its newline is torn by a kill and not counted. At least ``least`` lines must be there: a kill
    can cost only what was written since. Raises Edited for anything else.
    """
    lines = content.split(b"\n")[:-1]
    for number, line in enumerate(lines, 1):
        if number > len(texts):
            raise Edited(number, "is not in run.db")
        if line != texts[number - 1].encode("ascii"):
            raise Edited(number, "is not what was written")
    if len(lines) < least:
        raise Edited(len(lines) + 1, "is missing")
    return sum(len(line) + 1 for line in lines)
