"""Setting up the engine and the image: a daemon of its own for the dangerous part, this machine's for the rest."""

from __future__ import annotations

import dataclasses
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import docker
import pytest

from sandbox.engine import EngineError, base, daemon, recipe, setup
from sandbox.engine.image import (
    PYTHON,
    WHEELS,
    ensure_image,
    export_root,
    find_image,
    image_name,
    is_exported,
    record_of,
)
from sandbox.interface import Runtime, Sandbox
from sandbox.owner import start_time
from sandbox.runtime import RuntimeFolder, runtime_from_rootfs, write_record

ROOT = Path(__file__).parents[2]


# ---------------------------------------------------------------- the image


@pytest.fixture(scope="module")
def client(sandboxes: Callable[[str], Sandbox]) -> Iterator[docker.DockerClient]:
    sandboxes("docker")
    client = daemon.connect()
    yield client
    client.close()


@pytest.mark.docker
def test_an_unchanged_image_is_found_at_once(client: docker.DockerClient) -> None:
    began = time.monotonic()
    image = ensure_image(client)
    assert time.monotonic() - began < 10  # building it takes longer; how fast finding is, the benchmarks tell
    found = find_image(client)
    assert found is not None and found.id == image.id
    assert image_name().endswith(recipe())


@pytest.mark.docker
def test_the_exported_root_is_the_image(client: docker.DockerClient, tmp_path: Path) -> None:
    """Same record, so the same runtime digest in both back ends; nothing in it gains rights by being started."""
    image = ensure_image(client)
    root = tmp_path / "root"
    older = Runtime("3.11.0", "glibc 2.36", {})
    write_record(RuntimeFolder(root, PYTHON, WHEELS, older))
    assert not is_exported(image, root)
    export_root(client, image, root)
    runtime = runtime_from_rootfs(root)
    assert runtime.record == record_of(image)
    facts = "import sys, platform; print(platform.python_version(), *platform.libc_ver())"
    shown = client.containers.run(str(image.id), [runtime.python, "-c", facts], remove=True, network_mode="none")
    assert shown.decode().split() == [runtime.record.python, *runtime.record.libc.split()]
    privileged = [
        path
        for folder, _, names in os.walk(root)
        for path in (Path(folder) / name for name in names)
        if not path.is_symlink() and path.stat().st_mode & (stat.S_ISUID | stat.S_ISGID)
    ]
    assert privileged == []
    assert [path.name for path in tmp_path.iterdir()] == ["root"]
    (root / "mark").touch()
    export_root(client, image, root)
    assert is_exported(image, root) and (root / "mark").exists()  # nothing was done again


@pytest.mark.docker
def test_up_is_quick_where_all_is_there(client: docker.DockerClient) -> None:
    setup.up()
    began = time.monotonic()
    line = setup.up()
    assert time.monotonic() - began < 10  # building it takes longer; how fast finding is, the benchmarks tell
    assert line.startswith(f"Docker is ready: {image_name()}")


@pytest.mark.docker
def test_what_is_no_sandbox_image_says_so(client: docker.DockerClient) -> None:
    name = ensure_image(client).labels["lvmh.base"]
    with pytest.raises(EngineError, match="says nothing of its runtime"):
        record_of(client.images.get(name))


def test_the_mirror_is_the_one_that_apt_uses() -> None:
    if shutil.which("apt-get") is None:
        pytest.skip("not a Debian machine")
    mirror = base.apt_mirror()
    targets = subprocess.run(["apt-get", "indextargets"], capture_output=True, text=True, check=True).stdout
    assert f"Repo-URI: {mirror.url}\n" in targets
    assert f"Codename: {mirror.suite}\n" in targets


# ---------------------------------------------------------------- commands


def run_command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "sandbox.engine", *arguments]
    return subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True, check=False)


def test_an_unknown_command_shows_what_there_is() -> None:
    done = run_command("sideways")
    assert done.returncode == 2 and "up | down | ensure" in done.stderr


