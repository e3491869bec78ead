"""Values of a run as JSON that any parser takes and any terminal may show, whatever texts and figures the run holds."""

from __future__ import annotations

import json
import math
from typing import Any


def dumped(value: object, indent: int | None = None) -> str:
    """ASCII JSON. A lone surrogate becomes U+FFFD, a figure that is no number null."""
    text = json.dumps(_plain(value), indent=indent, ensure_ascii=True, allow_nan=False)
    return text.replace("\x7f", "\\u007f")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_plain(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return None if isinstance(value, float) and not math.isfinite(value) else value
