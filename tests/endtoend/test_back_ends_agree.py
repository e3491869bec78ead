"""Docker and bubblewrap, the same runtime, empty folders: the same search, step by step."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.outcomes import Measured
from harness.state.store import RunStore
from sandbox.interface import Sandbox
from tests.endtoend.conftest import Finished, facts

ITERATIONS = 6


@pytest.mark.docker
def test_both_back_ends_promote_the_same_trees(
    harness: Callable[..., Finished], sandboxes: Callable[[str], Sandbox], small_data: Path, tmp_path: Path
) -> None:
    """One seed that promotes and rejects, so that there is something to compare."""
    found = {}
    for kind in ("docker", "bubblewrap"):
        sandboxes(kind)  # skips, or fails in CI, where it does not work
        home = tmp_path / kind
        home.mkdir()
        options = ("--iterations", str(ITERATIONS), "--data", str(small_data), "--seed", "0", "--name", "one")
        done = harness("run", *options, "--sandbox", kind, cwd=home)
        assert done.returncode == 0, done.stdout + done.stderr
        found[kind] = home / "runs" / "one"
    assert digests(found["docker"], "docker") == digests(found["bubblewrap"], "bubblewrap")
    docker, bubblewrap = facts(found["docker"]), facts(found["bubblewrap"])
    outcomes = [attempt[0] for attempt in docker["attempts"]]
    assert len(outcomes) == ITERATIONS
    assert "promoted" in outcomes and set(outcomes) != {"promoted"}, "take a seed that does both"
    assert docker == bubblewrap


def digests(run: Path, kind: str) -> set[str]:
    """The digests of the runtime that the run and its evaluations name; each must name its back end too."""
    with RunStore.open(run, write=False) as store:
        assert store.manifest.sandbox.startswith(kind)
        found = {store.manifest.runtime_digest}
        for k, name in store.stages():
            if name in ("develop", "validate"):
                measured = store.stage(k, name, Measured)
                assert measured is not None
                assert measured.evaluation.sandbox.startswith(kind)
                found.add(measured.evaluation.runtime_digest)
    assert len(found) == 1
    return found
