"""Tools that a role's model may call: typed arguments, one line for every mistake, bounded results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.display import visible
from harness.models.interface import Tool

RESULT_CHARS = 8_000
"""Of one result; about 2,000 tokens. Not given by the source."""


class ToolError(Exception):
    """A call that cannot be served; one line that goes back to the model."""


class Arguments(BaseModel):
    """Base of every tool's arguments; the class docstring tells the model what the tool does."""

    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


@dataclass(frozen=True, slots=True)
class Offered:
    """One tool: its name, its arguments and the work that it does."""

    name: str
    arguments: type[Arguments]
    work: Callable[[Any], str]
    """From arguments to the result's text. Raises ToolError."""


class Box:
    """The tools of one role."""

    def __init__(self, offered: Iterable[Offered]) -> None:
        self._offered = {item.name: item for item in offered}

    @property
    def tools(self) -> tuple[Tool, ...]:
        """As they are described to a model."""
        return tuple(
            Tool(item.name, " ".join((item.arguments.__doc__ or "").split()), _schema(item.arguments))
            for item in self._offered.values()
        )

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Serve one call. Raises ToolError; never anything else for what a model may write."""
        offered = self._offered.get(name)
        if offered is None:
            raise ToolError(f"there is no tool {visible(name, 60)}; there are {', '.join(self._offered)}")
        try:
            given = offered.arguments.model_validate(dict(arguments))
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            where = ".".join(str(part) for part in first["loc"])
            raise ToolError(f"{name}: {visible(where, 60)}: {visible(first['msg'], 200)}") from None
        return clipped(offered.work(given))


def clipped(text: str, limit: int = RESULT_CHARS) -> str:
    """``text`` cut to ``limit`` characters, which it says."""
    return text if len(text) <= limit else f"{text[:limit]}\n... ({len(text) - limit} more characters left out)"


def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    """JSON schema without titles, which only cost tokens."""
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    for field in schema.get("properties", {}).values():
        field.pop("title", None)
    return {"properties": {}, **schema}
