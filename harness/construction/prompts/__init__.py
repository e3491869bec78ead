"""Prompts of the captioner, as Jinja files; a missing variable is an error. A changed wording is a new version."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

VERSION = "caption_v1"
_TEMPLATES = Environment(loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined)


def render(part: str, **values: Any) -> str:
    """The ``system`` or ``user`` part of the prompt."""
    return _TEMPLATES.get_template(f"{VERSION}_{part}.jinja").render(**values).strip()
