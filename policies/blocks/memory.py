"""What a policy keeps of the stream: the windows observed so far and indexes over exactly them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from policies.blocks.postings import Postings
from policies.blocks.store import Windows
from policies.blocks.tokens import terms
from policies.contract import Window


def window_text(window: Window) -> str:
    """All text of a window: its caption lines, then its transcript lines with their speakers."""
    return "\n".join((*window.captions, *spoken(window)))


def spoken(window: Window) -> tuple[str, ...]:
    """Its transcript lines with their speakers."""
    return tuple(f"{line.speaker}: {line.text}" if line.speaker else line.text for line in window.transcript)


class Memory:
    """Raw memory: the observed windows and a BM25 index of their text. Window i is document i of ``text``."""

    def __init__(self) -> None:
        self.windows = Windows()
        self.text = Postings()

    def __len__(self) -> int:
        return len(self.windows)

    def observe(self, windows: Sequence[Window]) -> None:
        """Take in the next windows of the stream."""
        for window in windows:
            self.windows.append(window)
            self.text.add(Counter(terms(window_text(window))))

    def references(self, positions: Sequence[int]) -> tuple[int, ...]:
        """``Window.index`` of the windows at ``positions``, each once, for ``Answer.evidence``."""
        return tuple(dict.fromkeys(self.windows.index_of(position) for position in positions))
