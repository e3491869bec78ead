"""Attacks on the walls of the sandbox (network, files, kernel), on every back end.

Besides what each test asks: the harness lives on and the verdict is typed. The back end is one and the same for all
tests, so each test also shows that the attack before it changed nothing for the next candidate.
"""

from __future__ import annotations

import os
import platform
import secrets
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox import cgroup, seccomp
from sandbox.interface import Limits, Sandbox, Verdict
from tests.conftest import BACK_ENDS, LIMITS, PLAIN, Laboratory, make_shard, policy

Group = Callable[[Laboratory], bool]


@pytest.fixture(params=[*BACK_ENDS, "bubblewrap-rlimits"])
def lab(request: pytest.FixtureRequest, sandboxes: Callable[[str], Sandbox]) -> Laboratory:
    """Every back end, the one without control groups too."""
    return Laboratory(sandboxes(request.param))


# ---------------------------------------------------------------- network


def test_no_network_of_any_kind(lab: Laboratory) -> None:
    with socket.socket() as listener:
        listener.bind(("0.0.0.0", 0))
        listener.listen(8)
        listener.setblocking(False)
        errors = lab.look(
            f"""
            import socket, errno
            found = []
            for family, kind in ((2, 1), (2, 2), (10, 1), (16, 3), (17, 3), (40, 1), (40, 2), (38, 5), (15, 3), (1, 1)):
                try:
                    plug = socket.socket(family, kind)
                    plug.settimeout(0.2)
                    plug.connect(("127.0.0.1", {listener.getsockname()[1]}) if family == 2 else "\\0canary")
                    found.append("open")
                except (OSError, TypeError) as error:
                    found.append(errno.errorcode.get(getattr(error, "errno", 0), type(error).__name__))
            """
        )
        assert errors[:-1] == ["EPERM"] * 9
        assert errors[-1] == "ECONNREFUSED"
        with pytest.raises(BlockingIOError):
            listener.accept()


def test_only_the_loopback_interface_and_no_route(lab: Laboratory) -> None:
    found = lab.look('found = [open(f"/proc/net/{name}").read().count("\\n") for name in ("route", "unix")]')
    assert found == [1, 1]


def test_no_abstract_socket_of_the_host(lab: Laboratory) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        name = f"canary-{secrets.token_hex(8)}"
        listener.bind(f"\0{name}")
        listener.listen(1)
        error = lab.look(
            f"""
            import socket, errno
            plug = socket.socket(socket.AF_UNIX)
            try:
                found = plug.connect("\\0{name}")
            except OSError as error:
                found = errno.errorcode[error.errno]
            """
        )
        assert error == "ECONNREFUSED"


# ---------------------------------------------------------------- files and environment


WALK = """
import stat
needles = [part.encode() for part in NEEDLES]
hits, sockets, count = [], [], 0
for folder, folders, names in os.walk("/"):
    if folder.startswith("/proc/"):
        folders.clear()
        names = [n for n in names if n in ("environ", "cmdline", "mountinfo", "maps", "status", "cgroup")]
    for name in names:
        path = f"{folder}/{name}"
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISSOCK(mode):
                sockets.append(path)
            if not stat.S_ISREG(mode) or path.startswith("/proc/k"):
                continue
            with open(path, "rb") as file:
                count += 1
                while block := file.read(1 << 20):
                    hits += [path for needle in needles if needle in block]
        except OSError:
            pass
for process in [p for p in os.listdir("/proc") if p.isdigit()] + ["self"]:
    for name in ("environ", "cmdline", "mountinfo", "cgroup", "maps"):
        try:
            data = open(f"/proc/{process}/{name}", "rb").read()
            hits += [f"/proc/{process}/{name}" for needle in needles if needle in data]
        except OSError:
            pass
    for link in ("root", "cwd"):
        try:
            hits += [p for p in CANARIES if open(f"/proc/{process}/{link}{p}", "rb").read()]
        except OSError:
            pass
found = {"hits": hits[:20], "sockets": sockets, "count": count}
"""


