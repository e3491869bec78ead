"""Bytes of a text file as text: UTF-8, UTF-16 or GB18030, also line by line where a file mixes them."""

from __future__ import annotations

import codecs
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.data.native import MAX_TEXT
from harness.errors import UserError

MOST_BYTES = 256 << 20
"""Largest text file that is read."""
MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
"""Byte order marks; those of UTF-32 begin with UTF-16's."""
THREE_BYTES = re.compile(rb"[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
"""What Chinese looks like in UTF-8."""
LATIN_ENDS = "\u0180"
"""Letters of Western languages are below it."""
FOREIGN_RUN = re.compile(r"[^\x00-\x7f]+")
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
"""Control characters, marks of direction, invisible characters."""


@dataclass(frozen=True, slots=True)
class Decoded:
    """A file's text with ``\\n`` between lines, and the encoding it was read as where that is not UTF-8."""

    text: str
    encoding: str = ""


def read_text(file: Path, encoding: str | None = None) -> Decoded:
    """The text of ``file``; ``encoding`` is what the user says it is. Raises UserError."""
    try:
        if file.stat().st_size > MOST_BYTES:
            raise UserError(f"{file}: more than {MOST_BYTES >> 20} MiB of text; split it")
        content = file.read_bytes()
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from None
    found = _told(content, encoding, file) if encoding else _guessed(content, file)
    text = found.text.replace("\ufeff", "")  # marks stand inside, too, where files were joined
    if not text.strip():
        raise UserError(f"{file}: is empty; give a file with text, or leave it out")
    return Decoded(text.replace("\r\n", "\n").replace("\r", "\n"), found.encoding)


def one_line(text: str, place: str) -> str:
    """``text`` on one line: control characters and runs of white space become one space. Raises UserError: too long."""
    text = " ".join(CONTROL.sub(" ", text).split())
    if len(text) > MAX_TEXT:
        raise UserError(f"{place}: a text of {len(text)} characters, at most {MAX_TEXT} are read; split it")
    return text


def parse_json(text: str, place: str) -> Any:
    """The value of a JSON text. Raises UserError."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UserError(f"{place}: is not JSON; correct it") from None


def _told(content: bytes, encoding: str, file: Path) -> Decoded:
    try:
        return Decoded(content.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding))
    except LookupError:
        raise UserError(f"--encoding {encoding}: is no encoding; for example utf-8, gb18030, big5, cp1252") from None
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise UserError(f"{file}:{line}: is not {encoding}; name another --encoding") from None


def _guessed(content: bytes, file: Path) -> Decoded:
    for mark, encoding in MARKS:
        if content.startswith(mark):
            try:
                return Decoded(content.decode(encoding), "" if encoding == "utf-8-sig" else encoding.upper())
            except UnicodeDecodeError:
                if encoding != "utf-8-sig":
                    raise UserError(f"{file}: begins as {encoding} and is cut or damaged; copy it again") from None
                content = content[len(mark) :]
    if b"\0" in content:
        return _without_mark(content, file)
    try:
        return Decoded(content.decode())
    except UnicodeDecodeError:
        return _mixed(content, file)


def _without_mark(content: bytes, file: Path) -> Decoded:
    """UTF-16 without its mark: line ends, digits and spaces have a zero byte each, all on the same side."""
    encoding = "utf-16-be" if content[::2].count(0) > content[1::2].count(0) else "utf-16-le"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text or not any(c in text for c in "\n "):
        raise UserError(f"{file}: is not text; give captions or a transcript")
    return Decoded(text, encoding.upper())


def _mixed(content: bytes, file: Path) -> Decoded:
    """Each line for itself, for where files of both encodings were joined."""
    lines = [_line(raw) for raw in content.split(b"\n")]
    chinese = any(sure and text is not None and not text.isascii() for text, sure in lines)
    for number, (text, sure) in enumerate(lines, 1):
        if text is None or not (sure or chinese):
            raise UserError(
                f"{file}:{number}: is neither UTF-8 nor GB18030 text; name the file's --encoding (cp1252, big5, ...)"
            )
    return Decoded("\n".join(str(text) for text, _ in lines), "GB18030, at least in part")


def _line(raw: bytes) -> tuple[str | None, bool]:
    """One line of a file that is not UTF-8 as a whole, and whether that is sure; None where neither encoding fits.

    Short words of GB18030 can be UTF-8 by chance, as two-byte letters of other scripts, so only three-byte
    characters prove UTF-8. Western letters of one byte can be GB18030 by chance, together with the letter after.
    """
    utf8 = _decoded(raw, "utf-8")
    if utf8 is not None and (raw.isascii() or THREE_BYTES.search(raw)):
        return utf8, True
    chinese = _decoded(raw, "gb18030")
    if chinese is None:
        return utf8, utf8 is not None
    words = [len(run[0]) == 1 and _in_a_word(chinese, run) for run in FOREIGN_RUN.finditer(chinese)]
    if not all(words):
        return chinese, True
    return (utf8, True) if utf8 is not None and max(utf8) < LATIN_ENDS else (chinese, False)


def _decoded(raw: bytes, encoding: str) -> str | None:
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError:
        return None


def _in_a_word(text: str, run: re.Match[str]) -> bool:
    """Whether a single character stands in or at the end of a word of ASCII letters, as ``caf\u8305`` has it."""
    return run.start() > 0 and text[run.start() - 1].isascii() and text[run.start() - 1].isalpha()
