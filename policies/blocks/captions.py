"""Raw captions in the place of the five fields: the same retrieval over each window's text as one field."""

from __future__ import annotations

from collections.abc import Sequence

from policies.blocks.events import EventMemory, Record
from policies.blocks.memory import window_text
from policies.contract import Window


class CaptionMemory(EventMemory):
    """All that captions and transcript say stands in EVENT, nothing in the other fields."""

    def observe(self, windows: Sequence[Window], records: Sequence[Record | None] = ()) -> None:
        """Take in the next windows; ``records`` are not looked at."""
        super().observe(windows, [Record(window_text(window), (), "", "", "") for window in windows])
