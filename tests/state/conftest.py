"""A run with a few iterations in it, made by the real store, and a hash over all that a folder holds."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pydantic import BaseModel

from harness.state.manifest import DataRef, RunManifest
from harness.state.store import RunStore
from meta_memory.records import Attempt


class Note(BaseModel):
    text: str
    values: tuple[float, ...] = ()


def manifest(name: str = "trial") -> RunManifest:
    return RunManifest(
        name=name, created="2026-01-01T00:00:00+00:00", seed=7, parent="v00", profile="offline",
        config={"alpha": 0.05, "list": [1, 2]}, data=DataRef(name="life", digest="d" * 64, path="data/life"),
        runtime_digest="r" * 64, sandbox="none", h0={"constitution.md": "c" * 64},
    )  # fmt: skip


def ticking() -> Callable[[], float]:
    """A clock that advances a second at each look."""
    now = iter(range(1_000_000_000, 2_000_000_000))
    return lambda: float(next(now))


def seed(store: RunStore) -> str:
    lineage = store.lineage
    tree = lineage.intake({"policy.py": b"class Policy: ...\n"})
    commit = lineage.commit(tree, (), "Start from v00", {"Iteration": "0", "Audit-Head": store.head}, 0)
    refs = {"refs/heads/main": commit, "refs/tags/frontier/0000": commit}
    store.commit_stage(0, "intake", Note(text=commit), summary="starting policy", refs=refs)
    return commit


def iterate(store: RunStore, k: int, parent: str) -> None:
    """One iteration of eight stages: a candidate on its branch, an outcome commit, an attempt."""
    lineage = store.lineage
    store.commit_stage(k, "recall", Note(text="parent 0"), summary="parent 0000")
    store.commit_stage(k, "propose", Note(text=f"idea {k}"), summary=f"idea {k}")
    tree = lineage.intake({"policy.py": b"class Policy: ...\n# %d\n" % k, "words.json": b'["a"]\n'})
    trailers = {"Iteration": str(k), "Audit-Head": store.head}
    first = lineage.commit(tree, (parent,), f"{k:04d} idea", trailers, k)
    branch = f"refs/heads/candidate/{k:04d}-idea"
    store.commit_stage(k, "intake", Note(text=first), summary=f"tree {tree}", refs={branch: first})
    for stage in ("static", "duplicates", "smoke", "reviewer"):
        store.commit_stage(k, stage, Note(text="passed"), summary="passed")
    trailers = {"Iteration": str(k), "Outcome": "rejected", "Audit-Head": store.head}
    last = lineage.commit(tree, (first,), f"Outcome {k:04d}: rejected", trailers, k)
    attempt = Attempt(iteration=k, parent=0, title=f"idea {k}", hypothesis="h", outcome="reviewer", lesson="l")
    store.commit_stage(k, "remember", Note(text=last), summary="rejected", refs={branch: last}, attempt=attempt)


def content_hash(folder: Path) -> str:
    """sha256 over every path, type and byte below a folder."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        total.update(f"{path.relative_to(folder)} {path.is_dir()}\0".encode())
        if path.is_file():
            total.update(hashlib.sha256(path.read_bytes()).digest())
    return total.hexdigest()


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run of three iterations, closed."""
    folder = tmp_path / "run"
    with RunStore.create(folder, manifest(), ticking()) as store:
        parent = seed(store)
        for k in (1, 2, 3):
            iterate(store, k, parent)
    return folder


class Kit:
    """What the tests of this folder share."""

    Note = Note
    manifest = staticmethod(manifest)
    ticking = staticmethod(ticking)
    seed = staticmethod(seed)
    iterate = staticmethod(iterate)
    content_hash = staticmethod(content_hash)


@pytest.fixture
def kit() -> Iterator[type[Kit]]:
    yield Kit
