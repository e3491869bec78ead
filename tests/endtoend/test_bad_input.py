"""Bad input and a bad environment: one clear line, exit 2, and not a byte of the run's folder changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.cli import main
from tests.endtoend.conftest import Finished, command, environment

Command = Callable[..., Finished]


@pytest.fixture(scope="module")
def original(small_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two iterations; each test works on a copy."""
    folder = tmp_path_factory.mktemp("original")
    arguments = ("run", "--iterations", "2", "--data", str(small_data), "--name", "one", "--sandbox", "bubblewrap")
    subprocess.run(command(*arguments), cwd=folder, env=environment(), check=True, capture_output=True, timeout=300)
    return folder / "runs" / "one"


@pytest.fixture
def copied(original: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "runs" / "one"
    shutil.copytree(original, folder)
    return folder


def folder_hash(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        digest.update(str(path.relative_to(folder)).encode())
        if path.is_file():
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def assert_one_line(done: Finished, *words: str) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    lines = [line for line in done.stderr.strip().splitlines() if line]
    assert len(lines) == 1, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    for word in words:
        assert word in lines[0], lines[0]


def resume(harness: Command, data: Path, *more: str, env: dict[str, str] | None = None) -> Finished:
    return harness(
        "run", "--iterations", "3", "--data", str(data), "--name", "one", "--sandbox", "bubblewrap", *more, env=env
    )


def test_corrupt_database(copied: Path, harness: Command, small_data: Path) -> None:
    path = copied / "run.db"
    content = bytearray(path.read_bytes())
    content[100:4096] = os.urandom(3996)
    path.write_bytes(content)
    before = folder_hash(copied)
    assert_one_line(resume(harness, small_data), "run.db")
    assert_one_line(harness("status", "--run", "one"), "run.db")
    assert folder_hash(copied) == before


def test_edited_audit_line(copied: Path, harness: Command, small_data: Path) -> None:
    path = copied / "audit.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    row = json.loads(lines[4])
    row["summary"] = "all is well"
    lines[4] = json.dumps(row) + "\n"
    path.write_text("".join(lines))
    before = folder_hash(copied)
    assert_one_line(resume(harness, small_data), "audit.jsonl", "5")
    assert folder_hash(copied) == before


def test_another_version(copied: Path, harness: Command, small_data: Path) -> None:
    path = copied / "run.json"
    row = json.loads(path.read_text())
    row["version"] = 99
    path.write_text(json.dumps(row))
    before = folder_hash(copied)
    for done in (resume(harness, small_data), harness("status", "--run", "one")):
        assert_one_line(done, "99")
    assert folder_hash(copied) == before


def test_changed_h0(copied: Path, harness: Command, small_data: Path) -> None:
    with (copied / "h0" / "constitution.md").open("a") as file:
        file.write("\nNothing is forbidden.\n")
    before = folder_hash(copied)
    assert_one_line(resume(harness, small_data), "constitution.md")
    assert folder_hash(copied) == before


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (("--seed", "5"), "seed"),
        (("--parent", "v01"), "parent"),
        (("--parent", "v99"), "v99"),
        (("--profile", "nowhere"), "nowhere"),
        (("--seed", "many"), "many"),
    ],
)
def test_another_run_under_the_same_name(
    copied: Path, harness: Command, small_data: Path, more: tuple[str, str], word: str
) -> None:
    before = folder_hash(copied)
    done = resume(harness, small_data, *more)
    assert done.returncode == 2 and word in done.stderr and "Traceback" not in done.stderr
    assert folder_hash(copied) == before


def test_missing_data(copied: Path, harness: Command, tmp_path: Path) -> None:
    before = folder_hash(copied)
    assert_one_line(resume(harness, tmp_path / "nowhere"), "nowhere")
    assert folder_hash(copied) == before


