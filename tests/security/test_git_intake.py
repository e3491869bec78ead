"""Attacks through git: hostile trees made with real git, hostile file mappings, hostile repositories.

Each refusal is typed and says why on one line without control characters; nothing outside the repository is touched, no
blob is read before the caps are checked, and the next candidate is taken in as before.
"""

from __future__ import annotations

import hashlib
import resource
import subprocess
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.state.intake import IntakeLimits
from harness.state.lineage import IntakeRejected, Lineage, LineageError
from harness.state.objects import LooseObjects, object_id, tree_body

GOOD = {"policy.py": b"class Policy: ...\n"}


@pytest.fixture
def lineage(tmp_path: Path) -> Iterator[Lineage]:
    made = Lineage.init(tmp_path / "lineage.git")
    yield made
    assert made.read(made.intake(GOOD)) == GOOD  # the next candidate is taken in as before
    made.close()


def git(lineage: Lineage, *arguments: str, stdin: bytes = b"") -> str:
    command = ["git", f"--git-dir={lineage.path}", *arguments]
    return subprocess.run(command, input=stdin, capture_output=True, check=True).stdout.decode().strip()


def blob(lineage: Lineage, content: bytes) -> str:
    return git(lineage, "hash-object", "-w", "--stdin", stdin=content)


def tree(lineage: Lineage, *rows: tuple[str, str, str, str]) -> str:
    """A tree of (mode, type, id, name) made by git mktree, which takes nearly anything, with a policy.py in it."""
    good = ("100644", "blob", blob(lineage, GOOD["policy.py"]), "policy.py")
    named = {name: f"{mode} {kind} {oid}\t{name}\0" for mode, kind, oid, name in (good, *rows)}
    return git(lineage, "mktree", "-z", "--missing", stdin="".join(named.values()).encode())


def refused(lineage: Lineage, oid: str, rule: str) -> str:
    """Both the listing and the reading refuse, alike, on one printable line."""
    with pytest.raises(IntakeRejected) as listed:
        lineage.entries(oid)
    with pytest.raises(IntakeRejected) as read:
        lineage.read(oid)
    assert str(read.value) == str(listed.value)
    assert rule in str(read.value)
    assert all(char.isprintable() for char in str(read.value))
    return str(read.value)


def test_links(lineage: Lineage, tmp_path: Path) -> None:
    """A symbolic link to a file, a folder, gold."""
    gold = tmp_path / "gold"
    gold.write_text("canary")
    for target in ("/etc/passwd", "../../gold", str(gold), "."):
        oid = tree(lineage, ("120000", "blob", blob(lineage, target.encode()), "notes.json"))
        message = refused(lineage, oid, "I01")
        assert "120000" in message and "symbolic link" in message and "canary" not in message


def test_submodules(lineage: Lineage, tmp_path: Path) -> None:
    """A submodule whose URL runs a command."""
    canary = tmp_path / "ran"
    modules = blob(lineage, f'[submodule "x"]\n path = x\n url = ext::sh -c "touch {canary}"\n'.encode())
    oid = tree(lineage, ("160000", "commit", "1" * 40, "x"), ("100644", "blob", modules, ".gitmodules"))
    assert "submodule" in refused(lineage, oid, "160000")
    assert not canary.exists()


@pytest.mark.parametrize(
    "line", ["*.py -diff", "*.py binary", "*.py export-ignore", "*.py export-subst",
             "*.py working-tree-encoding=UTF-16", "*.py ident", "*.py text eol=crlf", "*.py filter=x diff=x"],
)  # fmt: skip
def test_attributes(lineage: Lineage, line: str) -> None:
    """Attributes in the tree are refused; attributes of the repository have no say."""
    oid = tree(lineage, ("100644", "blob", blob(lineage, line.encode()), ".gitattributes"))
    assert ".gitattributes" in refused(lineage, oid, "I01")
    (lineage.path / "info").mkdir(exist_ok=True)
    (lineage.path / "info" / "attributes").write_text(line + "\n")
    before, after = {"policy.py": b"x = '$Id$ $Format:%H$'\n"}, {"policy.py": b"x = 2\r\n"}
    trees = lineage.intake(before), lineage.intake(after)
    assert lineage.read(trees[0]) == before and lineage.read(trees[1]) == after
    assert "-x = '$Id$ $Format:%H$'\n+x = 2\\r\n" in lineage.diff(*trees)


