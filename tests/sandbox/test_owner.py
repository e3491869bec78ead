"""Telling a living owner from one that has ended."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys

from sandbox.owner import Owner, current_owner, start_time


def owner_of(pid: int) -> Owner:
    return dataclasses.replace(current_owner(), pid=pid, start=start_time(pid) or "")


def test_this_process_lives() -> None:
    assert not current_owner().gone()


def test_labels_hold_all_of_it() -> None:
    owner = current_owner()
    assert Owner.from_labels("x", owner.labels("x")) == owner
    assert Owner.from_labels("x", {"x.pid": "1"}) is None
    assert Owner.from_labels("x", {**owner.labels("x"), "x.pid": "abc"}) is None


def test_another_process_lives_then_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    owner = owner_of(process.pid)
    assert not owner.gone()
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # ended, but not yet collected: a zombie
    assert owner.gone()
    process.communicate()
    assert owner.gone()


def test_a_number_used_again_is_another_process() -> None:
    assert dataclasses.replace(current_owner(), start="1").gone()


def test_what_cannot_be_judged_from_here_is_not_gone() -> None:
    gone = dataclasses.replace(current_owner(), start="1")
    assert not dataclasses.replace(gone, machine="another").gone()
    assert not dataclasses.replace(gone, namespace="another").gone()


def test_another_boot_of_this_machine_is_gone() -> None:
    assert dataclasses.replace(current_owner(), boot="another", namespace="another").gone()
