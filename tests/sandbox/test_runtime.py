"""The locked runtime: its record, its digest, and the folder that is made of the host's interpreter."""

from __future__ import annotations

import dataclasses
import platform
import re
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.interface import Runtime, SandboxError
from sandbox.runtime import LOCK, RuntimeFolder, digest_of, runtime_from_rootfs, with_code, write_record
from sandbox.runtime_build import build_runtime

RECORD = Runtime("3.11.2", "glibc 2.36", {"numpy": "2.4.6 sha256:00"}, "c0de")


def test_every_part_of_the_record_is_in_the_digest() -> None:
    digest = digest_of(RECORD)
    assert re.fullmatch("[0-9a-f]{64}", digest)
    for change in ({"python": "3.11.3"}, {"libc": "x"}, {"wheels": {"numpy": "2.4.6 sha256:01"}}, {"code": ""}):
        assert digest_of(dataclasses.replace(RECORD, **change)) != digest
    assert digest_of(with_code(dataclasses.replace(RECORD, code=""), "c0de")) == digest
    assert digest_of(Runtime("a", "b", {"x": "1", "y": "2"})) == digest_of(Runtime("a", "b", {"y": "2", "x": "1"}))


def test_a_record_is_read_back(tmp_path: Path) -> None:
    folder = RuntimeFolder(tmp_path, "/bin/python", "/wheels", dataclasses.replace(RECORD, code=""), {"A": "b"})
    write_record(folder)
    assert runtime_from_rootfs(tmp_path) == folder


@pytest.mark.parametrize("content", [None, "", "{}", "[]", '{"record": {}}', "\xff"])
def test_a_folder_without_a_record_is_a_clear_error(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "opt/lvmh").mkdir(parents=True)
        (tmp_path / "opt/lvmh/runtime.json").write_text(content, encoding="latin-1")
    with pytest.raises(SandboxError, match="delete the folder"):
        runtime_from_rootfs(tmp_path)


def test_every_package_is_locked_by_hash_for_four_pythons_and_two_machines() -> None:
    text = LOCK.read_text()
    entries = re.findall(r"^([a-z0-9-]+)==(\S+) \\\n((?: +--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", text, re.MULTILINE)
    counts = {name: hashes.count("--hash") for name, _, hashes in entries}
    assert {"numpy", "simplemma", "bm25s", "dateparser"} <= set(counts)
    assert counts["numpy"] == counts["regex"] == 8
    assert set(counts.values()) == {1, 8}
    assert "://" not in text


def test_the_folder_made_of_the_hosts_interpreter_runs_without_the_host() -> None:
    try:
        folder = build_runtime()
    except SandboxError as error:
        pytest.skip(str(error))
    assert folder.record.python == platform.python_version()
    assert set(folder.record.wheels) >= {"numpy", "simplemma", "bm25s", "dateparser"}
    assert build_runtime() == folder
    mode = folder.root.stat().st_mode & 0o777
    assert mode == 0o755
    program = (
        "import sys, json, ssl, sqlite3, lzma; sys.path.append(sys.argv[1])\n"
        "import numpy, simplemma, bm25s, dateparser\n"
        "print(json.dumps([numpy.__version__, simplemma.lemmatize('bought', 'en'), sys.path]))"
    )
    arguments = ["bwrap", "--unshare-all", "--clearenv", "--ro-bind", str(folder.root), "/", "--proc", "/proc"]
    for name, value in folder.environment.items():
        arguments += ["--setenv", name, value]
    done = subprocess.run(
        [*arguments, folder.python, "-s", "-P", "-S", "-B", "-c", program, folder.wheels],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert '"buy"' in done.stdout
    assert sys.prefix not in done.stdout
