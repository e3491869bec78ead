"""Showing text that nobody vouches for: candidate names, model replies, captions, file names.

Every byte that could move the cursor, change colours, reorder or hide text is shown as an escape, and rich
never sees it as markup.
"""

from __future__ import annotations

import unicodedata

from rich.text import Text

HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Unicode categories that a terminal may act on or not show: control, format, surrogate, private use, unassigned,
line and paragraph separators."""


def visible(text: str, limit: int = 2_000, keep_lines: bool = False) -> str:
    """``text`` with every control or invisible character as ``\\xNN`` or ``\\uNNNN``, cut at ``limit`` characters."""
    shown: list[str] = []
    for character in text[:limit]:
        if (keep_lines and character == "\n") or unicodedata.category(character) not in HIDDEN:
            shown.append(character)
        else:
            shown.append(ascii(character)[1:-1])
    return "".join(shown) + (" ..." if len(text) > limit else "")


def cell(text: str, style: str = "") -> Text:
    """One line of untrusted text for a rich table or line."""
    return Text(visible(text), style=style)
