"""Saved outcomes: written so that anyone who has the data can score them again, and read back with suspicion."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from harness.data.native import Dataset, first_problem
from harness.errors import UserError
from harness.evaluation.executor import gold_of, mark
from harness.evaluation.outcomes import Cost, Evaluation, Record
from harness.evaluation.sampling import Sample, sampled
from harness.state.folder import write_result
from sandbox.interface import Verdict

FORMAT: Literal["lvmh-outcomes/1"] = "lvmh-outcomes/1"
MAX_BYTES = 1 << 30
"""Of a file that is read back; an outcome takes less than 1 kB, so it holds a million."""


class Saved(Record):
    """Evaluations of one data set by label, without any text of the data."""

    format: Literal["lvmh-outcomes/1"]
    data_name: str
    sample: Sample | None = None
    """None: every question of the split."""
    evaluations: Annotated[dict[str, Evaluation], Field(min_length=1)]
    """By the name of the policy or of the variant."""


def save(path: Path, data_name: str, evaluations: Mapping[str, Evaluation], sample: Sample | None = None) -> None:
    """Write all of them, or leave the file as it was. Raises UserError."""
    saved = Saved(format=FORMAT, data_name=data_name, sample=sample, evaluations=dict(evaluations))
    write_result(path, saved.model_dump_json(exclude_defaults=True) + "\n")


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
    the outcomes are not of this data, or not one for each question of their split or sample.
    """
    scored = {
        name: _rescored(name, evaluation, dataset, saved.sample) for name, evaluation in saved.evaluations.items()
    }
    changed = sum(
        (before.correct, before.hit) != (after.correct, after.hit)
        for name in scored
        for before, after in zip(saved.evaluations[name].items, scored[name].items, strict=True)
    )
    return scored, changed


def pool(measured: Sequence[Mapping[str, Evaluation]]) -> dict[str, Evaluation]:
    """The same policies measured on several data sets (life-logs of several seeds) as one evaluation each.

    Raises UserError where the files do not hold the same policies, or one was measured in another way.
    """
    if len(measured) == 1:
        return dict(measured[0])
    labels = list(measured[0])
    if any(set(found) != set(labels) for found in measured):
        raise UserError("the files do not hold the same policies; pool what was measured alike")
    return {label: _pooled(label, [found[label] for found in measured]) for label in labels}


def _pooled(label: str, parts: Sequence[Evaluation]) -> Evaluation:
    first = parts[0]
    if len({part.data for part in parts}) != len(parts):
        raise UserError("two of the files are of the same data; name each data set once")
    for name in ("policy", "split", "runtime_digest", "reader"):
        if len({getattr(part, name) for part in parts}) != 1:
            raise UserError(f"{label!a} was measured with another {name} in one of the files; measure them alike")
    items = [
        item.model_copy(
            update={"question": f"{part.data[:8]}/{item.question}", "video": f"{part.data[:8]}/{item.video}"}
        )
        for part in parts
        for item in part.items
    ]
    return Evaluation(
        policy=first.policy,
        split=first.split,
        data=hashlib.sha256(" ".join(part.data for part in parts).encode()).hexdigest(),
        runtime_digest=first.runtime_digest,
        sandbox=first.sandbox,
        reader=first.reader,
        items=tuple(items),
        construction=sum((part.construction for part in parts), Cost()),
        observe_seconds=sum(part.observe_seconds for part in parts),
        restarts=sum(part.restarts for part in parts),
        wall_seconds=sum(part.wall_seconds for part in parts),
    )


def _rescored(name: str, evaluation: Evaluation, dataset: Dataset, sample: Sample | None) -> Evaluation:
    if evaluation.data != dataset.digest:
        raise UserError(
            f"the outcomes of {name!a} are of data {evaluation.data[:12]!a}, not of {dataset.name} "
            f"{dataset.digest[:12]}; name with --data the data that they were measured on"
        )
    questions = {question.id: question for question in sampled(dataset, evaluation.split, sample)}
    named = [item.question for item in evaluation.items]
    if len(named) != len(questions) or set(named) != questions.keys():
        raise UserError(
            f"the outcomes of {name!a} are not one for each of the {len(questions)} questions of its split or sample; "
            "they cannot be scored"
        )
    gold = gold_of(dataset, evaluation.split)
    items = []
    for item in evaluation.items:
        question = questions[item.question]
        windows = dataset.videos[question.video].windows
        choice = item.choice if item.verdict is Verdict.OK else None
        marked = mark(question, gold[question.id], windows, choice, item.evidence)
        marks = {"choice": marked.choice, "correct": marked.correct, "hit": marked.hit}
        items.append(item.model_copy(update={"type": question.type, "video": question.video, **marks}))
    # Made anew and not copied: a copy would bring along what was computed from the marks in the file.
    return Evaluation(
        **{**{name: getattr(evaluation, name) for name in Evaluation.model_fields}, "items": tuple(items)}
    )
