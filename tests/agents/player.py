"""A model that plays a part: it calls tools as a script says, over HTTP, and looks at what it is shown."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

Action = tuple[str, dict[str, Any]]
"""A tool's name and its arguments."""
Turn = "Sequence[Action] | str | dict[str, Any]"
"""What one reply holds: calls, a text as it stands, or a whole choice."""


def called(actions: Sequence[Action], text: str | None = None) -> dict[str, Any]:
    """A choice that calls tools through the tool interface."""
    calls = [
        {"id": f"c{n}", "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for n, (name, arguments) in enumerate(actions)
    ]
    return {"finish_reason": "tool_calls", "message": {"content": text, "tool_calls": calls}}


def written(actions: Sequence[Action]) -> str:
    """The same calls in the text protocol."""
    parts = []
    for name, arguments in actions:
        lines = [f"<call {name}>"]
        rest = dict(arguments)
        search, replace = rest.pop("search", None), rest.pop("replace", None)
        long = {key: value for key, value in rest.items() if "\n" in str(value)}
        lines += [f"{key}: {value}" for key, value in rest.items() if key not in long]
        for key, value in long.items():
            lines += [f"{key}:", str(value)]
        if search is not None:
            lines += ["<<<<<<< SEARCH", search, "=======", str(replace), ">>>>>>> REPLACE"]
        parts.append("\n".join([*lines, "</call>"]))
    return "I go on.\n" + "\n".join(parts)


class Player:
    """Answers as the scripts of its models say; the last turn of a script is played for ever."""

    def __init__(self, scripts: dict[str, Sequence[Any]], write: Callable[[Sequence[Action]], Any] = called) -> None:
        self.scripts, self.write = scripts, write
        self.results: dict[str, list[str]] = {}

    def __call__(self, body: dict[str, Any]) -> Any:
        name = body["model"]
        turns = self.scripts[name]
        said = sum(m["role"] == "assistant" for m in body["messages"])
        self.results[name] = [str(m["content"]) for m in body["messages"] if m["role"] != "assistant"]
        turn = turns[min(said, len(turns) - 1)]
        return self.write(turn) if isinstance(turn, list | tuple) else turn
