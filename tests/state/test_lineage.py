"""The lineage: real git finds it sound, ids are the same for the same input, and hostile text forges nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import git
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.state.lineage import Lineage, LineageError
from harness.state.story import candidate_branch, compose, parse_trailers
from principles.h0 import load_h0

FILES = {"policy.py": b"class Policy:\n\tpass\n", "words.json": '["caf\u00e9"]\n'.encode(), "a1.py": b""}
PERSON = {"NAME": "LVMH harness", "EMAIL": "harness@lvmh.invalid", "DATE": "1700000000 +0000"}


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    made = Lineage.init(tmp_path / "lineage.git")
    yield made
    made.close()


def real_git(lineage: Lineage, *arguments: str, stdin: bytes = b"") -> bytes:
    command = ["git", f"--git-dir={lineage.path}", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout


def test_files_come_back_and_git_agrees_on_every_id(lineage: Lineage) -> None:
    tree = lineage.intake(FILES)
    assert lineage.read(tree) == FILES
    listing = real_git(lineage, "ls-tree", "-rlz", tree).decode()
    rows = [row.split("\t") for row in listing.split("\0") if row]
    assert [path for _, path in rows] == sorted(FILES)
    for facts, path in rows:
        mode, kind, oid, size = facts.split()
        assert (mode, kind, int(size)) == ("100644", "blob", len(FILES[path]))
        assert real_git(lineage, "hash-object", "--stdin", stdin=FILES[path]).decode().strip() == oid
    made = "".join(f"{facts.rsplit(' ', 1)[0].strip()}\t{path}\n" for facts, path in rows)
    assert real_git(lineage, "mktree", stdin=made.encode()).decode().strip() == tree


def test_the_same_input_gives_the_same_commit(lineage: Lineage, tmp_path: Path) -> None:
    arguments = ((), "Start\n\nBody.", {"Iteration": "0", "Audit-Head": "f" * 64}, 1_700_000_000.9)
    first = lineage.commit(lineage.intake(FILES), *arguments)
    assert first == lineage.commit(lineage.intake(dict(reversed(FILES.items()))), *arguments)
    other = Lineage.init(tmp_path / "other.git")
    assert first == other.commit(other.intake(FILES), *arguments)
    other.close()
    assert first != lineage.commit(lineage.intake(FILES), (), "Start", {"Iteration": "0"}, 1_700_000_000)
    person = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in PERSON.items()}
    message = "Start\n\nBody.\n\nIteration: 0\nAudit-Head: " + "f" * 64 + "\n"
    command = ["git", f"--git-dir={lineage.path}", "commit-tree", lineage.intake(FILES)]
    made = subprocess.run(command, input=message.encode(), env=os.environ | person, capture_output=True, check=True)
    assert made.stdout.decode().strip() == first


def test_an_iteration_told_by_git(lineage: Lineage) -> None:
    tree = lineage.intake(FILES)
    start = lineage.commit(tree, (), "Start from v00", {"Iteration": "0"}, 0)
    changed = lineage.intake(FILES | {"policy.py": b"class Policy:\n\tx = 1\n"})
    idea = lineage.commit(changed, (start,), "0001 idea\n\nWhat.\n\nWhy: because", {"Iteration": "1"}, 60)
    outcome = lineage.commit(changed, (idea,), "Outcome 0001: promoted", {"Iteration": "1", "Dev-Accuracy": "0.5"}, 61)
    merge = lineage.commit(changed, (start, outcome), "Promote 0001 idea", {"Iteration": "1"}, 62)
    lineage.set_refs({"refs/heads/main": merge, "refs/heads/candidate/0001-idea": outcome})
    lineage.set_refs({"refs/tags/frontier/0000": start, "refs/tags/frontier/0001": merge})
    lineage.set_refs({"refs/tags/frontier/0000": None})
    assert set(lineage.refs()) == {"refs/heads/main", "refs/heads/candidate/0001-idea", "refs/tags/frontier/0001"}

    assert real_git(lineage, "fsck", "--strict", "--full") == b""
    graph = real_git(lineage, "log", "--graph", "--oneline", "--all").decode()
    told = [line.lstrip("*|\\/ ").split(" ", 1)[-1] for line in graph.splitlines() if "*" in line]
    assert told == ["Promote 0001 idea", "Outcome 0001: promoted", "0001 idea", "Start from v00"]
    assert [commit.oid for commit in lineage.log(merge)] == [merge, outcome, idea, start]
    read = lineage.commit_of(outcome)
    assert (read.parents, read.tree, read.date) == ((idea,), changed, 61)
    assert read.subject == "Outcome 0001: promoted"
    assert read.trailers == {"Iteration": "1", "Dev-Accuracy": "0.5"}
    assert lineage.diff(tree, changed) == (
        "--- a/policy.py\n+++ b/policy.py\n@@ -1,2 +1,2 @@\n class Policy:\n-\tpass\n+\tx = 1\n"
    )
    assert lineage.diff(tree, tree) == ""


def test_another_implementation_of_git_reads_it(lineage: Lineage) -> None:
    tree = lineage.intake(FILES)
    commit = lineage.commit(tree, (), "Start", {"Iteration": "0"}, 1_000)
    lineage.set_refs({"refs/heads/main": commit})
    with git.Repo(lineage.path) as repo:
        assert repo.bare and repo.head.commit.hexsha == commit
        assert repo.head.commit.committed_date == 1_000
        assert {blob.path: blob.data_stream.read() for blob in repo.head.commit.tree.blobs} == FILES


def test_reading_and_writing_again_after_git_packed_everything(lineage: Lineage) -> None:
    tree = lineage.intake(FILES)
    commit = lineage.commit(tree, (), "Start", {"Iteration": "0"}, 0)
    lineage.set_refs({"refs/heads/main": commit, "refs/tags/frontier/0000": commit})
    real_git(lineage, "gc", "--quiet", "--prune=now")
    real_git(lineage, "pack-refs", "--all")
    assert lineage.read(tree) == FILES and lineage.intake(FILES) == tree
    lineage.set_refs({"refs/tags/frontier/0000": None})
    assert lineage.refs() == {"refs/heads/main": commit}


def test_a_dead_git_process_is_replaced(lineage: Lineage) -> None:
    tree = lineage.intake(FILES)
    assert lineage.read(tree) == FILES
    for conversation in lineage._git._running.values():
        conversation._process.kill()
        conversation._process.wait()
    assert lineage.read(tree) == FILES
    lineage.close()
    assert lineage.read(tree) == FILES


def test_damage_is_named(lineage: Lineage, tmp_path: Path) -> None:
    tree = lineage.intake(FILES)
    oid = real_git(lineage, "rev-parse", f"{tree}:policy.py").decode().strip()
    path = lineage.path / "objects" / oid[:2] / oid[2:]
    path.chmod(0o644)
    path.write_bytes(b"garbage")
    with pytest.raises(Exception, match=r"policy\.py|corrupt|loose object|git cat-file") as error:
        lineage.read(tree)
    assert "\n" not in str(error.value)
    with pytest.raises(LineageError, match="missing"):
        lineage.read("1" * 40)
    for name in ("HEAD", "main", tree[:12], "--help", tree + "\n"):
        with pytest.raises(LineageError, match="full object id"):
            lineage.read(name)
    with pytest.raises(LineageError, match="no git repository"):
        Lineage.open(tmp_path)


def test_limits_are_those_of_the_constitution(lineage: Lineage) -> None:
    intake = load_h0().constitution.intake
    limits = lineage.limits
    assert (limits.files, limits.file_bytes, limits.total_bytes) == (
        intake.files, intake.file_bytes, intake.total_bytes
    )  # fmt: skip


def test_without_git_it_says_so(lineage: Lineage, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = lineage.intake(FILES)
    monkeypatch.setenv("PATH", str(tmp_path))
    for call in (lambda: lineage.read(tree), lineage.refs, lambda: Lineage.init(tmp_path / "other.git")):
        with pytest.raises(LineageError, match=r"git cannot be run .*install git"):
            call()


# ---------------------------------------------------------------- the environment has no say


def test_nothing_of_the_users_git_applies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks, fsmonitor, templates, aliases and GIT_* variables of whoever runs the harness are not used."""
    canary = tmp_path / "canary"
    script = tmp_path / "hook"
    script.write_text(f"#!/bin/sh\ntouch {canary}\n")
    script.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("reference-transaction", "post-checkout", "pre-commit"):
        (hooks / name).symlink_to(script)
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(
        f"[core]\n\thooksPath = {hooks}\n\tfsmonitor = {script}\n[init]\n\ttemplateDir = {hooks}\n"
        "[user]\n\tname = Somebody\n[gc]\n\tauto = 1\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(hooks))
    lineage = Lineage.init(tmp_path / "lineage.git")
    for name in ("reference-transaction", "post-checkout"):  # planted in the repository itself, too
        (lineage.path / "hooks").mkdir(exist_ok=True)
        (lineage.path / "hooks" / name).symlink_to(script)
    tree = lineage.intake(FILES)
    commit = lineage.commit(tree, (), "Start", {"Iteration": "0"}, 0)
    lineage.set_refs({"refs/heads/main": commit})
    assert lineage.read(tree) == FILES and lineage.refs() == {"refs/heads/main": commit}
    assert next(iter(lineage.log(commit))).oid == commit
    lineage.close()
    assert not canary.exists()
    assert not (tmp_path / "elsewhere").exists() and not (tmp_path / "objects").exists()
    monkeypatch.undo()
    subprocess.run(["git", f"--git-dir={lineage.path}", "update-ref", "refs/heads/x", commit], check=True)
    assert canary.exists()  # the trap works for who steps into it
    assert b"Somebody" not in real_git(lineage, "cat-file", "-p", commit)


# ---------------------------------------------------------------- messages

LINES = st.lists(
    st.one_of(
        st.text(max_size=30),
        st.sampled_from(
            ["", "---", "--- a", "Audit-Head: " + "0" * 64, "Signed-off-by: x", "# c", " Iteration: 9",
             "(cherry picked from commit 1)", "diff --git a/x b/x", "Fixes: 1\nDev-Accuracy: 1.0", "\x1b[2J", "\r\n"]
        ),
    ),
    max_size=8,
)  # fmt: skip


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(LINES, st.text(max_size=40))
def test_no_message_forges_a_trailer(lineage: Lineage, body: list[str], value: str) -> None:
    trailers = {"Iteration": "1", "Note": value, "Audit-Head": "a" * 64}
    message = compose("\n".join(body), trailers)
    expected = parse_trailers(message.decode())
    assert list(expected) == list(trailers)
    assert expected["Audit-Head"] == "a" * 64 and expected["Iteration"] == "1"
    seen = real_git(lineage, "interpret-trailers", "--parse", stdin=message).decode()
    assert seen == "".join(f"{key}: {text}\n" for key, text in expected.items())
    assert not [c for c in message.decode() if c != "\n" and (ord(c) < 32 or 127 <= ord(c) < 160)]
    commit = lineage.commit(lineage.intake(FILES), (), "\n".join(body), trailers, 0)
    told = real_git(lineage, "log", "-1", "--format=%(trailers:only)", commit).decode()
    assert told.strip() == seen.strip()


def test_a_commit_needs_trailers() -> None:
    for bad in ({}, {"bad key": "x"}, {"a\nB": "x"}, {"-x": "y"}):
        with pytest.raises(ValueError):
            compose("title", bad)


@given(st.integers(0, 99_999), st.text())
def test_branch_names_are_safe_for_any_title(iteration: int, title: str) -> None:
    name = candidate_branch(iteration, title)
    checked = ["git", "check-ref-format", f"refs/heads/{name}"]
    assert name.isascii() and " " not in name and len(name) < 70
    if len(title) == 3:  # a process each: only some
        assert subprocess.run(checked, check=False).returncode == 0
