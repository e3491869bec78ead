"""The run folder: committed stages come back, what a kill leaves is completed, what was edited is refused."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UserError
from harness.state.audit import FIRST
from harness.state.folder import runs
from harness.state.store import RunStore
from harness.state.verify import verify_chain

ROOT = Path(__file__).resolve().parents[2]
QUIET = ["run.db", "audit.jsonl", "memory.jsonl", "run.json", "run.lock", "lineage.git"]


def python(code: str, *arguments: str, inside: Sequence[str] = ()) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in another process, with the project importable."""
    command = [*inside, sys.executable, "-c", code, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def refused(folder: Path, kit: Any, match: str, write: bool = True) -> str:
    """Opening fails with one line and leaves the folder as it was."""
    before = kit.content_hash(folder)
    with pytest.raises(UserError, match=match) as error:
        RunStore.open(folder, write=write)
    assert kit.content_hash(folder) == before
    assert "\n" not in str(error.value)
    return str(error.value)


# ---------------------------------------------------------------- what is committed comes back


def test_a_run_holds_what_the_map_says(run: Path, kit: Any) -> None:
    assert sorted(path.name for path in run.iterdir()) == sorted(QUIET)
    lines = (run / "audit.jsonl").read_text().splitlines()
    assert len(lines) == 1 + 1 + 3 * 8
    assert [json.loads(line)["iteration"] for line in (run / "memory.jsonl").read_text().splitlines()] == [1, 2, 3]
    with RunStore.open(run, write=False) as store:
        assert store.manifest == kit.manifest()
        assert store.stages()[:4] == ((0, "run"), (0, "intake"), (1, "recall"), (1, "propose"))
        assert [line.text() for line in store.audit()] == lines
        assert store.head == json.loads(lines[-1])["hash"]
        assert store.stage(2, "propose", kit.Note) == kit.Note(text="idea 2")
        assert store.stage(2, "develop", kit.Note) is None
        assert [attempt.iteration for attempt in store.attempts()] == [1, 2, 3]
        assert store.lineage.refs() == store.refs()
        assert len(store.refs()) == 5
    assert verify_chain(run).problems == ()
    assert verify_chain(run).commits == 1 + 2 * 3


def test_a_run_is_taken_up_again(run: Path, kit: Any) -> None:
    before = kit.content_hash(run)
    with RunStore.open(run, write=True):
        pass
    assert kit.content_hash(run) == before  # opening it and doing nothing does nothing
    with RunStore.open(run, write=True, clock=kit.ticking()) as store:
        with pytest.raises(ValueError, match="committed before"):
            store.commit_stage(3, "remember", kit.Note(text="again"), summary="again")
        kit.iterate(store, 4, store.refs()["refs/heads/main"])
    assert verify_chain(run).problems == ()
    assert len((run / "memory.jsonl").read_text().splitlines()) == 4


def test_references_can_be_removed_and_must_exist(run: Path, kit: Any) -> None:
    with RunStore.open(run, write=True) as store:
        note = kit.Note(text="x")
        store.commit_stage(4, "promote", note, summary="", refs={"refs/tags/frontier/0000": None})
        assert "refs/tags/frontier/0000" not in store.lineage.refs()
        for refs in ({"refs/heads/main": "0" * 40}, {"refs/heads/other": None}, {"refs/heads/main": "main"}):
            with pytest.raises((ValueError, UserError)):
                store.commit_stage(4, "bad", note, summary="", refs=refs)
        assert store.stages()[-1] == (4, "promote")
    assert verify_chain(run).ok


def test_hostile_text_is_stored_and_shown_on_one_line(run: Path, kit: Any) -> None:
    hostile = 'a\n{"number": 99}\x1b[2J\ud800\u202e'
    with RunStore.open(run, write=True) as store:
        store.commit_stage(4, "propose", kit.Note(text=hostile), summary=hostile)
    with RunStore.open(run, write=False) as store:
        note = store.stage(4, "propose", kit.Note)
        assert note is not None and note.text == hostile
        assert "\x1b" not in store.audit()[-1].summary and "\n" not in store.audit()[-1].summary
    assert (run / "audit.jsonl").read_bytes().count(b"\n") == 27


def test_newest_run_first(run: Path, kit: Any) -> None:
    with RunStore.create(run.parent / "later", kit.manifest("later")):
        pass
    os.utime(run / "run.json", (1, 1))
    (run.parent / "no-run").mkdir()
    assert [folder.name for folder in runs(run.parent)] == ["later", "run"]


# ---------------------------------------------------------------- reading changes nothing


def test_reading_changes_no_byte(run: Path, kit: Any) -> None:
    before = kit.content_hash(run)
    with RunStore.open(run, write=False) as store:
        store.stage(3, "remember", kit.Note)
        list(store.lineage.log(*store.refs().values()))
        with pytest.raises(ValueError, match="reading"):
            store.commit_stage(4, "x", kit.Note(text=""), summary="")
    verify_chain(run)
    assert kit.content_hash(run) == before


def test_reading_beside_a_writer_sees_the_last_commit_and_changes_no_byte(run: Path, kit: Any) -> None:
    with RunStore.open(run, write=True, clock=kit.ticking()) as writer:
        kit.iterate(writer, 4, writer.refs()["refs/heads/main"])
        assert (run / "run.db-wal").stat().st_size > 0
        before = kit.content_hash(run)
        code = f"""
from pathlib import Path
from harness.state.store import RunStore
with RunStore.open(Path({str(run)!r}), write=False) as store:
    print(store.head)
"""
        done = python(code)
        assert done.stdout.strip() == writer.head, done.stderr
        assert kit.content_hash(run) == before
        kit.iterate(writer, 5, writer.refs()["refs/heads/main"])
    assert verify_chain(run).ok


def test_one_writer(run: Path, kit: Any) -> None:
    code = f"""
from pathlib import Path
from harness.errors import UserError
from harness.state.store import RunStore
try:
    RunStore.open(Path({str(run)!r}), write=True)
except UserError as error:
    print(error)
"""
    with RunStore.open(run, write=True) as writer:
        before = kit.content_hash(run)
        assert "another process is running this run" in python(code).stdout
        assert kit.content_hash(run) == before
        writer.commit_stage(4, "recall", kit.Note(text=""), summary="")
    assert python(code).stdout == ""


# ---------------------------------------------------------------- what a kill can leave


def tear(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-20])


