"""Commit messages: what ``git log --graph`` tells somebody who has never seen the tool.

Hypotheses and causes are hostile text. Control and invisible characters are shown as escapes, and a message body can
forge no trailer: trailers are always the last paragraph, written here, one line each.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from harness.display import visible

SUBJECT_CHARS = 100
BODY_CHARS = 20_000
VALUE_CHARS = 300
KEY = re.compile(r"[A-Z][A-Za-z0-9-]*")


def compose(message: str, trailers: Mapping[str, str]) -> bytes:
    """The bytes of a commit message: first line of ``message``, its other lines wrapped, then the trailers.

    There must be at least one trailer, so that no paragraph of the body is ever the last one.
    """
    if not trailers or any(KEY.fullmatch(key) is None for key in trailers):
        raise ValueError("a commit needs trailers with keys like Audit-Head")
    subject, _, body = message.replace("\r\n", "\n").strip().partition("\n")
    parts = [visible(subject, SUBJECT_CHARS).strip("-# ") or "(no title)"]
    parts += _paragraphs(body[:BODY_CHARS])
    parts.append("\n".join(f"{key}: {_one_line(value)}" for key, value in trailers.items()))
    return ("\n\n".join(parts) + "\n").encode("utf-8")


def _paragraphs(body: str) -> list[str]:
    paragraphs = []
    for paragraph in re.split(r"\n\s*\n", body):
        lines = [_line(line) for line in paragraph.split("\n") if line.strip()]
        if lines:
            paragraphs.append("\n".join(lines))
    return paragraphs


def _line(line: str) -> str:
    """One line of a body, wrapped. A leading ``---`` would end the message for git's tools, so it is pushed in."""
    wrapped = textwrap.wrap(visible(line.rstrip(), BODY_CHARS), 76, break_long_words=False, break_on_hyphens=False)
    return "\n".join(f" {part}" if part.startswith(("---", "#")) else part for part in wrapped)


def _one_line(value: str) -> str:
    return visible(" ".join(value.split()), VALUE_CHARS).strip() or "none"


def parse_trailers(message: str) -> dict[str, str]:
    """The trailers of a message made by ``compose``."""
    last = message.rstrip("\n").rsplit("\n\n", 1)[-1]
    pairs = (line.split(": ", 1) for line in last.split("\n") if ": " in line)
    return {key: value for key, value in pairs if KEY.fullmatch(key)}


def candidate_branch(iteration: int, title: str) -> str:
    """``candidate/NNNN-slug``: the branch of an iteration's candidate, safe for any title."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.casefold()).strip("-")[:40].strip("-")
    return f"candidate/{iteration:04d}-{slug or 'untitled'}"