def test_canaries_of_files_environment_and_arguments_are_nowhere_inside(lab: Laboratory, tmp_path: Path) -> None:
    """A process that holds them in its environment, its arguments and its files opens the sandbox."""
    marks = {name: f"canary-{name}-{secrets.token_hex(12)}" for name in ("file", "environment", "argument")}
    gold = tmp_path / "gold.json"
    gold.write_text(marks["file"])
    for folder in (gold, *gold.parents):
        if folder.is_relative_to(tmp_path.parent.parent):
            folder.chmod(0o755)
    # split, so that the policy's own text is no hit
    needles = [(mark[:9], mark[9:]) for mark in marks.values()]
    needles.append((str(Path.cwd())[:3], str(Path.cwd())[3:] + "/"))
    body = f"NEEDLES = [a + b for a, b in {needles!r}]\nCANARIES = [{str(gold)!r}]\n{WALK}\n"
    source = policy(body + 'return Answer("A", "x", (), found)')
    name = "docker" if lab.sandbox.name == "docker" else "bubblewrap"
    program = textwrap.dedent(
        f"""
        import dataclasses, json, sys
        from sandbox import make_bundle, open_sandbox, run_shard
        from tests.conftest import LIMITS, SETUP, RefusingHost, make_shard
        limits = dataclasses.replace(LIMITS, answer_seconds=30)
        sandbox = open_sandbox({name!r}, limits, 1, "tests")
        source = sys.stdin.read()
        outcome = run_shard(sandbox, make_bundle({{"policy.py": source}}), make_shard(1), SETUP, RefusingHost())
        sandbox.close()
        question = outcome.questions[0]
        print(json.dumps(question.answer.diagnostics if question.answer else question.detail))
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", program, marks["argument"]],
        input=source,
        capture_output=True,
        text=True,
        env={**os.environ, "CANARY_KEY": marks["environment"], "PYTHONPATH": str(Path.cwd())},
        check=False,
    )
    import json

    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["hits"] == []
    assert found["sockets"] == []
    assert found["count"] > 500


def test_the_environment_is_the_runtimes_alone(lab: Laboratory) -> None:
    names = lab.look('found = sorted(os.environ); found.append(os.environ["PYTHONHASHSEED"])')
    assert set(names) <= {
        "PYTHONHASHSEED", "OPENBLAS_NUM_THREADS", "LANG", "LD_LIBRARY_PATH", "PWD", "PATH", "HOME", "HOSTNAME",
        "LC_CTYPE", "0",
    }  # fmt: skip


def test_no_descriptor_but_the_protocols(lab: Laboratory) -> None:
    reading, writing = os.pipe()
    os.set_inheritable(reading, True)
    try:
        found = lab.look(
            """
            found = []
            for number in range(3, 256):
                try:
                    found.append(os.readlink(f"/proc/self/fd/{number}").split(":")[0])
                except OSError:
                    pass
            """
        )
        assert found in (["pipe"], ["socket"])  # the protocol's
    finally:
        os.close(reading)
        os.close(writing)


def test_nothing_outside_tmp_can_be_written(lab: Laboratory) -> None:
    found = lab.look(
        """
        found = []
        import numpy
        folders = ["/", "/etc", "/usr", "/opt", "/dev", "/sys", "/proc/sys/kernel", "/var", "/root", "/home"]
        folders += [os.path.dirname(path) for path in (numpy.__file__, os.__file__, sys.executable)]
        for folder in folders:
            try:
                open(folder + "/planted", "w").write("x")
                found.append(folder)
            except OSError:
                pass
        for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger"):
            try:
                open(path, "w").write("0")
                found.append(path)
            except OSError:
                pass
        """
    )
    assert found == []


def test_a_full_tmp_is_an_error_inside_and_costs_the_host_nothing(lab: Laboratory) -> None:
    found = lab.look(
        f"""
        import errno
        found, size = [], {LIMITS.file_mb} << 20
        try:
            with open("/tmp/one", "wb") as file:
                file.write(bytes(size + 4096))
        except OSError as error:
            found.append(errno.errorcode[error.errno])
        os.unlink("/tmp/one")
        try:
            for number in range(100):
                with open(f"/tmp/many{{number}}", "wb") as file:
                    file.write(bytes(1 << 20))
        except OSError as error:
            found.append(errno.errorcode[error.errno])
        found.append(number)
        with open("/tmp/many0", "wb") as file:
            try:
                os.truncate("/tmp/many0", 1 << 40)
            except OSError as error:
                found.append(errno.errorcode[error.errno])
        """
    )
    assert found[0] in ("EFBIG", "ENOSPC")
    assert found[1] in ("EFBIG", "ENOSPC")
    assert found[2] <= LIMITS.file_mb
    assert found[3:] == ["EFBIG"]


def test_inodes_are_bounded_by_the_memory_limit_at_least(lab: Laboratory, has_cgroup: Group) -> None:
    outcome = lab.one(
        """
        import errno
        try:
            for number in range(10_000_000):
                os.close(os.open(f"/tmp/{number}", os.O_CREAT | os.O_WRONLY))
        except OSError as error:
            return Answer("A", errno.errorcode[error.errno])
        """
    )
    assert outcome.verdict in (Verdict.OOM, Verdict.TIMEOUT) or outcome.answer.route == "ENOSPC", outcome


# ---------------------------------------------------------------- kernel


def test_denied_system_calls(lab: Laboratory) -> None:
    arch = seccomp.ARCHITECTURES[platform.machine()]
    calls = seccomp.numbers(seccomp.DENIED, arch.column)
    found: Any = lab.look(
        f"""
        import ctypes
        library = ctypes.CDLL(None, use_errno=True)
        found = {{}}
        for name, number in {calls!r}.items():
            ctypes.set_errno(0)
            found[name] = [library.syscall(number, 0, 0, 0, 0, 0, 0), ctypes.get_errno()]
        """
    )
    allowed = {name: result for name, result in found.items() if result[0] != -1 or result[1] not in (1, 38)}
    assert allowed == {}
    for name in ("ptrace", "process_vm_readv", "memfd_create", "io_uring_setup", "keyctl", "bpf", "perf_event_open",
                 "userfaultfd", "unshare", "setns", "mount", "open_by_handle_at"):  # fmt: skip
        assert name in found


def test_new_namespaces_by_clone_are_denied(lab: Laboratory) -> None:
    number = seccomp.numbers("clone:56:220", seccomp.ARCHITECTURES[platform.machine()].column)["clone"]
    found = lab.look(
        f"""
        import ctypes
        library = ctypes.CDLL(None, use_errno=True)
        found = []
        for flag in (0x10000000, 0x20000000, 0x40000000, 0x00020000):
            result = library.syscall({number}, flag | 17, 0, 0, 0, 0)
            if result == 0:
                os._exit(9)
            found.append([result, ctypes.get_errno()])
        """
    )
    assert found == [[-1, 1]] * 4


@pytest.mark.skipif(platform.machine() != "x86_64", reason="x32 calls exist on x86_64 only")
def test_x32_calls_are_refused(lab: Laboratory) -> None:
    outcome = lab.one(
        """
        import ctypes
        library = ctypes.CDLL(None, use_errno=True)
        result = library.syscall(0x40000000 + 39)
        return Answer("A", "x", (), {"result": [result, ctypes.get_errno()]})
        """
    )
    assert outcome.verdict == "CRASH" or outcome.answer.diagnostics["result"][0] == -1


def test_the_kernels_word_on_the_process(lab: Laboratory) -> None:
    found = lab.look(
        """
        found = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
        found = [found[name] for name in ("Seccomp", "NoNewPrivs", "CapBnd", "CapEff", "Uid")]
        """
    )
    assert found == ["2", "1", "0" * 16, "0" * 16, "65534\t65534\t65534\t65534"]


def test_no_file_is_setuid_or_has_capabilities(lab: Laboratory) -> None:
    """Each question looks at a share of the files, since one question's time is short."""
    body = """
    import stat
    found, number, share = [], 0, int(query.id[1:])
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders.remove("proc")
        for name in names:
            number += 1
            if number % 8 != share:
                continue
            try:
                path = f"{folder}/{name}"
                mode = os.lstat(path).st_mode
                if stat.S_ISREG(mode) and mode & 0o6000:
                    found.append(path)
                if stat.S_ISREG(mode) and mode & 0o111 and "security.capability" in os.listxattr(path):
                    found.append(path)
            except OSError:
                pass
    return Answer("A", "x", (), {"found": found, "number": number})
    """
    outcome = lab.run(policy(body), make_shard(8))
    assert [question.answer and question.answer.diagnostics["found"] for question in outcome.questions] == [[]] * 8
    assert outcome.questions[0].answer and outcome.questions[0].answer.diagnostics["number"] > 500


def test_execution_from_writable_memory_is_denied_or_named(lab: Laboratory) -> None:
    lab.sandbox.probe()
    found = lab.look(
        """
        import errno
        open("/tmp/script", "w").write("#!/nonexistent\\n")
        os.chmod("/tmp/script", 0o700)
        try:
            os.execv("/tmp/script", ["x"])
        except OSError as error:
            found = errno.errorcode[error.errno]
        """
    )
    assert found == "EACCES" or "no execution from /tmp" in lab.sandbox.label


def test_the_label_names_what_does_not_hold(lab: Laboratory, has_cgroup: Group) -> None:
    probes = {probe.name: probe for probe in lab.sandbox.probe()}
    assert {"network", "vsock", "file view", "environment", "memory", "processes", "disk", "seccomp"} <= set(probes)
    for name in ("network", "vsock", "file view", "environment", "read-only root", "disk", "processes", "seccomp"):
        assert probes[name].held, probes[name]
    assert probes["memory"].held == has_cgroup(lab)
    for probe in probes.values():
        assert (f"not held: {probe.name}" in lab.sandbox.label) == (not probe.held)
    assert lab.run(policy()).sandbox == lab.sandbox.label
    assert lab.sandbox.name in lab.sandbox.label


def test_after_all_these_attacks_a_plain_candidate_scores_as_before(lab: Laboratory) -> None:
    """Each test above runs in the same back end as the one before it; here is the last."""
    assert lab.verdicts(PLAIN) == ["OK"] * 3


# ---------------------------------------------------------------- orphans


def test_a_killed_harness_leaves_nothing_after_the_next_start(tmp_path: Path) -> None:
    """bubblewrap: its processes die with the harness; the next start removes the control groups, and only those."""
    from sandbox.bubblewrap import open_bubblewrap

    try:
        mine = open_bubblewrap(LIMITS, 1)
    except Exception as error:
        pytest.skip(str(error))
    with_group = cgroup.find()
    program = (
        "from sandbox.bubblewrap import open_bubblewrap\nfrom tests.conftest import LIMITS\nimport time\n"
        "s = open_bubblewrap(LIMITS, 2)\nchannels = [s.open(), s.open()]\nprint('up', flush=True)\ntime.sleep(60)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    theirs = cgroup.owner(process.pid)
    process.kill()
    process.wait()
    time.sleep(0.3)
    if with_group is not None:
        assert _groups(with_group, theirs)
        channel = mine.open()
        open_bubblewrap(Limits(), 1).close()
        assert not _groups(with_group, theirs)
        assert _groups(with_group, cgroup.owner())
        channel.close()
    mine.close()
    if with_group is not None:
        assert not [name for name in _groups(with_group, "") if f"-{process.pid}-" in name]


def _groups(hierarchy: cgroup.Hierarchy, owner: str) -> list[str]:
    return [path.name for parent in hierarchy.parents.values() for path in parent.glob(f"{cgroup.PREFIX}{owner}*")]
