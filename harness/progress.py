"""Live progress of a run: iteration, stage, frontier, spend against caps, time left."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harness.display import cell
from harness.outcomes import Outcome, Promoted


@dataclass
class Progress:
    """A watcher that draws one live panel on a terminal, and one line an iteration elsewhere."""

    console: Console
    iterations: int
    spent: Callable[[], str]
    """Spend against caps, one line."""
    clock: Callable[[], float] = time.monotonic
    _live: Live | None = None
    _began: float = 0.0
    _first: int = 0
    _iteration: int = 0
    _stage: str = ""
    _questions: str = ""
    _frontier: tuple[int, ...] = ()
    _last: list[tuple[str, str]] = field(default_factory=list)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show the panel while the block runs."""
        self._began = self.clock()
        if not self.console.is_terminal:
            yield
            return
        with Live(console=self.console, refresh_per_second=5, transient=True, get_renderable=self._panel) as live:
            self._live = live
            yield
        self._live = None

    def stage(self, iteration: int, name: str) -> None:
        """A stage begins."""
        self._first = self._first or iteration
        self._iteration, self._stage, self._questions = iteration, name, ""

    def questions(self, done: int, total: int) -> None:
        """Questions answered in the running evaluation."""
        self._questions = f"{done}/{total} questions"

    def committed(self, iteration: int, name: str, outcome: Outcome) -> None:
        """A stage's outcome is on disk; the closing line of an iteration is kept on screen."""
        if isinstance(outcome, Promoted):
            self._frontier = outcome.frontier
        if name != "remember":
            self._last = [*self._last[-5:], (f"{iteration:04d} {name}", outcome.summary)]
            return
        line = Text(f"{iteration:4d}/{self.iterations}  ") + cell(outcome.summary)
        (self._live.console if self._live else self.console).print(line, soft_wrap=True)

    def _panel(self) -> Group:
        table = Table.grid(padding=(0, 2))
        table.add_row("iteration", f"{self._iteration} of {self.iterations}   {self._time_left()}")
        table.add_row("stage", f"{self._stage} {self._questions}")
        table.add_row("frontier", ", ".join(f"{f:04d}" for f in self._frontier) or "-")
        table.add_row("spent", self.spent())
        recent = [Text(f"  {where}: ", style="dim") + cell(what) for where, what in self._last]
        return Group(table, *recent)

    def _time_left(self) -> str:
        done = self._iteration - self._first
        if done < 1:
            return ""
        left = (self.clock() - self._began) / done * (self.iterations - self._iteration + 1)
        return f"about {left:,.0f} s left"


class Quiet:
    """A watcher that draws nothing and passes on the names of stages."""

    def __init__(self, announce: Callable[[str], None] = lambda stage: None) -> None:
        self._announce = announce

    def stage(self, iteration: int, name: str) -> None:
        """A stage begins."""
        self._announce(name)

    def committed(self, iteration: int, name: str, outcome: Outcome) -> None:
        """Not shown."""

    def questions(self, done: int, total: int) -> None:
        """Not shown."""
