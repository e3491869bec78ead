"""Text and data made safe for a page. Everything that a run holds is hostile until it went through here."""

from __future__ import annotations

import base64
import json
import zlib
from typing import Any

from harness.display import visible

TEXT_CHARS = 20_000
"""Of one text; longer ones are cut, and end in ``...``."""
CODE_CHARS = 60_000
"""Of one difference between two packages: the largest package that intake allows, once."""


def shown(text: str, limit: int = TEXT_CHARS) -> str:
    """``text`` with everything that hides, reorders or controls written as an escape; line ends and tabs stay."""
    cut = text[:limit] + (" ..." if len(text) > limit else "")
    return "\n".join("\t".join(map(_part, line.split("\t"))) for line in cut.split("\n"))


def line(text: str, limit: int = 200) -> str:
    """The same on one line."""
    return visible(" ".join(text.split()), limit)


def _part(text: str) -> str:
    return text if text.isprintable() else visible(text, len(text))


def cleaned(value: Any) -> Any:
    """A JSON value in which every text, keys too, went through ``shown``."""
    if isinstance(value, str):
        return shown(value)
    if isinstance(value, dict):
        return {shown(str(key)): cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [cleaned(inner) for inner in value]
    return value


def embedded(value: object) -> str:
    """JSON for a ``<script type="application/json">``: ASCII, and no character that could end the element."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def packed(value: object) -> str:
    """JSON, deflated (zlib format), in base64: what the page unpacks when it is looked at."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return base64.b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")
