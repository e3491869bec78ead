"""What a run cost: calls to models by role and stage, seconds by stage, tokens of the policies that were measured."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from harness.evaluation.outcomes import Cost
from harness.models.replies import REPLIES, open_read_only
from harness.report.safe import line
from harness.report.story import Row
from harness.rounds import base
from harness.state.store import RunStore

SUMS = "count(*), sum(state = 'lost'), sum(prompt_tokens), sum(completion_tokens), sum(dollars), max(estimated)"


@dataclass(frozen=True, slots=True)
class Spent:
    """Calls of one role in one stage. A call lost in flight stands at its reservation."""

    role: str
    stage: str
    calls: int
    lost: int
    prompt_tokens: int
    completion_tokens: int
    dollars: float
    estimated: bool

    @property
    def tokens(self) -> int:
        """Prompt and completion."""
        return self.prompt_tokens + self.completion_tokens


def spent(store: RunStore) -> list[Spent]:
    """By role and stage, the dearest first; empty where no model was called."""
    path = store.folder / REPLIES
    if not path.exists():
        return []
    sums: dict[tuple[str, str], Spent] = {}
    with open_read_only(path) as db:
        if not db.execute("PRAGMA user_version").fetchone()[0]:
            return []
        for role, scope, *costs in db.execute(f"SELECT role, scope, {SUMS} FROM calls GROUP BY role, scope"):
            key = line(role, 30), _stage(scope)
            before = sums.get(key, Spent(*key, 0, 0, 0, 0, 0.0, False))
            sums[key] = Spent(
                *key,
                before.calls + costs[0],
                before.lost + costs[1],
                before.prompt_tokens + costs[2],
                before.completion_tokens + costs[3],
                before.dollars + costs[4],
                before.estimated or bool(costs[5]),
            )
    return sorted(sums.values(), key=lambda s: (-s.dollars, -s.tokens, s.role, s.stage))


def _stage(scope: str) -> str:
    """``develop`` of ``0007/develop``; a scope that is shared by all stages stands for itself."""
    first, _, rest = scope.partition("/")
    return line(base(rest.split("/")[0]) if first.isdigit() and rest else scope, 30) or "shared"


def seconds_by_stage(store: RunStore) -> list[tuple[str, float, int]]:
    """(stage, seconds, how many): the time from one commit to the next, what the run paused included."""
    found: dict[str, tuple[float, int]] = {}
    entries = store.audit()
    for before, after in pairwise(entries):
        stage = "references" if after.stage.startswith("reference-") else base(after.stage)
        seconds, count = found.get(stage, (0.0, 0))
        found[stage] = seconds + max(0.0, after.at - before.at), count + 1
    rows = [(line(stage, 60), seconds, count) for stage, (seconds, count) in found.items()]
    return sorted(rows, key=lambda row: -row[1])


def tokens_by_part(rows: list[Row]) -> list[tuple[str, str, Cost]]:
    """(split, part, cost) of the policies that were measured: construction, retrieval, answering, verification."""
    found: dict[tuple[str, str], Cost] = {}
    for row in rows:
        for split, measured in (("development", row.developed), ("validation", row.validated)):
            for part, cost in measured.parts.items() if measured else ():
                found[split, part] = found.get((split, part), Cost()) + cost
    return [(split, part, cost) for (split, part), cost in found.items()]