def test_configuration_of_the_repository_runs_nothing(lineage: Lineage, tmp_path: Path) -> None:
    """Fsmonitor, filters, textconv, hooks, alternate-refs command, promisor remote in its config."""
    canary = tmp_path / "ran"
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\ntouch {canary}\n")
    script.chmod(0o755)
    with (lineage.path / "config").open("a") as config:
        config.write(
            f"[core]\n\tfsmonitor = {script}\n\thooksPath = {tmp_path}\n\talternateRefsCommand = {script}\n"
            f"\tsshCommand = {script}\n\tgitProxy = {script}\n\tpager = {script}\n"
            f'[diff "x"]\n\ttextconv = {script}\n\tcommand = {script}\n[filter "x"]\n\tsmudge = {script}\n'
            f"\tclean = {script}\n[extensions]\n\tpartialClone = evil\n"
            f'[remote "evil"]\n\turl = ext::{script}\n\tuploadpack = {script}\n\tpromisor = true\n'
        )
    (tmp_path / "reference-transaction").symlink_to(script)
    oid = lineage.intake(GOOD)
    commit = lineage.commit(oid, (), "Start", {"Iteration": "0"}, 0)
    lineage.set_refs({"refs/heads/main": commit})
    assert lineage.read(oid) == GOOD and list(lineage.log(commit)) and lineage.refs()
    with pytest.raises(LineageError, match="missing"):
        lineage.read("2" * 40)  # a promisor remote would be asked for it
    refused(lineage, tree(lineage, ("100644", "blob", "3" * 40, "gone.py")), "no stored blob")
    canary.unlink(missing_ok=True)  # the plain git of this test's own ``tree`` may have stepped into it
    lineage.read(oid)
    lineage.set_refs({"refs/heads/main": None})
    assert not canary.exists()


@pytest.mark.parametrize(
    "name", [".git", ".GIT", ".Git", "git~1", "GIT~1", ".git ", ".git.", ".g\u200cit", ".git::$INDEX_ALLOCATION",
             ".gitmodules", ".gitignore", ".\u017fgit"],
)  # fmt: skip
def test_names_that_mean_git(lineage: Lineage, name: str) -> None:
    """A nested repository under any spelling; as a file and as a folder."""
    folder = git(lineage, "mktree", stdin=f"100644 blob {blob(lineage, b'x')}\tconfig\n".encode())
    refused(lineage, tree(lineage, ("100644", "blob", blob(lineage, b"x"), name)), "I01")
    assert "folder" in refused(lineage, tree(lineage, ("040000", "tree", folder, name)), "I01")
    with pytest.raises(IntakeRejected, match="I01"):
        lineage.intake(GOOD | {name: b"x", f"{name}/config": b"x"})


def test_a_branch_that_moves_changes_nothing(lineage: Lineage) -> None:
    """What is read is the tree id that was taken in, wherever a branch points meanwhile."""
    oid = lineage.intake(GOOD)
    first = lineage.commit(oid, (), "0001 idea", {"Iteration": "1"}, 0)
    lineage.set_refs({"refs/heads/candidate/0001-idea": first})
    evil = lineage.commit(lineage.intake({"policy.py": b"evil = 1\n"}), (), "0001 idea", {"Iteration": "1"}, 0)
    git(lineage, "update-ref", "refs/heads/candidate/0001-idea", evil)
    git(lineage, "replace", oid, lineage.intake({"policy.py": b"replaced = 1\n"}))
    git(lineage, "replace", first, evil)
    assert git(lineage, "cat-file", "-p", first) != git(lineage, "--no-replace-objects", "cat-file", "-p", first)
    assert lineage.read(oid) == GOOD
    assert lineage.commit_of(first).tree == oid


def test_huge_blobs_are_refused_by_their_header(lineage: Lineage) -> None:
    """256 MB that compress to nothing, refused from its size alone, in no time and no memory."""
    size = 256 * 1024 * 1024
    oid = _bomb(lineage, size)
    hostile = tree(lineage, ("100644", "blob", oid, "big.py"))
    before, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    assert str(size) in refused(lineage, hostile, "I02")
    assert time.monotonic() - began < 15  # unfolding it would take minutes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
    served = [c for name, c in lineage._git._running.items() if "--batch=" in name]
    children = sum(_peak(c._process.pid) for c in served)
    assert children < 64 * 1024  # the process that reads contents never read this one


def _bomb(lineage: Lineage, size: int) -> str:
    """A loose blob of zeros, written without holding it."""
    header, chunk = b"blob %d\0" % size, bytes(1 << 20)
    digest, packer, parts = hashlib.sha1(header), zlib.compressobj(1), []
    parts.append(packer.compress(header))
    for _ in range(size >> 20):
        digest.update(chunk)
        parts.append(packer.compress(chunk))
    parts.append(packer.flush())
    place = lineage.path / "objects" / digest.hexdigest()[:2] / digest.hexdigest()[2:]
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(b"".join(parts))
    return digest.hexdigest()


