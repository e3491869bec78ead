"""From the reviewed bytes to the text that is parsed, reviewed and compiled: one and the same.

Rules S01 to S03: file names and sizes, encoding, hidden characters (CVE-2021-42574, PEP 263 cookies, tag blocks).
"""

from __future__ import annotations

import io
import re
import tokenize
import unicodedata
from collections.abc import Iterator, Mapping

from harness.display import HIDDEN
from harness.gate.interface import Finding
from harness.gate.rules import StaticLimits

FILE_NAME = re.compile(r"[a-z][a-z0-9_]{0,40}\.(py|json)")
COOKIE = re.compile(r"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
"""PEP 263, in one of the first two lines."""

BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5")
"""Letters and marks that show as nothing."""


def escape(text: str, limit: int = 300) -> str:
    """``text`` on one line with every non-ASCII and control character shown as an escape, cut at ``limit``."""
    shown = text.encode("unicode_escape").decode("ascii")
    return shown if len(shown) <= limit else shown[: limit - 3] + "..."


def check_files(files: Mapping[str, bytes], limits: StaticLimits) -> Iterator[Finding]:
    """S01: the package's names and sizes, before any content is looked at."""
    if "policy.py" not in files:
        yield Finding(rule="S01", path="policy.py", message="the package has no policy.py")
    if len(files) > limits.files:
        yield Finding(rule="S01", message=f"{len(files)} files; at most {limits.files}")
    total = sum(len(content) for content in files.values())
    if total > limits.total_bytes:
        yield Finding(rule="S01", message=f"{total} bytes in all; at most {limits.total_bytes}")
    for path, content in files.items():
        if not FILE_NAME.fullmatch(path):
            yield Finding(rule="S01", path=escape(path), message="file name outside the allow-list")
        if len(content) > limits.file_bytes:
            yield Finding(rule="S01", path=escape(path), message=f"{len(content)} bytes; at most {limits.file_bytes}")


def decode(path: str, content: bytes) -> tuple[str, list[Finding]]:
    """S02: the text of a file, or findings (then the text is empty)."""
    if content.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        return "", [Finding(rule="S02", path=path, line=1, message="byte order mark")]
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        return "", [Finding(rule="S02", path=path, line=line, message=f"invalid UTF-8 at byte {error.start}")]
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        return "", [Finding(rule="S02", path=path, line=line, message=f"NUL at byte {content.index(0)}")]
    cookie = next(_cookies(text), None)
    if cookie is not None and cookie[1].lower().replace("_", "-") not in ("utf-8", "utf8"):
        return "", [Finding(rule="S02", path=path, line=cookie[0], message=f"coding cookie {escape(cookie[1])}")]
    return text, []


def _cookies(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(re.split(r"\r\n|\r|\n", text)[:2], 1):
        if match := COOKIE.match(line):
            yield number, match[1]


def hidden(char: str) -> bool:
    """Whether a reader would not see the character for what it is."""
    if char.isascii():
        return (char < " " and char not in "\n\t") or char == "\x7f"
    point = ord(char)
    variation = 0xFE00 <= point <= 0xFE0F or 0xE0100 <= point <= 0xE01EF
    return variation or char in BLANK_LETTERS or unicodedata.category(char) in HIDDEN


def check_characters(path: str, text: str) -> Iterator[Finding]:
    """S03: hidden characters anywhere, one finding a line; non-ASCII identifiers."""
    for number, line in enumerate(text.split("\n"), 1):
        found = sorted({char for char in line if hidden(char)})
        if found:
            names = " ".join(escape(char) for char in found[:5])
            yield Finding(rule="S03", path=path, line=number, message=f"hidden characters {names}")
    if not path.endswith(".py") or text.isascii():
        return
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME and not token.string.isascii():
                message = f"identifier {escape(token.string)} is not ASCII"
                yield Finding(rule="S03", path=path, line=token.start[0], message=message)
    except (tokenize.TokenError, SyntaxError):  # the parser names the error and its place (S04)
        return
