"""Intake rules I01 to I03: what a candidate's tree may be, decided on names and sizes before any content is read."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

NAME = re.compile(r"[a-z][a-z0-9_]*\.(py|json)")
REGULAR = "100644"
KINDS = {"120000": "a symbolic link", "160000": "a submodule", "040000": "a folder", "100755": "an executable"}
MOST_REASONS = 20


class IntakeRejected(Exception):
    """A candidate's files are not a package. ``reasons`` name rule and path; ``str`` is one line."""

    def __init__(self, reasons: Iterable[str]) -> None:
        found = tuple(reasons)
        self.reasons = found[:MOST_REASONS]
        more = f" (and {len(found) - MOST_REASONS} more)" if len(found) > MOST_REASONS else ""
        super().__init__("; ".join(self.reasons) + more)


@dataclass(frozen=True, slots=True)
class IntakeLimits:
    """Caps of I02, as in the constitution. Not given by the source; they keep a package within a reviewer's window."""

    files: int = 12
    file_bytes: int = 48_000
    total_bytes: int = 64_000


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of a tree: its mode, name, object id (empty before it is stored) and size in bytes."""

    mode: str
    path: str
    oid: str
    size: int


def check_entries(entries: Iterable[Entry], limits: IntakeLimits) -> list[str]:
    """Reasons against a listing, in its order; empty for a package. Looks at no content."""
    reasons: list[str] = []
    seen: set[str] = set()
    count = total = 0
    for entry in entries:
        count += 1
        total += entry.size
        if len(reasons) <= MOST_REASONS:
            reasons.extend(_entry_reasons(entry, seen, limits))
        seen.add(entry.path)
    if count > limits.files:
        reasons.insert(0, f"I02: {count} files; at most {limits.files}")
    if total > limits.total_bytes:
        reasons.insert(0, f"I02: {total} bytes in all; at most {limits.total_bytes}")
    if not reasons and "policy.py" not in seen:
        reasons.append("I01: the package has no policy.py")
    return reasons


def _entry_reasons(entry: Entry, seen: set[str], limits: IntakeLimits) -> Iterable[str]:
    shown = f"{entry.path[:80]!a}"
    if entry.mode != REGULAR:
        yield f"I01: {shown} has mode {entry.mode} ({KINDS.get(entry.mode, 'not a regular file')})"
    if any(_is_git(part) for part in re.split(r"[/\\]", entry.path)):
        yield f"I01: {shown} is a name that git keeps for itself"
    elif NAME.fullmatch(entry.path) is None or len(entry.path) > 64:
        yield f"I01: {shown} is not a name of the form [a-z][a-z0-9_]*.py or .json"
    if entry.path in seen:
        yield f"I01: {shown} stands twice in the tree"
    if entry.size > limits.file_bytes:
        yield f"I02: {shown} has {entry.size} bytes; at most {limits.file_bytes}"


def _is_git(part: str) -> bool:
    """Whether a path component means git's own folder or files on some file system."""
    plain = "".join(c for c in unicodedata.normalize("NFC", part) if unicodedata.category(c) != "Cf")
    plain = plain.casefold().rstrip(" .").split(":", 1)[0]
    return plain.startswith(".git") or re.fullmatch(r"git~\d+", plain) is not None


def check_texts(files: Mapping[str, bytes]) -> list[str]:
    """Reasons of I03: every file is plain UTF-8 without byte order mark or NUL; offsets are in bytes."""
    reasons: list[str] = []
    for path, content in sorted(files.items()):
        shown = f"{path[:80]!a}"
        if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
            reasons.append(f"I03: {shown} begins with a byte order mark")
        elif (nul := content.find(b"\0")) >= 0:
            reasons.append(f"I03: {shown} has a NUL at byte {nul}")
        else:
            try:
                content.decode("utf-8")
            except UnicodeDecodeError as error:
                reasons.append(f"I03: {shown} is not UTF-8 at byte {error.start}")
    return reasons
