"""Prompts of the author, one Jinja file each; a missing variable is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from harness.agents.interface import Revision
from harness.gate.fence import fence

_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent), undefined=StrictUndefined, keep_trailing_newline=False
)


def render(name: str, **values: Any) -> str:
    """The prompt ``name`` (without ``.jinja``); values are data and are never templates themselves."""
    return _TEMPLATES.get_template(f"{name}.jinja").render(**values)


def required(wanted: Revision, seed: int) -> str:
    """What the gate asks for, fenced as the data that it is; part of the prompts of a revision."""
    material = "\n".join([*wanted.files.values(), *(change.model_dump_json() for change in wanted.required)])
    return render(
        "required_v2", required=wanted.required, hypothesis=wanted.hypothesis, fence=fence(material, seed)
    ).strip()
