"""Text of a candidate made safe to store and to show: no control characters, bounded."""

from __future__ import annotations

MAX_DETAIL = 2_000


def one_line(text: str, limit: int = MAX_DETAIL) -> str:
    """``text`` on one line of at most ``limit`` characters; what is not printable shows as its escape."""
    shown = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text[:limit]
    )
    return shown if len(shown) <= limit and len(text) <= limit else shown[: limit - 1] + "…"


def log_text(data: bytes, limit: int) -> str:
    """A log of at most ``limit`` bytes as text with its line ends kept and everything else escaped."""
    lines = data[:limit].decode(errors="replace").split("\n")
    return "\n".join(one_line(line, limit) for line in lines)
