"""Runs the variants' searches at the same time, each a run of its own that resumes by itself."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

from harness import loop
from harness.ablating.curves import Point, Summary, curve, gain_on_test, summary
from harness.ablating.variants import Variant, configured, run_name
from harness.config import Config, recorded
from harness.errors import UserError
from harness.models.interface import CapReached, ModelError
from harness.opening import searching
from harness.progress import Quiet
from harness.state.manifest import NAME
from harness.state.store import RunStore


@dataclass(frozen=True, slots=True)
class Found:
    """What the searches came to."""

    points: tuple[Point, ...]
    summaries: tuple[Summary, ...]


def search(
    base: Config,
    variants: Sequence[Variant],
    seeds: Sequence[int],
    iterations: int,
    out: Path,
    at_once: int,
    told: Callable[[str], None],
) -> None:
    """Search once for each variant and seed, ``at_once`` of them at a time; ``told`` gets a line as each ends.

    Raises UserError at the first that cannot go on; what the others had done is kept, and the same call resumes.
    """
    values = base.model_dump(mode="json")
    jobs = [configured(values, variant, seed, iterations) for seed in seeds for variant in variants]
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=max(1, min(at_once, len(jobs))), mp_context=context) as pool:
        running = {pool.submit(_search, job, out / job["run"]["name"]): job["run"]["name"] for job in jobs}
        try:
            for ended in as_completed(running):
                told(f"{running[ended]}: {ended.result()}")
        except BaseException:
            pool.shutdown(wait=True, cancel_futures=True)
            raise


def _search(values: dict[str, object], folder: Path) -> str:
    """One search to its end, in a process of its own; returns how it ended."""
    config = recorded(values, os.environ)
    try:
        with searching(config, folder, Quiet()) as opened:
            loop.run(opened, config.run.iterations)
    except CapReached as cap:
        return f"stopped: {cap}"
    except ModelError as error:
        raise UserError(f"{folder.name}: {error}") from None
    return "done"


def found(out: Path, variants: Sequence[Variant], seeds: Sequence[int]) -> Found:
    """Curves and summaries of the runs in ``out``; a run that is not there is left out."""
    points: list[Point] = []
    summaries: list[Summary] = []
    for variant in variants:
        mine: list[Point] = []
        tests: list[float | None] = []
        for seed in seeds:
            folder = out / run_name(variant, seed)
            if not (folder / NAME).is_file():
                continue
            with RunStore.open(folder, write=False) as store:
                mine += curve(store, variant.name)
                tests.append(gain_on_test(store))
        if mine:
            points += mine
            summaries.append(summary(mine, tests))
    return Found(tuple(points), tuple(summaries))
