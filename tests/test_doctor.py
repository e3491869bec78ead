"""What ``harness doctor`` finds, on this machine as it is and with things taken away."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from harness.doctor import (
    Check,
    Report,
    Trial,
    bubblewrap_mend,
    disk_checks,
    doctor,
    engine_checks,
    git_check,
    open_docker_for_trial,
    python_check,
    render,
    runtime_checks,
    sandbox_checks,
)
from sandbox.interface import Sandbox

NOWHERE = "unix:///nonexistent/engine.sock"


def shown(report: Report) -> str:
    console = Console(file=io.StringIO(), width=140)
    render(report, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.docker
def test_this_machine(sandboxes: Callable[[str], Sandbox], tmp_path: Path) -> None:
    docker = sandboxes("docker")
    report = doctor(tmp_path)
    found = {check.name: check for check in report.checks}
    assert report.usable and report.sandbox.startswith("docker ")
    for name in ("Python", "git", "Docker engine", "Docker image", "Docker sandbox", "Docker walls", "runtime digest"):
        assert found[name].ok, found[name]
    assert docker.runtime_digest[:16] in found["runtime digest"].detail
    assert all(check.ok or check.mend or check.name == "bubblewrap walls" for check in report.checks)
    value = json.loads(json.dumps(report.as_json()))
    assert value["usable"] is True and len(value["checks"]) == len(report.checks)
    assert "a run picks: docker" in shown(report)


def test_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", NOWHERE)
    (engine,) = engine_checks()
    assert not engine.ok and NOWHERE in engine.detail and engine.mend.endswith("sandbox.engine up")
    checks, trial = sandbox_checks("Docker", open_docker_for_trial, "the command", "")
    assert trial is None
    assert checks == [Check(name="Docker sandbox", ok=False, detail=checks[0].detail, mend="the command")]
    assert "no Docker engine answers" in checks[0].detail


def test_tools_taken_away(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert python_check().ok and git_check().ok
    monkeypatch.setenv("PATH", str(tmp_path))
    assert git_check() == Check(name="git", ok=False, detail="not found", mend="apt-get install -y git")
    assert bubblewrap_mend() == "apt-get install -y bubblewrap"


def test_different_runtimes_are_named() -> None:
    (same,) = runtime_checks(Trial("docker", "a" * 64), Trial("bubblewrap", "a" * 64))
    (different,) = runtime_checks(Trial("docker", "a" * 64), Trial("bubblewrap", "b" * 64))
    assert same.ok and not same.mend
    assert not different.ok and different.mend.endswith("sandbox.engine up")
    assert "a" * 16 in different.detail and "b" * 16 in different.detail
    assert list(runtime_checks(None, None)) == []


def test_disk(tmp_path: Path) -> None:
    for check in disk_checks(tmp_path / "not" / "there" / "yet"):
        assert f"{shutil.disk_usage(tmp_path).free / 1e9:.0f}"[:1] in check.detail


def test_nothing_works_and_hostile_words_stay_words() -> None:
    check = Check(name="Docker engine", ok=False, detail="\x1b[2J[red]boo[/red]", mend="one command")
    text = shown(Report(checks=(check,), sandbox=""))
    assert "\x1b" not in text and "[red]boo[/red]" in text
    assert "Docker engine: one command" in text
    assert "no sandbox works here: a run would refuse to start" in text
