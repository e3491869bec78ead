"""What a run remembers by its configuration, and what it takes over of an earlier one: real run folders on disk."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from harness import recalling
from harness.errors import UserError
from harness.evaluation.outcomes import Evaluation
from harness.outcomes import Inherited, Measured
from harness.settings import MemorySettings
from harness.state.manifest import DataRef, RunManifest
from harness.state.store import RunStore
from meta_memory.memory import Need
from meta_memory.records import Attempt

CHANGE = {"Call>@top": 1, "Call>12": 1, "Call>@uniform": -1}


def make(folder: Path, attempts: int = 3, **memory: Any) -> Path:
    """A run with a measured parent and some failed attempts."""
    run = RunManifest(
        name=folder.name, created="2026-01-01T00:00:00+00:00", seed=7, parent="v00", profile="offline",
        config={"memory": MemorySettings(**memory).model_dump()}, data=DataRef(name="life", digest="d" * 64, path="x"),
        runtime_digest="r" * 64, sandbox="none", h0={},
    )  # fmt: skip
    evaluation = Evaluation(
        policy="p", split="development", data="d" * 64, runtime_digest="r", sandbox="none", reader="lexical", items=()
    )
    with RunStore.create(folder, run) as store:
        store.commit_stage(0, "develop", Measured(summary="", evaluation=evaluation), summary="")
        for k in range(1, attempts + 1):
            attempt = Attempt(
                iteration=k, parent=0, parent_tree="t0", title=f"idea {k}", hypothesis=f"what {k}", outcome="validate",
                change=CHANGE, cause="reached 0.6137 there", dev_accuracy=0.7, dev_delta=0.1, dev_by_type={"A": 0.7},
                tokens_per_question=9.0, validation_accuracy=0.6137, validation_p=0.21, lesson=f"lesson {k}",
            )  # fmt: skip
            store.commit_stage(k, "remember", Measured(summary="", evaluation=evaluation), summary="", attempt=attempt)
    return folder


def test_each_kind_shows_what_it_is_to_show(tmp_path: Path) -> None:
    need = Need(0, "t0")
    with RunStore.open(make(tmp_path / "one"), write=True) as store:
        shown = {kind: recalling.recall(store, MemorySettings(kind=kind), need, 5_000) for kind in KINDS}
        assert [v.lesson for v in shown["records"]] == ["lesson 1", "lesson 2", "lesson 3"]
        assert [(v.label, v.lesson, v.hypothesis) for v in shown["summary"][:1]] == [("1", "", "what 1")]
        assert shown["none"] == ()
        for kind, views in shown.items():
            labels = tuple(view.label for view in views)
            assert recalling.views(store, MemorySettings(kind=kind), labels) == views
        assert recalling.counted(shown["records"]) > recalling.counted(shown["summary"]) > 0
    lines = (tmp_path / "one" / recalling.SUMMARY).read_text().splitlines()
    assert lines == [f"{k} idea {k}: validate, +10.0 points. what {k}" for k in (1, 2, 3)]


KINDS = ("records", "summary", "none")


def test_what_is_taken_over_holds_nothing_of_a_held_out_split(tmp_path: Path) -> None:
    found = recalling.source(make(tmp_path / "one"))
    assert (found.source, found.data_digest, found.reader) == ("one", "d" * 64, "lexical")
    with RunStore.open(tmp_path / "one", write=False) as store:
        assert found.head == store.head
    assert [attempt.label for attempt in found.taken] == ["one:1", "one:2", "one:3"]
    assert "6137" not in found.model_dump_json() and "0.21" not in found.model_dump_json()
    same = recalling.taken_over(found, "d" * 64, "lexical")
    assert same.comparable and same.taken == found.taken


@pytest.mark.parametrize(("digest", "reader"), [("e" * 64, "lexical"), ("d" * 64, "a model")])
def test_on_other_ground_lessons_stay_and_verdicts_do_not(tmp_path: Path, digest: str, reader: str) -> None:
    taken = recalling.taken_over(recalling.source(make(tmp_path / "one")), digest, reader)
    assert not taken.comparable and "none of its ideas is refused" in taken.summary
    for attempt in taken.taken:
        assert attempt.lesson and attempt.dev_delta == 0.1
        assert (attempt.change, attempt.dev_accuracy, attempt.dev_by_type, attempt.tokens_per_question) == (
            {}, None, {}, None
        )  # fmt: skip


def test_a_run_hands_on_what_it_took_over_under_its_first_name(tmp_path: Path) -> None:
    first = recalling.source(make(tmp_path / "one", attempts=1))
    with RunStore.open(make(tmp_path / "two", attempts=1), write=True) as store:
        store.commit_stage(0, "inherit", recalling.taken_over(first, "d" * 64, "lexical"), summary="")
    assert [a.label for a in recalling.source(tmp_path / "two").taken] == ["one:1", "two:1"]


def test_a_damaged_unfinished_or_missing_source_is_refused_in_one_line(tmp_path: Path) -> None:
    make(tmp_path / "one")
    asked = MemorySettings(source="one")
    damaged = tmp_path / "one" / "audit.jsonl"
    whole = damaged.read_text()
    damaged.write_text(whole.replace('"stage":"remember"', '"stage":"remembex"', 1))
    cases = {"not whole": asked, "no other run": MemorySettings(source="nobody")}
    cases |= {"remembers nothing": MemorySettings(source="one", kind="none")}
    for words, settings in cases.items():
        with pytest.raises(UserError, match=words) as error:
            recalling.wanted(settings, tmp_path / "new")
        assert "\n" not in str(error.value) and "--remember-from" in str(error.value)
    assert not (tmp_path / "new").exists()
    damaged.write_text(whole)
    assert recalling.wanted(asked, tmp_path / "new") is not None
    assert recalling.wanted(MemorySettings(source=str(tmp_path / "one")), tmp_path / "new") is not None
    make(tmp_path / "empty", attempts=0)
    with pytest.raises(UserError, match="has no attempt"):
        recalling.wanted(MemorySettings(source="empty"), tmp_path / "new")


def test_a_run_goes_on_with_the_source_it_was_made_with(tmp_path: Path) -> None:
    found = recalling.source(make(tmp_path / "one"))
    new = make(tmp_path / "new", attempts=0, source="one")
    assert recalling.wanted(MemorySettings(), new) == found  # killed before the copy: read again, flag or no flag
    with pytest.raises(UserError, match="was not made with --remember-from other"):
        recalling.wanted(MemorySettings(source="other"), new)
    with RunStore.open(new, write=True) as store:
        store.commit_stage(0, "inherit", recalling.taken_over(found, "d" * 64, "lexical"), summary="")
    shutil.rmtree(tmp_path / "one")
    assert recalling.wanted(MemorySettings(source="one"), new) is None  # the copy counts from now on
    with RunStore.open(new, write=False) as store:
        kept = store.stage(0, "inherit", Inherited)
        assert kept is not None and [a.label for a in recalling.memory(store).attempts] == [a.label for a in kept.taken]
        repeat = recalling.memory(store).similar_failure("", CHANGE, Need(0, "t0"))
        assert repeat is not None and repeat.attempt.label.startswith("one:")
