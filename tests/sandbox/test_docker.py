"""What only Docker's back end does: its flags, how its containers end, what it leaves behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import docker
import pytest

from sandbox.bundle import make_bundle
from sandbox.docker import OWNER_LABEL, RUN_LABEL, DockerSandbox, open_docker, reap, runc_weakness
from sandbox.docker_container import DockerChannel
from sandbox.engine.daemon import connect
from sandbox.interface import Ending, Limits, Sandbox, SandboxError, Verdict
from sandbox.owner import current_owner
from sandbox.session import Failure, Session
from tests.conftest import LIMITS, PLAIN, SETUP, Laboratory, RefusingHost, make_shard, policy

pytestmark = pytest.mark.docker
PLAIN_SOURCE = f"from policies.contract import *\n{PLAIN}"
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def client(sandboxes: Callable[[str], Sandbox]) -> Iterator[docker.DockerClient]:
    sandboxes("docker")
    client = connect()
    yield client
    client.close()


@pytest.fixture(scope="module")
def own(client: docker.DockerClient) -> Iterator[DockerSandbox]:
    """A sandbox whose containers are told apart by its run id."""
    sandbox = open_docker(LIMITS, 2, "test-docker")
    yield sandbox
    sandbox.close()
    assert containers(client, "test-docker") == []


@pytest.fixture
def docker_lab(own: DockerSandbox) -> Laboratory:
    return Laboratory(own)


def containers(client: docker.DockerClient, run: str) -> list[str]:
    found = client.api.containers(all=True, filters={"label": f"{RUN_LABEL}={run}"})
    return [str(entry["Id"]) for entry in found]


def start(sandbox: Sandbox, source: str) -> Session:
    """A session in which the policy is being constructed or has been; nothing was asked yet."""
    session = Session(sandbox.open(), sandbox.limits, RefusingHost(), time.monotonic() + 30)
    session.start(make_bundle({"policy.py": source}), SETUP)
    return session


def ending_of(sandbox: Sandbox, init: str) -> Ending:
    """How a container ends whose policy does this in its constructor."""
    session = Session(sandbox.open(), sandbox.limits, RefusingHost(), time.monotonic() + 30)
    with pytest.raises(Failure):
        session.start(make_bundle({"policy.py": policy(init=init)}), SETUP)
    return session.close()


def container_of(channel: Any) -> str:
    assert isinstance(channel, DockerChannel)
    return channel._container


def until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


# ---------------------------------------------------------------- flags


def test_the_flags_are_in_force(client: docker.DockerClient, own: DockerSandbox) -> None:
    channel = own.open()
    shown = client.api.inspect_container(container_of(channel))
    channel.close()
    host, config = shown["HostConfig"], shown["Config"]
    megabyte = 1 << 20
    wanted = {
        "NetworkMode": "none",
        "ReadonlyRootfs": True,
        "CapDrop": ["ALL"],
        "Privileged": False,
        "AutoRemove": False,
        "Init": True,
        "IpcMode": "private",
        "ShmSize": megabyte,
        "PidsLimit": LIMITS.pids,
        "Memory": LIMITS.memory_mb * megabyte,
        "MemorySwap": LIMITS.memory_mb * megabyte,
        "NanoCpus": int(LIMITS.cpus * 1e9),
        "LogConfig": {"Type": "none", "Config": {}},
    }
    assert {name: host[name] for name in wanted} == wanted
    assert not host["Binds"] and not host["CapAdd"] and not host["Devices"] and not shown["Mounts"]
    options = host["Tmpfs"]["/tmp"].split(",")
    assert {"noexec", "nosuid", "nodev", f"size={LIMITS.file_mb * megabyte}", "nr_inodes=1024"} <= set(options)
    assert host["SecurityOpt"][0] == "no-new-privileges:true"
    assert json.loads(host["SecurityOpt"][1].removeprefix("seccomp="))["defaultAction"] == "SCMP_ACT_ERRNO"
    limits = {limit["Name"]: (limit["Soft"], limit["Hard"]) for limit in host["Ulimits"]}
    size = LIMITS.file_mb * megabyte
    assert limits == {"core": (0, 0), "fsize": (size, size), "nofile": (LIMITS.open_files, LIMITS.open_files)}
    assert config["User"] == "65534:65534" and config["StopSignal"] == "SIGKILL" and config["NetworkDisabled"]
    names = {entry.partition("=")[0] for entry in config["Env"]}
    assert names <= {"PYTHONHASHSEED", "OPENBLAS_NUM_THREADS", "LANG", "PATH"}


def test_nothing_of_the_users_docker_settings_goes_in(tmp_path: Path, client: docker.DockerClient) -> None:
    """Docker's clients copy the proxies of their configuration, with their password, into containers."""
    proxies = {"default": {"httpProxy": "http://user:CANARY@proxy.example:3128"}}
    (tmp_path / "config.json").write_text(json.dumps({"proxies": proxies}))
    script = (
        "from sandbox.docker import open_docker; from sandbox.interface import Limits\n"
        "sandbox = open_docker(Limits(), 1, 'test-proxy'); channel = sandbox.open()\n"
        "print(sandbox._engine.brisk.api.inspect_container(channel._container)['Config']['Env'])\n"
        "sandbox.close()\n"
    )
    environment = os.environ | {"DOCKER_CONFIG": str(tmp_path), "SECRET": "CANARY"}
    shown = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "PYTHONHASHSEED" in shown
    assert "CANARY" not in shown and "proxy" not in shown.lower()
    assert containers(client, "test-proxy") == []


