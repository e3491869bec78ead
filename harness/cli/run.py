"""``harness run``: the search."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from harness import loop
from harness.cli.options import RUNS, console, settings
from harness.cli.tables import closing_report
from harness.config import Config
from harness.data.bundled import bundled
from harness.display import visible
from harness.errors import UserError
from harness.models.interface import CapReached, ModelError
from harness.opening import check_parent, searching
from harness.progress import Progress
from harness.search import Search, Stopped

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
"""Names of runs: they name folders and label containers."""


@click.command()
@click.option("--iterations", type=int, metavar="N", help="Total number of iterations; a run resumes by itself.")
@click.option("--data", metavar="DIR", help="Data set folder. Default: the bundled life-log.")
@click.option("--name", metavar="NAME", help="Name of the run. Default: made of data, profile, parent and seed.")
@click.option("--seed", type=int, metavar="S", help="Every random draw is a function of it.")
@click.option("--parent", metavar="POLICY", help="Policy that the search starts from, for example v00 or v01.")
@click.option("--profile", metavar="NAME", help="Which models to use; 'offline' uses none.")
@click.option("--sandbox", type=click.Choice(["auto", "docker", "bubblewrap"]), help="Where candidates run.")
@click.option("--workers", type=int, metavar="N", help="Containers at work at the same time. Default: one per core.")
@click.option("--remember-from", metavar="RUN", help="Begin with the lessons and failed ideas of an earlier run.")
@click.option("--config", "file", type=click.Path(path_type=Path), metavar="FILE", help="Default: ./harness.toml.")
def run(file: Path | None, **flags: object) -> None:
    """Search for a better memory policy. Calling it again goes on where it stopped."""
    flags["memory.source"] = flags.pop("remember_from")
    config = settings(flags, file)
    if config.run.iterations == 0:
        raise UserError(
            "0 iterations search nothing: give --iterations 1 or more; to measure one policy: harness evaluate"
        )
    check_parent(config)
    if not config.run.data:
        config = settings({**flags, "data": str(bundled(console()))}, file)
    out = console()
    name = config.run.name or default_name(config)
    if not NAME.fullmatch(name):
        raise UserError(
            f"a run cannot be called {visible(name, 120)}: letters, digits and . _ - only, 100 at most, the first a "
            "letter or digit; give it another --name"
        )
    folder = RUNS / name
    progress = Progress(out, config.run.iterations, spent=lambda: "")
    with stop_on_interrupt(out) as asked, searching(config, folder, progress, asked, announce=_say(out)) as search:
        progress.spent = lambda: spend_line(search)
        if done := len(search.store.attempts()):
            goal = config.run.iterations
            left = f"goes on to {goal}" if done < goal else "is complete; for more, raise --iterations"
            _say(out)(f"run {name} has {done} iterations and {left}")
        stopped = _run(search, config.run.iterations, progress)
        closing_report(out, search.store, stopped)


def _run(search: Search, iterations: int, progress: Progress) -> str:
    """Run to the end, or to where it was stopped; the reason of a stop, else an empty text."""
    try:
        with progress.shown():
            loop.run(search, iterations)
    except Stopped as stop:
        return str(stop)
    except CapReached as cap:
        return f"{cap}; raise the cap and run the same command to go on"
    except ModelError as error:
        raise UserError(str(error)) from None
    return ""


def default_name(config: Config) -> str:
    """The same command names the same run, so it resumes."""
    data = Path(config.run.data).resolve().name
    return f"{data}-{config.run.profile}-{config.run.parent}-s{config.run.seed}"


def spend_line(search: Search) -> str:
    """Spend against caps, one line."""
    spent, caps = search.spent(), search.config.caps
    if not spent.requests:
        return "no model is called (offline profile)" if search.author.name == "offline" else "nothing yet"
    tokens = spent.prompt_tokens + spent.completion_tokens
    dollars = "no cap" if caps.dollars is None else f"cap {caps.dollars:.2f}"
    return f"{spent.requests} requests, {tokens:,} tokens, {spent.dollars:.4f} US dollars ({dollars})"


def _say(out: Console) -> Callable[[str], None]:
    return lambda line: out.print(visible(line, 400), markup=False, style="dim", soft_wrap=True)


@contextmanager
def stop_on_interrupt(out: Console) -> Iterator[_Asked]:
    """The first Ctrl-C asks to stop after the stage at work is written; the second one stops at once."""
    asked = _Asked(out)
    before = signal.signal(signal.SIGINT, asked.on_signal)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


class _Asked:
    def __init__(self, out: Console) -> None:
        self._out, self._asked = out, False

    def __call__(self) -> bool:
        return self._asked

    def on_signal(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True
        self._out.print("stopping after the stage at work; press Ctrl-C again to stop at once", style="yellow")