def test_an_engine_that_the_user_named_is_never_replaced() -> None:
    done = run_command("up", DOCKER_HOST="unix:///nonexistent/engine.sock")
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("sandbox: no Docker engine answers at DOCKER_HOST=unix:///nonexistent/engine.sock: start it")


def test_without_root_the_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/etc/debian_version").exists():
        pytest.skip("not a Debian machine")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert "as root: " in str(daemon.obstacle()) and str(daemon.obstacle()).endswith("sandbox.engine up")
    with pytest.raises(EngineError, match=r"^no registry gives the base image: docker pull .* as root on Debian: "):
        base._begin()


# ---------------------------------------------------------------- a daemon


@pytest.fixture
def places(tmp_path: Path) -> Iterator[daemon.Places]:
    """A daemon beside this machine's own, with no network of its own to disturb."""
    if os.geteuid() != 0 or shutil.which("dockerd", path=daemon.search_path()) is None:
        if os.environ.get("CI") == "true":
            pytest.fail("dockerd cannot be started here")
        pytest.skip("starting a daemon needs root and dockerd: python -m sandbox.engine up")
    folder = Path(f"/run/lvmh-test-{os.getpid()}")  # a socket's path may not be long
    places = daemon.Places(
        socket=folder / "docker.sock",
        pidfile=folder / "docker.pid",
        exec_root=folder / "exec",
        data_root=tmp_path / "data",
        log=folder / "log",
        record=folder / "record.json",
        arguments=("--bridge=none", "--iptables=false", "--ip6tables=false"),
    )
    yield places
    for pidfile, program in (
        (places.pidfile, "dockerd"),
        (places.exec_root / "containerd/containerd.pid", "containerd"),
    ):
        if pid := daemon.running(pidfile, program):
            os.kill(pid, signal.SIGKILL)
    subprocess.run(["umount", "-R", "-l", str(tmp_path / "data"), str(folder)], check=False, capture_output=True)
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.docker
def test_a_daemon_through_a_hard_kill(places: daemon.Places) -> None:
    url = f"unix://{places.socket}"
    daemon.start(places)
    assert daemon.answers(url)
    first = daemon.running(places.pidfile, "dockerd")
    assert first is not None
    daemon.start(places)  # again: the living one stays
    assert daemon.running(places.pidfile, "dockerd") == first

    os.kill(first, signal.SIGKILL)
    while start_time(first) is not None:
        time.sleep(0.01)
    assert places.pidfile.exists() and not daemon.answers(url)
    daemon.start(places)
    second = daemon.running(places.pidfile, "dockerd")
    assert second not in (None, first) and daemon.answers(url)

    assert daemon.stop(places)
    assert not daemon.answers(url)
    assert not daemon.stop(places)


def test_a_stale_file_is_told_from_a_living_daemon(tmp_path: Path) -> None:
    """A number in the file that is now some other program's is as stale as one that is nobody's."""
    places = daemon.Places(pidfile=tmp_path / "docker.pid", exec_root=tmp_path / "exec")
    containerd = tmp_path / "exec/containerd/containerd.pid"
    containerd.parent.mkdir(parents=True)
    places.pidfile.write_text(str(os.getpid()))
    containerd.write_text("99999999")
    assert daemon.clear_stale(places) == [places.pidfile, containerd]
    assert not places.pidfile.exists() and not containerd.exists()
    assert daemon.clear_stale(places) == []


def test_only_a_daemon_that_was_started_here_is_stopped(tmp_path: Path) -> None:
    places = daemon.Places(record=tmp_path / "record.json")
    assert not daemon.stop(places)
    places.record.write_text(f'{{"pid": {os.getpid()}, "start": "another process of this number"}}')
    assert not daemon.stop(places)
    assert not places.record.exists()


@pytest.mark.docker
def test_a_daemon_that_cannot_start_says_why(places: daemon.Places) -> None:
    broken = dataclasses.replace(places, arguments=(*places.arguments, "--storage-driver=nonsense"))
    with pytest.raises(EngineError, match=r"^dockerd ended at once: .*driver not supported"):
        daemon.start(broken)
    assert not places.record.exists()