# ---------------------------------------------------------------- how it ends


def test_the_kernels_kill_for_memory_is_seen_behind_exit_code_0(own: DockerSandbox) -> None:
    body = """
    if os.fork() == 0:
        open("/proc/self/oom_score_adj", "w").write("1000")
        hog = [bytearray(1 << 20) for _ in range(1000)]
    os.wait()
    os._exit(0)
    """
    ending = ending_of(own, body)
    assert (ending.exit_code, ending.oom) == (0, True)


def test_an_own_exit_is_not_taken_for_memory(own: DockerSandbox) -> None:
    assert ending_of(own, "os._exit(7)") == Ending(7, False, "")
    ending = ending_of(own, "os.kill(os.getpid(), 9)")
    assert (ending.exit_code, ending.oom) == (137, False)


def test_the_engines_word_is_enough_where_the_kernel_cannot_be_asked(own: DockerSandbox) -> None:
    """An engine on another machine: its events and its state take the place of the kernel's own files."""
    body = "if query.id == 'q0': hog = [bytearray(1 << 20) for _ in range(1000)]\nreturn Answer('A', 'x')"
    channel = own.open()
    assert isinstance(channel, DockerChannel) and channel._memory is not None
    channel._memory = None
    session = Session(channel, own.limits, RefusingHost(), time.monotonic() + 30)
    session.start(make_bundle({"policy.py": policy(body)}), SETUP)
    queries = make_shard(2).queries
    first, second = session.ask(queries[0]), session.ask(queries[1])
    assert (first.verdict, second.verdict) == (Verdict.OOM, Verdict.OK)
    assert session.close().oom


def test_ended_by_somebody_else_is_no_word_against_the_candidate(
    client: docker.DockerClient, own: DockerSandbox
) -> None:
    channel = own.open()
    client.api.kill(container_of(channel))
    with pytest.raises(EOFError):
        channel.receive(1000, time.monotonic() + 30)
    assert channel.close().exit_code == -signal.SIGKILL
    channel = own.open()
    client.api.remove_container(container_of(channel), force=True)
    with pytest.raises(EOFError):
        channel.receive(1000, time.monotonic() + 30)
    with pytest.raises(SandboxError, match="does not say how a container ended"):
        channel.close()


@pytest.mark.parametrize("descriptor", ["1", "2", "CHANNEL()"])
def test_a_flood_cannot_hold_up_the_end(client: docker.DockerClient, own: DockerSandbox, descriptor: str) -> None:
    """The host has stopped reading; the engine's kill would hang for a minute if the socket stayed open."""
    top = "import threading\ndef CHANNEL(): return max(int(fd) for fd in os.listdir('/proc/self/fd') if int(fd) < 12)\n"
    flood = f"threading.Thread(target=lambda: [os.write({descriptor}, b'x' * 65536) for _ in range(10**9)]).start()"
    session = start(own, policy(top=top, init=flood))
    channel = session._channel
    time.sleep(0.5)
    began = time.monotonic()
    ending = session.close()
    assert time.monotonic() - began < 20  # a third of the minute
    assert ending.exit_code is None and len(ending.log) <= LIMITS.log_bytes
    container = container_of(channel)
    assert until(lambda: container not in containers(client, "test-docker"), 20)


def test_closing_twice_says_the_same(own: DockerSandbox) -> None:
    channel = own.open()
    assert channel.close() is channel.close()


