"""Two records of one attempt, field by field: what must be the same in a repeat, and where they first differ.

Left out is what is measured (seconds), what names this execution and not the attempt (commits, whose messages hold the
audit's head; dates; the sandbox's label; spend of the whole run), and a candidate's prints.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from harness.display import visible
from harness.outcomes import STAGES, Measured, Outcome, TakenIn
from harness.rounds import base
from harness.state.store import RunStore

ITEM_SECONDS = ("seconds", "policy_seconds", "model_seconds", "embed_seconds", "frame_seconds")
"""What is measured of one question."""
LEFT_OUT = frozenset(
    {*ITEM_SECONDS, "observe_seconds", "wall_seconds"}
    | {"started", "commit", "refs", "sandbox", "logs"}
    | {"spent_tokens", "spent_dollars", "search_tokens", "search_dollars"}
)
ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
"""Addresses in an error's text are others at each start."""
SHOWN = 120
ABSENT = "(nothing)"


@dataclass(frozen=True, slots=True)
class Difference:
    """One value that is not as recorded."""

    stage: str
    question: str
    """The data set's id; empty where it is no question's."""
    field: str
    """Dotted; lines of a text are counted from 1."""
    recorded: str
    now: str

    def line(self) -> str:
        """One plain line, safe to print."""
        where = [self.stage, *([f"question {self.question}"] if self.question else []), self.field]
        return visible(f"{', '.join(where)}: recorded {_short(self.recorded)}, now {_short(self.now)}", 600)


def differences(recorded: Mapping[str, BaseModel], now: Mapping[str, BaseModel]) -> Iterator[Difference]:
    """All differences between two attempts' outcomes by stage, in the order of the record."""
    for stage in [*recorded, *(name for name in now if name not in recorded)]:
        if stage not in now or stage not in recorded:
            reached = ["reached" if stage in side else "not reached" for side in (recorded, now)]
            yield Difference(stage, "", "stage", *reached)
            continue
        yield from _of_stage(stage, comparable(recorded[stage]), comparable(now[stage]))


def comparable(outcome: BaseModel) -> dict[str, Any]:
    """What must be the same in a repeat, as plain values; the items of an evaluation by question."""
    kept: dict[str, Any] = _kept(outcome.model_dump(mode="json"))
    if isinstance(outcome, Outcome) and not isinstance(outcome, TakenIn):
        del kept["summary"]  # made of the rest, seconds among it
    if isinstance(outcome, Measured):
        kept["evaluation"]["items"] = {item["question"]: item for item in kept["evaluation"]["items"]}
    return kept


def _kept(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _kept(inner) for name, inner in value.items() if name not in LEFT_OUT}
    if isinstance(value, list):
        return [_kept(inner) for inner in value]
    return ADDRESS.sub("0x...", value) if isinstance(value, str) else value


def _of_stage(stage: str, recorded: dict[str, Any], now: dict[str, Any]) -> Iterator[Difference]:
    """Questions first: what a figure or a verdict differs by is an answer."""
    before, after = (side.get("evaluation", {}).pop("items", {}) for side in (recorded, now))
    for question in [*before, *(name for name in after if name not in before)]:
        for field, was, is_ in _walk("", before.get(question), after.get(question)):
            yield Difference(stage, question, field or "question", was, is_)
    for field, was, is_ in _walk("", recorded, now):
        yield Difference(stage, "", field, was, is_)


def _walk(field: str, recorded: Any, now: Any) -> Iterator[tuple[str, str, str]]:
    if recorded == now:
        return
    if isinstance(recorded, dict) and isinstance(now, dict):
        for name in [*recorded, *(name for name in now if name not in recorded)]:
            inner = f"{field}.{name}" if field else name
            yield from _walk(inner, recorded.get(name), now.get(name))
    elif isinstance(recorded, list) and isinstance(now, list) and len(recorded) == len(now):
        for number, (was, is_) in enumerate(zip(recorded, now, strict=True)):
            yield from _walk(f"{field}[{number}]", was, is_)
    elif isinstance(recorded, str) and isinstance(now, str) and "\n" in recorded + now:
        before, after = recorded.split("\n"), now.split("\n")
        at = next((n for n, (was, is_) in enumerate(zip(before, after, strict=False)) if was != is_), None)
        at = min(len(before), len(after)) if at is None else at
        lines = [repr(side[at]) if at < len(side) else ABSENT for side in (before, after)]
        yield f"{field} line {at + 1}", lines[0], lines[1]
    else:
        yield field, _plain(recorded), _plain(now)


def _plain(value: Any) -> str:
    return ABSENT if value is None else repr(value)


def _short(text: str) -> str:
    return text if len(text) <= SHOWN else text[:SHOWN] + " ..."


def outcomes(store: RunStore, k: int) -> dict[str, BaseModel]:
    """Everything committed for an attempt by stage, and the attempt as meta-memory keeps it, last."""
    found: dict[str, BaseModel] = {}
    for iteration, stage in store.stages():
        if iteration == k and (kind := _kind(stage)) and (outcome := store.stage(k, stage, kind)) is not None:
            found[stage] = outcome
    remembered = store.attempt(k)
    return {**found, "memory": remembered} if remembered else found


def _kind(stage: str) -> type[Outcome] | None:
    """The closing evaluation is the run's and no attempt's; the starting policy has reference policies beside it."""
    return Measured if stage.startswith("reference-") else STAGES.get(base(stage))
