"""The filter: run through an interpreter of its own, and the same list in Docker's form."""

from __future__ import annotations

import errno
import struct
from functools import cache

import pytest

from sandbox import seccomp

ALLOW = 0x7FFF0000
KILL = 0x80000000
EPERM = 0x00050000 | errno.EPERM
ENOSYS = 0x00050000 | errno.ENOSYS


@cache
def program_of(machine: str) -> list[tuple[int, int, int, int]]:
    return list(struct.iter_unpack("<HBBI", seccomp.bpf_program(machine)))


def decide(machine: str, number: int, argument: int = 0, audit: int | None = None) -> int:
    """Execute the program on one call as the kernel would."""
    arch = seccomp.ARCHITECTURES[machine]
    data = struct.pack("<IIQ6Q", number, arch.audit if audit is None else audit, 0, argument, 0, 0, 0, 0, 0)
    program = program_of(machine)
    register, at = 0, 0
    while True:
        code, if_true, if_false, value = program[at]
        at += 1
        match code:
            case 0x20:
                register = struct.unpack_from("<I", data, value)[0]
            case 0x15:
                at += if_true if register == value else if_false
            case 0x35:
                at += if_true if register >= value else if_false
            case 0x45:
                at += if_true if register & value else if_false
            case 0x06:
                return int(value)
            case _:
                raise AssertionError(code)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_every_call_has_the_outcome_that_the_list_says(machine: str) -> None:
    arch = seccomp.ARCHITECTURES[machine]
    allowed = set(seccomp.numbers(seccomp._ALLOWED, arch.column).values())
    inspected = seccomp.numbers(seccomp._INSPECTED, arch.column)
    assert len(program_of(machine)) < 4096
    for number in range(arch.newest + 1):
        if number not in inspected.values():
            assert decide(machine, number) == (ALLOW if number in allowed else EPERM), number
    assert decide(machine, arch.newest + 1) == ENOSYS
    assert decide(machine, inspected["clone3"]) == ENOSYS
    for name, number in seccomp.numbers(seccomp.DENIED, arch.column).items():
        assert decide(machine, number) == EPERM, name


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_sockets_are_local_and_clones_without_namespaces(machine: str) -> None:
    numbers = seccomp.numbers(seccomp._INSPECTED, seccomp.ARCHITECTURES[machine].column)
    for name in ("socket", "socketpair"):
        assert [decide(machine, numbers[name], family) for family in (1, 2, 10, 16, 17, 40)] == [ALLOW] + [EPERM] * 5
    assert decide(machine, numbers["clone"], 0x01200011) == ALLOW  # fork
    assert decide(machine, numbers["clone"], 0x003D0F00) == ALLOW  # a thread
    for flag in (0x00020000, 0x02000000, 0x04000000, 0x08000000, 0x10000000, 0x20000000, 0x40000000):
        assert decide(machine, numbers["clone"], flag | 17) == EPERM


def test_other_architectures_end_the_process_and_x32_is_refused() -> None:
    for audit in (0x40000003, 0x40000028, 0):
        assert decide("x86_64", 0, audit=audit) == KILL
    assert decide("x86_64", seccomp.X32 | 1) == EPERM
    with pytest.raises(KeyError):
        seccomp.bpf_program("riscv64")


def test_dockers_profile_is_the_same_list() -> None:
    profile = seccomp.docker_profile()
    assert profile["defaultAction"] == "SCMP_ACT_ERRNO"
    plain = [rule for rule in profile["syscalls"] if rule["action"] == "SCMP_ACT_ALLOW" and "args" not in rule]
    assert len(plain) == 1
    names = {entry.split(":")[0] for entry in seccomp._ALLOWED.split()}
    assert set(plain[0]["names"]) == names
    assert not names & {entry.split(":")[0] for entry in seccomp.DENIED.split()}