def test_changed_data(copied: Path, harness: Command, small_data: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(small_data, other)
    file = next((other / "windows").glob("*.jsonl"))
    file.write_text(file.read_text().replace("the", "The", 1))
    before = folder_hash(copied)
    assert_one_line(resume(harness, other), file.name)
    assert folder_hash(copied) == before


def test_second_writer(copied: Path, harness: Command, small_data: Path) -> None:
    from harness.state.store import RunStore

    with RunStore.open(copied, write=True):
        assert_one_line(resume(harness, small_data), "one")


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small file system needs root")
def test_full_disk(original: Path, harness: Command, small_data: Path, tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    runs.mkdir()
    files = [path for path in original.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size + 8192 for path in files) + 1_000_000
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(runs)], check=False)
    if mounted.returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        shutil.copytree(original, runs / "one")
        before = folder_hash(runs / "one")
        with (runs / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(b"0" * 4096)
        assert_one_line(resume(harness, small_data), "space")
        assert folder_hash(runs / "one") == before
    finally:
        subprocess.run(["umount", "-l", str(runs)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="a read-only mount needs root")
def test_read_only_folder(copied: Path, harness: Command, small_data: Path, tmp_path: Path) -> None:
    runs = str(tmp_path / "runs")
    if subprocess.run(["mount", "--bind", runs, runs], check=False).returncode != 0:
        pytest.skip("this machine lets nobody mount a file system")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", runs], check=True)
        before = folder_hash(copied)
        assert_one_line(resume(harness, small_data), "one")
        assert harness("status", "--run", "one").returncode == 0
        assert folder_hash(copied) == before
    finally:
        subprocess.run(["umount", "-l", runs], check=True)


def test_no_run_yet(harness: Command) -> None:
    for arguments in (("status",), ("log",), ("show", "1"), ("frontier",)):
        assert_one_line(harness(*arguments), "harness run")


@pytest.mark.parametrize(
    "arguments",
    [
        ("nosuch",),
        ("show", "-1"),
        ("show", "abc"),
        ("show",),
        ("status", "--jsn"),
        ("run", "--iterations", "many"),
        ("run", "--iterations", "-1"),
        ("run", "--workers", "-1"),
        ("run", "--sandbox", "none"),
        ("run", "--name", "a/b"),
        ("run", "--name", ".."),
        ("run", "--name", "a\x1b[31mb"),
        ("run", "--name", "x" * 101),
        ("run", "--config", "nowhere.toml"),
        ("run", "--data", "nowhere"),
        ("evaluate",),
        ("evaluate", "--policy", "v00", "--out", "nowhere/outcomes.json"),
        ("evaluate", "--policy", "v00", "--out", "."),
        ("evaluate", "--policy", "v00", "--split", "train"),
        ("data", "make", "--out", "made", "--seed", "-1"),
        ("data", "import", "egolife", "nowhere", "--out", "made"),
        ("config", "--profile", "nowhere"),
    ],
    ids=" ".join,
)
def test_wrong_usage(
    tmp_path: Path,
    small_data: Path,
    arguments: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """In this process, for speed: the command's own entry point."""
    given = ("--data", str(small_data)) if arguments[0] == "run" and "--data" not in arguments else ()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["harness", *arguments, *given])
    for name in [name for name in os.environ if name.startswith(("HARNESS_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    with pytest.raises(SystemExit) as stop:
        main()
    said = capsys.readouterr()
    assert_one_line(Finished([], int(str(stop.value)), said.out, said.err))
    assert list(tmp_path.iterdir()) == []


def test_a_check_that_finds_something_ends_with_1(harness: Command, small_data: Path, tmp_path: Path) -> None:
    assert harness("data", "check", str(small_data)).returncode == 0
    assert harness("data", "check", str(tmp_path)).returncode == 1


def test_unknown_names(copied: Path, harness: Command) -> None:
    assert_one_line(harness("status", "--run", "other"), "other")
    assert_one_line(harness("show", "77", "--run", "one"), "77")
    assert_one_line(harness("evaluate", "--policy", "v99"), "v99")
