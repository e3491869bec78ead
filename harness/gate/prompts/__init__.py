"""Prompts of the reviewer, Jinja files; a missing variable is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=True
)


def render_prompt(name: str, **values: Any) -> str:
    """The prompt ``name`` (without ``.jinja``); values are data and are never templates themselves."""
    return _TEMPLATES.get_template(f"{name}.jinja").render(**values)