def lose_last(path: Path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def garble_last(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-30] + b"\0" * 12)


@pytest.mark.parametrize("name", ["audit.jsonl", "memory.jsonl"])
@pytest.mark.parametrize("damage", [tear, lose_last, garble_last])
def test_a_torn_end_is_made_whole(run: Path, kit: Any, name: str, damage: Callable[[Path], None]) -> None:
    whole = kit.content_hash(run)
    damage(run / name)
    torn = kit.content_hash(run)
    with RunStore.open(run, write=False) as store:
        assert len(store.attempts()) == 3
    assert kit.content_hash(run) == torn  # reading repairs nothing
    with RunStore.open(run, write=True):
        pass
    assert kit.content_hash(run) == whole


def test_references_that_git_does_not_have_yet_are_set(run: Path) -> None:
    git = ["git", f"--git-dir={run / 'lineage.git'}"]
    with RunStore.open(run, write=False) as store:
        wanted = store.refs()
    subprocess.run([*git, "update-ref", "-d", "refs/heads/candidate/0003-idea"], check=True)
    subprocess.run([*git, "update-ref", "refs/heads/main", wanted["refs/heads/candidate/0001-idea"]], check=True)
    assert len(verify_chain(run).problems) == 2
    (run / "lineage.git/objects/tmp_obj_harness").write_bytes(b"half")
    with RunStore.open(run, write=True) as store:
        assert store.lineage.refs() == wanted
    assert not (run / "lineage.git/objects/tmp_obj_harness").exists()
    assert verify_chain(run).ok


def test_locks_of_a_git_that_died_are_removed(run: Path, kit: Any) -> None:
    repository = run / "lineage.git"
    locks = [repository / name for name in ("HEAD.lock", "packed-refs.lock", "refs/heads/main.lock")]
    for lock in locks:
        lock.touch()
    with RunStore.open(run, write=True, clock=kit.ticking()) as store:
        commit = store.refs()["refs/heads/candidate/0003-idea"]
        refs = {"refs/heads/main": commit, "refs/tags/frontier/0000": None}
        store.commit_stage(4, "promote", kit.Note(text="x"), summary="x", refs=refs)
        assert store.lineage.refs()["refs/heads/main"] == commit
    assert not any(lock.exists() for lock in locks)


def test_a_killed_creation_is_begun_again(tmp_path: Path, kit: Any) -> None:
    folder = tmp_path / "run"
    with RunStore.create(folder, kit.manifest()) as store:
        kit.seed(store)
    (folder / "run.json").unlink()
    (folder / "h0").mkdir()
    refused(folder, kit, "holds no run")
    with RunStore.create(folder, kit.manifest()) as store:
        assert store.stages() == ((0, "run"),) and store.lineage.refs() == {}
    assert (folder / "h0").is_dir()
    with pytest.raises(UserError, match="already holds a run"):
        RunStore.create(folder, kit.manifest())


