"""Windows and texts kept in a few buffers: a window is made anew when it is asked for.

A year of waking life is 700,000 windows; as objects they would be a gigabyte that every fork copies page by page.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray

from policies.contract import Utterance, Window


class Texts:
    """Texts, one behind the other in one buffer."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._ends: array[int] = array("Q", (0,))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def extend(self, texts: Iterable[str]) -> None:
        """Keep ``texts`` under the next numbers."""
        data, ends = self._data, self._ends
        for text in texts:
            data += text.encode("utf-8", "surrogatepass")
            ends.append(len(data))

    def holding(self, numbers: Iterable[int], needle: str) -> list[int]:
        """Those of ``numbers`` whose text holds ``needle``."""
        data, ends, wanted = self._data, self._ends, needle.encode("utf-8", "surrogatepass")
        return [number for number in numbers if data.find(wanted, ends[number], ends[number + 1]) >= 0]

    def __getitem__(self, number: int) -> str:
        return self._data[self._ends[number] : self._ends[number + 1]].decode("utf-8", "surrogatepass")


class Windows(Sequence[Window]):
    """The windows observed, in order."""

    def __init__(self) -> None:
        self._starts: array[float] = array("d")
        self._ends: array[float] = array("d")
        self._numbers: array[int] = array("q")
        self._frames = bytearray()
        self._captions: array[int] = array("I")
        self._lines: array[int] = array("Q", (0,))
        """Number of the first text after each window; its captions stand first, then speaker and text in turn."""
        self._texts = Texts()

    def append(self, window: Window) -> None:
        """Take in the next window."""
        self._starts.append(window.start)
        self._ends.append(window.end)
        self._numbers.append(window.index)
        self._frames.append(window.frames)
        self._captions.append(len(window.captions))
        self._texts.extend(window.captions)
        for line in window.transcript:
            self._texts.extend((line.speaker, line.text))
        self._lines.append(len(self._texts))

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, at: int) -> Window: ...
    @overload
    def __getitem__(self, at: slice) -> list[Window]: ...
    def __getitem__(self, at: int | slice) -> Window | list[Window]:
        if isinstance(at, slice):
            return [self._made(position) for position in range(*at.indices(len(self)))]
        position = at + len(self) if at < 0 else at
        if not 0 <= position < len(self):
            raise IndexError(at)
        return self._made(position)

    def __iter__(self) -> Iterator[Window]:
        return map(self._made, range(len(self)))

    def index_of(self, position: int) -> int:
        """``Window.index`` of the window at ``position``."""
        return self._numbers[position]

    def frames(self) -> NDArray[np.bool_]:
        """Of which windows frames can be requested, shape (n,)."""
        return np.array(self._frames, np.bool_)

    def start(self, position: int) -> float:
        """Where the window starts, in seconds."""
        return self._starts[position]

    def end(self, position: int) -> float:
        """Where the window ends, in seconds."""
        return self._ends[position]

    def starts(self) -> NDArray[np.float64]:
        """Where each window starts, in seconds, shape (n,)."""
        return np.array(self._starts)

    def text(self, position: int) -> str:
        """All text of the window: its captions, then its transcript lines with their speakers, a line for each."""
        first, last = self._lines[position], self._lines[position + 1]
        texts = [self._texts[at] for at in range(first, last)]
        turn = self._captions[position]
        spoken = [
            f"{who}: {said}" if who else said for who, said in zip(texts[turn::2], texts[turn + 1 :: 2], strict=True)
        ]
        return "\n".join(texts[:turn] + spoken)

    def _made(self, position: int) -> Window:
        first, last = self._lines[position], self._lines[position + 1]
        turn = first + self._captions[position]
        texts = self._texts
        return Window(
            self._numbers[position],
            self._starts[position],
            self._ends[position],
            tuple([texts[at] for at in range(first, turn)]),
            tuple([Utterance(texts[at], texts[at + 1]) for at in range(turn, last, 2)]),
            bool(self._frames[position]),
        )