def test_prints_are_capped(docker_lab: Laboratory) -> None:
    outcome = docker_lab.run(policy("print('x' * 4000 + '\\x1b[2J')\nreturn Answer('A', 'x')"), make_shard(30, 8))
    assert {question.verdict for question in outcome.questions} == {Verdict.OK}
    assert LIMITS.log_bytes // 2 < len(outcome.log) <= LIMITS.log_bytes + 1000
    assert "\x1b" not in outcome.log


# ---------------------------------------------------------------- what is left behind

HOLDER = """
import sys
from sandbox.docker import open_docker
from sandbox.interface import Limits
sandbox = open_docker(Limits(), 1, sys.argv[1])
channel = sandbox.open()
print("ready", flush=True)
input()
"""


def test_only_what_a_dead_run_left_is_reaped(client: docker.DockerClient) -> None:
    holders = {}
    for run in ("test-dead", "test-living"):
        command = [sys.executable, "-c", HOLDER, run]
        holders[run] = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        for holder in holders.values():
            assert holder.stdout is not None and holder.stdout.readline() == b"ready\n"
        assert reap(client) == 0
        holders["test-dead"].kill()
        holders["test-dead"].wait()
        assert containers(client, "test-dead")
        sandbox = open_docker(Limits(), 1, "test-next")  # the next start reaps
        sandbox.close()
        assert containers(client, "test-dead") == []
        assert containers(client, "test-living")
    finally:
        for holder in holders.values():
            holder.kill()
            holder.communicate()
    assert reap(client) >= 1
    assert containers(client, "test-living") == []


def test_another_machines_containers_are_left_alone(client: docker.DockerClient, own: DockerSandbox) -> None:
    labels = current_owner().labels(OWNER_LABEL) | {f"{OWNER_LABEL}.machine": "another", f"{OWNER_LABEL}.start": "1"}
    container = client.api.create_container(own._image, labels=labels, network_disabled=True)["Id"]
    try:
        reap(client)
        assert client.api.inspect_container(container)["Id"] == container
    finally:
        client.api.remove_container(container)


def test_closing_leaves_nothing_even_of_channels_still_open(client: docker.DockerClient) -> None:
    sandbox = open_docker(Limits(), 2, "test-close")
    sandbox.open()
    assert containers(client, "test-close")
    sandbox.close()
    sandbox.close()
    assert containers(client, "test-close") == []


def test_the_environment_may_change_meanwhile(client: docker.DockerClient) -> None:
    """The threads that start and remove containers live through it: the HTTP client would iterate over it."""
    changing = True

    def change() -> None:
        while changing:
            os.environ["LVMH_TEST_CHANGING"] = "x"
            del os.environ["LVMH_TEST_CHANGING"]

    thread = threading.Thread(target=change)
    thread.start()
    try:
        sandbox = open_docker(Limits(), 1, "test-changing")
        for _ in range(3):
            sandbox.open().close()
        remover = sandbox._remover
        assert remover.is_alive()
        sandbox.close()
    finally:
        changing = False
        thread.join()
    assert containers(client, "test-changing") == []


# ---------------------------------------------------------------- engines


def test_any_docker_socket_serves(tmp_path: Path, client: docker.DockerClient, monkeypatch: pytest.MonkeyPatch) -> None:
    link = tmp_path / "engine.sock"
    host = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    link.symlink_to(host.removeprefix("unix://"))
    monkeypatch.setenv("DOCKER_HOST", f"unix://{link}")
    sandbox = open_docker(Limits(), 1, "test-host")
    sandbox.open().close()
    sandbox.close()


def test_no_engine_is_one_clear_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(SandboxError, match=r"^no Docker engine answers; to mend: \S*python\S* -m sandbox\.engine up$"):
        open_docker(Limits(), 1, "test")


@pytest.mark.parametrize(
    ("version", "known"),
    [
        ("1.1.5+ds1", True),
        ("1.1.99", True),
        ("1.2.7", True),
        ("1.2.8", False),
        ("1.3.2", True),
        ("1.3.3", False),
        ("1.4.0", False),
        ("2.0.0", False),
        ("", False),
    ],
)
def test_runc_versions(version: str, known: bool) -> None:
    assert ("known CVE" in runc_weakness(version)) is known


def test_the_label_names_engine_and_runc(own: DockerSandbox, client: docker.DockerClient) -> None:
    parts = {part["Name"]: part["Version"] for part in client.api.version()["Components"]}
    assert own.label.startswith(f"docker {parts['Engine']}, runc {parts['runc']}")
    assert ("known CVE" in own.label) == bool(runc_weakness(parts["runc"]))