def test_a_folder_of_something_else_is_left_alone(tmp_path: Path, kit: Any) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    (tmp_path / "run.db").write_text("not ours")
    before = kit.content_hash(tmp_path)
    with pytest.raises(UserError, match=r"thesis\.tex"):
        RunStore.create(tmp_path, kit.manifest())
    assert kit.content_hash(tmp_path) == before
    with pytest.raises(UserError, match="File exists"):
        RunStore.create(tmp_path / "thesis.tex", kit.manifest())


# ---------------------------------------------------------------- what was edited is refused, naming the line


def edit_line(path: Path, number: int, change: Callable[[bytes], bytes | None]) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    changed = change(lines[number - 1])
    lines[number - 1 : number] = [] if changed is None else [changed]
    path.write_bytes(b"".join(lines))


@pytest.mark.parametrize("write", [True, False])
@pytest.mark.parametrize("number", [1, 9, 25])
@pytest.mark.parametrize(
    "change",
    [lambda line: line.replace(b'"summary":"', b'"summary":"!'), lambda line: None, lambda line: b"\n" + line],
    ids=["edited", "missing", "inserted"],
)
def test_an_edited_audit_line_is_named(
    run: Path, kit: Any, number: int, change: Callable[[bytes], bytes | None], write: bool
) -> None:
    edit_line(run / "audit.jsonl", number, change)
    refused(run, kit, rf"audit\.jsonl: line {number} ", write)
    assert f"line {number} " in verify_chain(run).problems[0]


def test_an_edited_memory_line_and_lost_earlier_lines_are_named(run: Path, kit: Any) -> None:
    keep = {name: (run / name).read_bytes() for name in ("audit.jsonl", "memory.jsonl")}
    edit_line(run / "memory.jsonl", 2, lambda line: line.replace(b"idea 2", b"idea 9"))
    refused(run, kit, r"memory\.jsonl: line 2 is not what was written")
    (run / "memory.jsonl").write_bytes(b"".join(keep["memory.jsonl"].splitlines(keepends=True)[:1]))
    refused(run, kit, r"memory\.jsonl: line 2 is missing")
    (run / "memory.jsonl").write_bytes(keep["memory.jsonl"])
    (run / "audit.jsonl").write_bytes(b"".join(keep["audit.jsonl"].splitlines(keepends=True)[:12]))
    refused(run, kit, r"audit\.jsonl: line 13 is missing")
    (run / "audit.jsonl").write_bytes(keep["audit.jsonl"] + b"{}\n")
    refused(run, kit, r"audit\.jsonl: line 27 is not in run\.db")


def sql(run: Path, statement: str) -> None:
    connection = sqlite3.connect(run / "run.db")
    with connection:
        connection.execute(statement)
    connection.close()


def test_an_edited_database_is_refused(run: Path, kit: Any) -> None:
    copy = run.with_name("copy")
    shutil.copytree(run, copy)
    sql(run, "UPDATE stage SET line = replace(line, 'idea 2', 'idea 9')")
    refused(run, kit, r"run\.db: audit line 12 does not continue the chain")
    sql(copy, "UPDATE stage SET attempt = replace(attempt, 'idea 2', 'idea 9')")
    refused(copy, kit, r"run\.db: the attempt of audit line 18")


def test_an_edited_outcome_is_refused_when_read(run: Path, kit: Any) -> None:
    sql(run, "UPDATE stage SET outcome = replace(outcome, 'idea 2', 'idea 9') WHERE number = 12")
    with RunStore.open(run, write=False) as store, pytest.raises(UserError, match="outcome of audit line 12"):
        store.stage(2, "propose", kit.Note)
    assert ["audit line 12" in problem for problem in verify_chain(run).problems] == [True]


def test_a_chain_made_anew_disagrees_with_the_commits(run: Path) -> None:
    """Who rewrites database and files together, hashes and all, is found out by the heads that the commits quote."""
    with RunStore.open(run, write=False) as store:
        lines = list(store.audit())
    previous = FIRST
    for at, line in enumerate(lines):
        summary = "a better figure" if line.number == 5 else line.summary
        lines[at] = line.model_copy(update={"summary": summary, "previous": previous}).sealed()
        previous = lines[at].hash
    connection = sqlite3.connect(run / "run.db")
    with connection:
        connection.executemany("UPDATE stage SET line = ? WHERE number = ?", [(li.text(), li.number) for li in lines])
    connection.close()
    (run / "audit.jsonl").write_text("".join(line.text() + "\n" for line in lines))
    with RunStore.open(run, write=True) as store:
        assert store.audit()[4].summary == "a better figure"
    problems = verify_chain(run).problems
    assert problems and all("quotes audit head" in problem for problem in problems)


