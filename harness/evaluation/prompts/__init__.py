"""Prompts of the answer model, as Jinja files. A changed wording is a new version under a new name."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.models.interface import ChatMessage
from policies.contract import Read

VERSION = "read_v1"
OPEN_VERSION = "open_v1"


@cache
def _environment() -> Environment:
    """Plain text: no autoescape. Untrusted text enters as values only and is never compiled as a template."""
    folder = Path(__file__).resolve().parent
    return Environment(
        loader=FileSystemLoader(folder),
        undefined=StrictUndefined,
        autoescape=False,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_read(read: Read) -> tuple[ChatMessage, ChatMessage]:
    """System and user message of one Read, without its frames."""
    return _rendered(VERSION, read)


def render_open(read: Read) -> tuple[ChatMessage, ChatMessage]:
    """The same for a question without choices: the context of the Read, without the policy's instructions, which
    speak of choices."""
    return _rendered(OPEN_VERSION, read)


def _rendered(version: str, read: Read) -> tuple[ChatMessage, ChatMessage]:
    """Both messages of a version of the prompt.

    Everything from the data and the policy stands between fences that carry a digest of that very text, so that
    no text can close its own fence.
    """
    values = {
        "question": read.question,
        "choices": dict(read.choices),
        "context": read.context,
        "instructions": read.instructions,
        "frames": len(read.frames),
        "fence": _fence(read),
    }
    system = _environment().get_template(f"{version}_system.jinja").render(values)
    user = _environment().get_template(f"{version}_user.jinja").render(values)
    return ChatMessage("system", system.strip()), ChatMessage("user", user.strip())


def _fence(read: Read) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for text in (read.question, *read.choices.values(), read.context, read.instructions):
        digest.update(text.encode("utf-8", "surrogatepass") + b"\0")
    return digest.hexdigest()
