"""A small life-log, and the real command in a real process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.data.lifelog import make_lifelog
from harness.data.native import load
from harness.data.write import DatasetParts, write
from harness.outcomes import Gated, Measured, Outcome, Promoted, TakenIn
from harness.state.store import RunStore

Finished = subprocess.CompletedProcess[str]


@pytest.fixture(scope="session")
def small_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A life-log at the smallest scale."""
    folder = tmp_path_factory.mktemp("data") / "small"
    make_lifelog(folder, seed=3, scale=0.2)
    return folder


def few_questions(folder: Path, out: Path, count: int = 5, before: int = 20) -> Path:
    """The first video of each split, with its first ``count`` questions and ``before`` windows ahead of the first."""
    data = load(folder)
    splits, kept = {}, []
    for split in data.splits:
        video = data.videos[data.questions(split)[0].video]
        asked = sorted((q for q in data.questions(split) if q.video == video.id), key=lambda q: (q.time, q.id))[:count]
        splits[split] = [(q, data.gold(split)[q.id]) for q in asked]
        first = sum(w.end <= asked[0].time for w in video.windows) - before
        last = sum(w.end <= asked[-1].time for w in video.windows) + 5
        windows = tuple(replace(w, index=k) for k, w in enumerate(video.windows[max(first, 0) : last]))
        kept.append(replace(video, windows=windows, frames=()))
    return write(DatasetParts("few", {"generator": "lifelog"}, kept, splits), out).path


@pytest.fixture(scope="session")
def few_data(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with few questions and windows: for runs in which models are asked."""
    return few_questions(small_data, tmp_path_factory.mktemp("data") / "few")


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness", *arguments]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without any of the settings that the harness reads."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("HARNESS_", "OPENAI_"))}
    return {**plain, "COLUMNS": "140", **(extra or {})}


@pytest.fixture
def harness(tmp_path: Path) -> Callable[..., Finished]:
    """Runs the command in an empty folder and gives what came of it."""

    def run(*arguments: str, env: Mapping[str, str] | None = None, cwd: Path | None = None) -> Finished:
        return subprocess.run(
            command(*arguments),
            cwd=cwd or tmp_path,
            env=environment(env),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    return run


def facts(folder: Path) -> dict[str, Any]:
    """What must be the same in a repeat of a run: trees, verdicts, scores, promotions, spend; no measured second."""
    kinds: dict[str, type[Outcome]] = {
        "intake": TakenIn,
        "static": Gated,
        "duplicates": Gated,
        "smoke": Gated,
        "dynamic": Gated,
        "reviewer": Gated,
        "develop": Measured,
        "validate": Measured,
        "promote": Promoted,
    }
    found: dict[str, Any] = {}
    with RunStore.open(folder, write=False) as store:
        for k, name in store.stages():
            kind = kinds.get(name)
            outcome = store.stage(k, name, kind) if kind else None
            if isinstance(outcome, TakenIn):
                found[f"{k} {name}"] = [outcome.tree, outcome.bundle]
            elif isinstance(outcome, Gated):
                found[f"{k} {name}"] = [outcome.verdict.decision, outcome.behaviour, outcome.verdict.reason]
            elif isinstance(outcome, Measured):
                items = [
                    [i.question, i.verdict, i.choice, i.correct, list(i.evidence), i.context_sha256, i.answering.tokens]
                    for i in outcome.evaluation.items
                ]
                built = outcome.evaluation.construction.tokens
                found[f"{k} {name}"] = [outcome.rejected, outcome.p_value, built, items]
            elif isinstance(outcome, Promoted):
                found[f"{k} {name}"] = list(outcome.frontier)
        found["attempts"] = [
            [a.outcome, a.tree, a.dev_accuracy, a.validation_accuracy, a.search_tokens, a.search_dollars, a.lesson]
            for a in store.attempts()
        ]
    return json.loads(json.dumps(found))
