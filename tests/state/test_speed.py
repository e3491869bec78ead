"""What bookkeeping costs in processor time: waiting for a busy disk is the machine's, not ours.

The quickest quarter of many is compared, so that whatever else runs on the machine does not decide.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness.state.lineage import Lineage
from harness.state.store import RunStore


def quickest_quarter(work: Callable[[int], object], times: int) -> float:
    """Seconds of processor time that the quickest quarter of ``times`` calls stays below."""
    taken = []
    for k in range(times):
        began = time.process_time()
        work(k)
        taken.append(time.process_time() - began)
    return sorted(taken)[times // 4]


def test_taking_in_a_candidate(tmp_path: Path) -> None:
    """Four files, tree, commit, reference: at most 5 ms."""
    lineage = Lineage.init(tmp_path / "lineage.git")
    files = {f"m{i}.py": (f"x = {i}\n" * 800).encode() for i in range(3)}

    def take_in(k: int) -> None:
        tree = lineage.intake(files | {"policy.py": b"class Policy: ...\n# %d\n" % k})
        commit = lineage.commit(tree, (), f"{k}", {"Iteration": str(k)}, k)
        lineage.set_refs({f"refs/heads/candidate/{k:04d}-x": commit})

    assert quickest_quarter(take_in, 40) < 0.005
    lineage.close()


def test_an_iteration_of_eight_stages(tmp_path: Path, kit: Any) -> None:
    """Stages, audit lines, intake, two commits, references, attempt: at most 15 ms."""
    with RunStore.create(tmp_path / "run", kit.manifest()) as store:
        parent = kit.seed(store)
        assert quickest_quarter(lambda k: kit.iterate(store, k + 1, parent), 40) < 0.015


def test_opening_a_run_of_fifty_iterations(tmp_path: Path, kit: Any) -> None:
    """Reading it, every line checked: at most 50 ms."""
    with RunStore.create(tmp_path / "run", kit.manifest()) as store:
        parent = kit.seed(store)
        for k in range(1, 51):
            kit.iterate(store, k, parent)
    assert quickest_quarter(lambda _: RunStore.open(tmp_path / "run", write=False).close(), 8) < 0.05
