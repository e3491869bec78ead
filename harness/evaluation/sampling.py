"""A fixed sample of a split's questions, in the proportions of its question types: for measuring with a dear model."""

from __future__ import annotations

from harness.data.native import Dataset, Question
from harness.errors import UserError
from harness.evaluation.executor import questions_of
from harness.evaluation.outcomes import Record
from harness.seeds import draws


class Sample(Record):
    """What names a sample; the same on every machine and for every policy."""

    size: int
    seed: int


def sampled(dataset: Dataset, split: str, sample: Sample | None) -> tuple[Question, ...]:
    """The questions of the sample in the order of the split; all of the split without one.

    Each type has its share, rounded down, and the types with the largest remainders one more (ties by name); which
    questions of a type is drawn from the seed. Raises UserError where the split has fewer questions.
    """
    questions = questions_of(dataset, split)
    if sample is None:
        return questions
    if not 1 <= sample.size <= len(questions):
        raise UserError(f"--sample {sample.size}: the {split} split has {len(questions)} questions; take at most these")
    by_type: dict[str, list[str]] = {}
    for question in questions:
        by_type.setdefault(question.type, []).append(question.id)
    shares = {kind: divmod(sample.size * len(ids), len(questions)) for kind, ids in by_type.items()}
    left = sample.size - sum(whole for whole, _ in shares.values())
    more = sorted(shares, key=lambda kind: (-shares[kind][1], kind))[:left]
    chosen: set[str] = set()
    for kind, ids in sorted(by_type.items()):
        count = shares[kind][0] + (kind in more)
        chosen.update(draws(sample.seed, 0, f"sample {kind}").sample(sorted(ids), count))
    return tuple(question for question in questions if question.id in chosen)