# ---------------------------------------------------------------- bad input: one line, folder unchanged


def test_another_version(run: Path, kit: Any) -> None:
    text = (run / "run.json").read_text()
    (run / "run.json").write_text(text.replace('"version": 1', '"version": 2'))
    for write in (True, False):
        assert "format 2" in refused(run, kit, "run format", write)
    (run / "run.json").write_text("{")
    refused(run, kit, r"run\.json is damaged")
    (run / "run.json").write_text(text.replace('"seed": 7', '"seed": 8'))
    refused(run, kit, r"run\.json is not what the first audit line records")
    (run / "run.json").write_text(text.replace('"seed": 7', '"seed": "x"'))
    refused(run, kit, r"run\.json is damaged \(seed")


@pytest.mark.parametrize("name", ["run.json", "run.db", "audit.jsonl", "memory.jsonl", "lineage.git"])
@pytest.mark.parametrize("write", [True, False])
def test_a_missing_part_is_named(run: Path, kit: Any, name: str, write: bool) -> None:
    (shutil.rmtree if (run / name).is_dir() else Path.unlink)(run / name)
    refused(run, kit, name, write)


@pytest.mark.parametrize("write", [True, False])
def test_a_corrupt_database(run: Path, kit: Any, write: bool) -> None:
    path = run / "run.db"
    content = path.read_bytes()
    for damaged in (b"hello", content[: len(content) // 2], b"\xff" * 4096 + content[4096:], b""):
        path.write_bytes(damaged)
        refused(run, kit, r"run\.db", write)
    middle = content[:4096] + b"\xaa" * (len(content) - 4096)
    path.write_bytes(middle)
    refused(run, kit, r"run\.db", write)


FILL = """
import shutil, sys
from pathlib import Path
sys.path.insert(0, "tests/state")
from conftest import Note, content_hash
from harness.errors import UserError
from harness.state.store import RunStore
from harness.state.verify import verify_chain
folder = Path(sys.argv[1])
if len(sys.argv) > 3:  # a disk of its own: copy the run onto it, then leave little free
    shutil.copytree(sys.argv[2], folder)
    (folder.parent / "ballast").write_bytes(bytes(int(sys.argv[3])))
before = content_hash(folder)
try:
    with RunStore.open(folder, write=True) as store:
        for number in range(200):
            store.commit_stage(9, f"s{number}", Note(text="x" * 300_000), summary="filling")
except UserError as error:
    print(error)
print(content_hash(folder) == before)
report = verify_chain(folder)
print(report.lines, report.problems)
"""


def bubble(*own: str) -> list[str]:
    """A bubble with the system, the interpreter and the project in it, read-only, and what ``own`` adds.

    Not the whole of ``/``: containers that come and go elsewhere on the machine would get in the way.
    """
    system = [path for path in Path("/").iterdir() if path.name in ("usr", "bin", "lib", "lib64", "etc", "sbin")]
    needed = [*system, Path(sys.base_prefix), Path(sys.prefix), ROOT]
    binds = [word for path in needed for word in ("--ro-bind", str(path), str(path))]
    return ["bwrap", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp", *binds, *own]


needs_bwrap = pytest.mark.skipif(
    shutil.which("bwrap") is None and os.environ.get("CI") != "true", reason="bubblewrap is not installed"
)


@needs_bwrap
def test_a_read_only_folder(run: Path) -> None:
    done = python(FILL, str(run), inside=bubble("--ro-bind", str(run), str(run)))
    assert done.returncode == 0, done.stderr
    message, same, report = done.stdout.splitlines()
    assert "Read-only file system" in message
    assert (same, report) == ("True", "26 ()")


@needs_bwrap
@pytest.mark.parametrize(("ballast", "before_it_starts"), [(14_000_000, True), (0, False)])
def test_a_full_disk(run: Path, ballast: int, before_it_starts: bool) -> None:
    """A disk that is full at the start, and one that fills up in the middle of a run."""
    disk = bubble("--ro-bind", str(run), str(run), "--size", "24000000", "--tmpfs", "/mnt")
    done = python(FILL, "/mnt/run", str(run), str(ballast), inside=disk)
    assert done.returncode == 0, done.stderr
    message, same, report = done.stdout.splitlines()
    assert "disk is full" in message or "No space left" in message
    assert same == str(before_it_starts)
    lines, problems = report.split(" ", 1)
    assert problems == "()"  # what was committed is whole
    assert int(lines) == 26 if before_it_starts else int(lines) > 26