def _peak(pid: int) -> int:
    """Peak resident memory of a process in KiB."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("VmHWM")), 0)


def test_very_many_files_and_deep_trees(lineage: Lineage) -> None:
    """100,000 entries; a chain of 200 folders; a small tree that unfolds to 10^10 files."""
    one = blob(lineage, b"x")
    objects = LooseObjects(lineage.path / "objects")
    many = objects.write("tree", tree_body({f"f{i:06d}.py": one for i in range(100_000)}))
    dozens = objects.write("tree", tree_body({"policy.py": one} | {f"f{i:03d}.py": one for i in range(500)}))
    deep = git(lineage, "mktree", stdin=f"100644 blob {one}\tpolicy.py\n".encode())
    for _ in range(200):
        deep = objects.write("tree", b"40000 d\0" + bytes.fromhex(deep))
    wide = git(lineage, "mktree", stdin=f"100644 blob {one}\tpolicy.py\n".encode())
    for _ in range(10):
        wide = objects.write("tree", b"".join(b"40000 d%d\0" % i + bytes.fromhex(wide) for i in range(10)))
    began = time.monotonic()
    refused(lineage, many, "I02")
    assert "501 files" in refused(lineage, dozens, "I02")
    refused(lineage, deep, "folder")
    refused(lineage, wide, "folder")
    assert time.monotonic() - began < 15  # unfolding it would take minutes


@pytest.mark.parametrize(
    "name", ["--output=x", "--upload-pack=touch x", "-rf", "--", "--help.py", "a b.py", "$(id).py"]
)
def test_names_that_look_like_options(
    lineage: Lineage, name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As a file's name, as an object id, as a reference; no file is created."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    refused(lineage, tree(lineage, ("100644", "blob", blob(lineage, b"x"), name)), "I01")
    for call in (lineage.entries, lineage.read, lineage.commit_of, lineage.has_commit, lambda n: list(lineage.log(n))):
        with pytest.raises(LineageError, match="full object id"):
            call(name)
    with pytest.raises(LineageError, match="full object id"):
        lineage.commit(name, (), "x", {"Iteration": "0"}, 0)
    for ref in (name, f"refs/heads/candidate/{name}", "refs/heads/main\nupdate refs/heads/x " + "1" * 40, "HEAD"):
        with pytest.raises(ValueError):
            lineage.set_refs({ref: "1" * 40})
    assert list(Path.cwd().iterdir()) == []


def test_candidates_carry_no_history(lineage: Lineage) -> None:
    """What is handed on is the files of one tree; earlier blobs cannot be reached from it."""
    gold = lineage.intake({"policy.py": b"gold = 1\n"})
    parent = lineage.commit(gold, (), "Start", {"Iteration": "0"}, 0)
    oid = lineage.intake(GOOD)
    lineage.commit(oid, (parent,), "0001", {"Iteration": "1"}, 0)
    files = lineage.read(oid)
    assert files == GOOD and all(type(content) is bytes for content in files.values())


@pytest.mark.parametrize(
    "path", ["../policy.py", "/etc/passwd", "a/../../b.py", "harness/loop.py", "sub/policy.py", "policy.py/x.py", "..",
             "", ".", "Policy.py", "policy.PY", "policy.pyc", "policy.so", "__init__.py", "sitecustomize.pth", "x.py\n",
             "x\0.py", "caf\u00e9.py", "\uff50olicy.py", "con\x1b[2J.py", "_a.py", "1a.py", "a.py ", "a" * 70 + ".py",
             "conftest.toml", "C:\\x.py", "x.py:ads", "\udcff.py"],
)  # fmt: skip
def test_paths_in_an_answer(lineage: Lineage, path: str, tmp_path: Path) -> None:
    """Only flat, allow-listed names come in, whatever an answer names."""
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(IntakeRejected, match="I01") as error:
        lineage.intake(GOOD | {path: b"x = 1\n"})
    assert all(char.isprintable() for char in str(error.value))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        ({}, "no policy.py"),
        ({"other.py": b""}, "no policy.py"),
        ({"policy.py": b"\xef\xbb\xbfx = 1"}, "byte order mark"),
        ({"policy.py": "x = 1".encode("utf-16")}, "byte order mark"),
        ({"policy.py": b"x = 1\0"}, "NUL at byte 5"),
        ({"policy.py": b"x = '\xff'"}, "not UTF-8 at byte 5"),
        ({"policy.py": b"x = '\xed\xa0\x80'"}, "not UTF-8 at byte 5"),
        ({"policy.py": b"x = '\xc3"}, "not UTF-8 at byte 5"),
        ({"policy.py": b"#" * 48_001}, "48001 bytes"),
        ({"policy.py": b"", "a.py": b"#" * 40_000, "b.py": b"#" * 40_000}, "80000 bytes in all"),
        ({"policy.py": b""} | {f"m{i}.py": b"" for i in range(12)}, "13 files"),
        ({"policy.py": bytes(50_000_000)}, "50000000 bytes"),
    ],
)
def test_contents_of_an_answer(lineage: Lineage, files: dict[str, bytes], reason: str) -> None:
    """Nothing, NUL, invalid or disguised UTF-8, far too much: typed, with the byte offset."""
    stored = sorted((lineage.path / "objects").rglob("*"))
    with pytest.raises(IntakeRejected, match=reason) as error:
        lineage.intake(files)
    assert error.value.reasons and all(r[0] == "I" and r[1:3].isdigit() for r in error.value.reasons)
    assert sorted((lineage.path / "objects").rglob("*")) == stored  # nothing of it was stored


def test_trees_that_git_itself_would_not_make(lineage: Lineage) -> None:
    """Malformed tree objects: doubled names, odd modes, cut short, not UTF-8; a blob id that is a tree or a commit."""
    objects = LooseObjects(lineage.path / "objects")
    one = bytes.fromhex(blob(lineage, b"x"))
    good = b"100644 policy.py\0" + one
    other_tree = bytes.fromhex(lineage.intake(GOOD))
    commit = bytes.fromhex(lineage.commit(other_tree.hex(), (), "x", {"Iteration": "0"}, 0))
    for body in (
        good + good,
        good + b"0100644 x.py\0" + one,
        good + b"100664 x.py\0" + one,
        good + b"100755 x.py\0" + one,
        good + b"100644 x.py\0" + one[:10],
        good + b"100644x.py\0" + one,
        good + b"100644 \0" + one,
        good + b"100644 \xff\xfe.py\0" + one,
        good + b"100644 x/y.py\0" + one,
        good + b"100644 t.py\0" + other_tree,
        good + b"100644 c.py\0" + commit,
        good + b"999999 x.py\0" + one,
        b"garbage",
    ):
        refused(lineage, objects.write("tree", body), "I01")
    with pytest.raises(LineageError):
        lineage.read(commit.hex())
    with pytest.raises(LineageError):
        lineage.read(one.hex())


def test_text_rules_hold_for_trees_made_elsewhere(lineage: Lineage) -> None:
    oid = tree(lineage, ("100644", "blob", blob(lineage, b"x = '\0'"), "x.py"))
    assert len(lineage.entries(oid)) == 2
    with pytest.raises(IntakeRejected, match="NUL at byte 5"):
        lineage.read(oid)


def test_a_blob_that_is_not_what_its_id_says(lineage: Lineage) -> None:
    """A well-formed loose object under another object's id is not taken for it."""
    oid = lineage.intake(GOOD)
    place = object_id("blob", GOOD["policy.py"])
    path = lineage.path / "objects" / place[:2] / place[2:]
    original = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(zlib.compress(b"blob 17\0" + b"class Evil: ....\n"))
    with pytest.raises(LineageError):
        lineage.read(oid)
    path.write_bytes(original)


def test_printed_differences_carry_no_escapes(lineage: Lineage) -> None:
    old = lineage.intake({"policy.py": b"x = 1\n"})
    new = lineage.intake({"policy.py": "x = '\x1b[2J\x9b\u202e\u200b'\n\ty = '\\t'\n".encode()})
    shown = lineage.diff(old, new)
    assert all(char.isprintable() or char in "\n\t" for char in shown)
    assert "+\ty = '\\t'\n" in shown


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.dictionaries(st.text(max_size=12) | st.just("policy.py"), st.binary(max_size=60), max_size=4))
def test_any_mapping_is_stored_whole_or_refused(lineage: Lineage, files: dict[str, bytes]) -> None:
    try:
        oid = lineage.intake(files)
    except IntakeRejected as error:
        assert error.reasons and str(error).isprintable()
    else:
        assert lineage.read(oid) == files


def test_limits_can_be_tighter(tmp_path: Path) -> None:
    lineage = Lineage.init(tmp_path / "small.git", IntakeLimits(files=1, file_bytes=10, total_bytes=10))
    with pytest.raises(IntakeRejected, match="I02"):
        lineage.intake(GOOD)
    lineage.close()
