"""Saved outcomes: written so that anyone who has the data can score them again, and read back with suspicion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from harness.data.native import Dataset, first_problem
from harness.errors import UserError
from harness.evaluation.executor import gold_of, hit, questions_of
from harness.evaluation.outcomes import Evaluation, Record
from sandbox.interface import Verdict

FORMAT: Literal["lvmh-outcomes/1"] = "lvmh-outcomes/1"
MAX_BYTES = 1 << 30
"""Of a file that is read back; an outcome takes less than 1 kB, so it holds a million."""


class Saved(Record):
    """Evaluations of one data set by label, without any text of the data."""

    format: Literal["lvmh-outcomes/1"]
    data_name: str
    evaluations: Annotated[dict[str, Evaluation], Field(min_length=1)]
    """By the name of the policy or of the variant."""


def save(path: Path, data_name: str, evaluations: Mapping[str, Evaluation]) -> None:
    """Write all of them, or leave the file as it was. Raises UserError."""
    saved = Saved(format=FORMAT, data_name=data_name, evaluations=dict(evaluations))
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(saved.model_dump_json(exclude_defaults=True) + "\n", encoding="utf-8")
        part.replace(path)
    except OSError as error:
        raise UserError(f"{path} cannot be written ({error.strerror}); check its folder and free space") from None


def read(path: Path) -> Saved:
    """Saved outcomes. Raises UserError for what is no such file."""
    try:
        if path.stat().st_size > MAX_BYTES:
            raise UserError(f"{path}: more than {MAX_BYTES} bytes; this is no file of outcomes")
        content = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); name a file that --out has written") from None
    try:
        return Saved.model_validate_json(content)
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}; name a file that --out has written") from None


def rescore(saved: Saved, dataset: Dataset) -> tuple[dict[str, Evaluation], int]:
    """Every mark and every hit computed again from the saved choices and evidence and the data's gold.

    Returns the evaluations, and how many questions had been marked otherwise in the file. Raises UserError where
    the outcomes are not of this data, or not one for each question of their split.
    """
    scored = {name: _rescored(name, evaluation, dataset) for name, evaluation in saved.evaluations.items()}
    changed = sum(
        (before.correct, before.hit) != (after.correct, after.hit)
        for name in scored
        for before, after in zip(saved.evaluations[name].items, scored[name].items, strict=True)
    )
    return scored, changed


def _rescored(name: str, evaluation: Evaluation, dataset: Dataset) -> Evaluation:
    if evaluation.data != dataset.digest:
        raise UserError(
            f"the outcomes of {name!a} are of data {evaluation.data[:12]!a}, not of {dataset.name} "
            f"{dataset.digest[:12]}; name with --data the data that they were measured on"
        )
    questions = {question.id: question for question in questions_of(dataset, evaluation.split)}
    named = [item.question for item in evaluation.items]
    if len(named) != len(questions) or set(named) != questions.keys():
        raise UserError(
            f"the outcomes of {name!a} are not one for each of the {len(questions)} questions of its split; "
            "they cannot be scored"
        )
    gold = gold_of(dataset, evaluation.split)
    items = []
    for item in evaluation.items:
        question = questions[item.question]
        windows = dataset.videos[question.video].windows
        choice = item.choice if item.verdict is Verdict.OK and item.choice in question.choices else None
        seen = [windows[i] for i in item.evidence if 0 <= i < len(windows)]
        marks = {
            "type": question.type,
            "video": question.video,
            "choice": choice,
            "correct": choice is not None and choice == gold[question.id].answer,
            "hit": hit(seen, gold[question.id].oracle),
        }
        items.append(item.model_copy(update=marks))
    # Made anew and not copied: a copy would bring along what was computed from the marks in the file.
    return Evaluation(
        **{**{name: getattr(evaluation, name) for name in Evaluation.model_fields}, "items": tuple(items)}
    )
