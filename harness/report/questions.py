"""What each attempt made of the development questions, small enough for hundreds of attempts in one file.

Texts of questions and windows stand once for the whole report; an attempt holds letters, routes and numbers. Whether a
single answer was right is told only where the run's configuration lets its author see it: a report may come into the
hands of whoever writes the next candidate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.data.native import Dataset, load
from harness.errors import UserError
from harness.evaluation.outcomes import Evaluation, Item
from harness.report.safe import cleaned, shown
from harness.state.manifest import RunManifest, data_places
from harness.state.store import RunStore
from policies.blocks.memory import window_text
from sandbox.interface import Verdict

ANSWERS = 400_000
"""Answers in one report; beyond, each attempt shows its first questions only."""
REFERENCES = 4_000_000
"""References to windows in one report: about 10 MB of it at most."""
FIRST = 4
"""Of the evidence, kept in the policy's own order; the rest stands in order of time."""
WINDOW_CHARS = 400
QUESTION_CHARS = 600
CHOICE_CHARS = 200
DETAIL_CHARS = 300
SPLIT = "development"


def find_data(store: RunStore, named: Path | None) -> tuple[Dataset | None, str]:
    """The run's data set and, where it is not at hand, why not. Raises UserError for a named one that is another."""
    run = store.manifest
    places = [named] if named else data_places(run, store.folder)
    for place in places:
        if not (place / "manifest.json").is_file():
            continue
        found = load(place)
        if found.digest == run.data.digest:
            return found, ""
        if named:
            raise UserError(
                f"{place} is not the data of run {run.name}: digest {found.digest[:16]}, the run's is "
                f"{run.data.digest[:16]}; name the folder that the run was made with"
            )
        return None, f"the data at {run.data.path} is not what the run was made with, so texts are not shown"
    if named:
        raise UserError(f"there is no data set in {named}; name a folder that holds a manifest.json")
    return None, f"the data ({run.data.path}) is not here, so questions stand without texts; see --data"


def tells_correctness(run: RunManifest) -> bool:
    """Whether the run's configuration tells an author if a single answer was right."""
    author = run.config.get("author")
    return bool(author.get("correctness")) if isinstance(author, dict) else False


@dataclass
class Questions:
    """The development questions of a run; collects which windows are cited."""

    dataset: Dataset | None
    note: str
    correctness: bool
    attempts: int
    """How many attempts were measured: what each may take up depends on it."""
    _places: dict[str, int] = field(default_factory=dict)
    _asked: list[list[Any]] = field(default_factory=list)
    _cited: dict[str, set[int]] = field(default_factory=dict)

    def of(self, evaluation: Evaluation) -> dict[str, Any]:
        """One attempt's answers: columns over its questions."""
        items = evaluation.items[: max(1, ANSWERS // max(1, self.attempts))]
        limit = max(FIRST, REFERENCES // max(1, self.attempts * len(items)))
        routes = list(dict.fromkeys(item.route for item in items))
        return {
            "left_out": len(evaluation.items) - len(items),
            "question": [self._place(item) for item in items],
            "choice": [item.choice or "" for item in items],
            "route": [routes.index(item.route) for item in items],
            "routes": [shown(route, 64) or "(none)" for route in routes],
            "tokens": [item.tokens for item in items],
            "milliseconds": [round(1000 * item.seconds) for item in items],
            "verdicts": {
                str(n): [item.verdict.value, shown(item.detail, DETAIL_CHARS)]
                for n, item in enumerate(items)
                if item.verdict is not Verdict.OK or item.detail
            },
            "correct": [int(item.correct) for item in items] if self.correctness else None,
            "evidence": [self._evidence(item, limit) for item in items],
            "cited": [len(item.evidence) for item in items],
        }

    def _place(self, item: Item) -> int:
        """The question's place in the shared table, which it is put into when it is met."""
        if item.question not in self._places:
            if not self._asked:
                self._read_questions()
            self._places.setdefault(item.question, len(self._places))
            if len(self._asked) < len(self._places):
                self._asked.append([item.question, item.video, item.type, None, "", {}])
        return self._places[item.question]

    def _read_questions(self) -> None:
        if self.dataset is None or SPLIT not in self.dataset.splits:
            return
        for asked in self.dataset.questions(SPLIT):
            self._places[asked.id] = len(self._asked)
            choices = {letter: shown(text, CHOICE_CHARS) for letter, text in asked.choices.items()}
            row = [asked.id, asked.video, asked.type, asked.time, shown(asked.question, QUESTION_CHARS), choices]
            self._asked.append(row)

    def _evidence(self, item: Item, limit: int) -> list[int]:
        """The first windows in the policy's order, then the others as differences in order of time."""
        kept = item.evidence[:limit]
        self._cited.setdefault(item.video, set()).update(kept)
        return [*kept[:FIRST], *_differences(sorted(kept[FIRST:]))]

    def shared(self) -> dict[str, Any]:
        """The questions and the windows that some attempt cited; made after all attempts."""
        windows: dict[str, dict[str, list[Any]]] = {}
        for video, cited in self._cited.items():
            found = self.dataset.videos.get(video) if self.dataset else None
            for index in sorted(cited) if found else ():
                if found and 0 <= index < len(found.windows):
                    w = found.windows[index]
                    text = shown(window_text(w), WINDOW_CHARS)
                    windows.setdefault(video, {})[str(index)] = [w.start, w.end, text]
        return {
            "first": FIRST,
            "note": self.note,
            "correctness": self.correctness,
            "questions": cleaned(self._asked),
            "windows": windows,
        }


def _differences(ordered: Sequence[int]) -> list[int]:
    return [after - before for before, after in zip([0, *ordered], ordered, strict=False)]
