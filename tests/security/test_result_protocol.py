"""Attacks on the result protocol: a candidate that finds the channel can write to it, and gains nothing."""

from __future__ import annotations

import ast
import resource
import time
from pathlib import Path

import pytest

from tests.conftest import FORGER, Laboratory, at_second, make_shard, policy

OK, CRASH, TIMEOUT, PROTOCOL = "OK", "CRASH", "TIMEOUT", "PROTOCOL"


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("os.write(CHANNEL(), ANSWER('q2'))", PROTOCOL),  # another question's
        ("os.write(CHANNEL(), ANSWER('q0'))", PROTOCOL),  # an earlier one again
        ("os.write(CHANNEL(), ANSWER('q1') * 2)", PROTOCOL),  # twice
        ("os.write(CHANNEL(), ANSWER('q1', 'C'))", PROTOCOL),  # no letter of the question
        ("os.write(CHANNEL(), ANSWER('q1').replace(b'\"f\"', b'\"f\",\"score\":1'))", PROTOCOL),  # a key too many
        ("os.write(CHANNEL(), ANSWER('q1').replace(b'[]', b'[true]'))", PROTOCOL),  # a bool for an integer
        ("os.write(CHANNEL(), ANSWER('q1').replace(b'{}', b'{\"a\":NaN}'))", PROTOCOL),
        ("os.write(CHANNEL(), ANSWER('q1').replace(b'{}', b'{\"a\":1,\"a\":2}'))", PROTOCOL),
        ("os.write(CHANNEL(), ANSWER('q1').replace(b'\"f\"', b'\"\\\\ud800\"'))", PROTOCOL),
        ('os.write(CHANNEL(), b\'{"kind":"done"}\\n\')', PROTOCOL),
        ("os.write(CHANNEL(), SETTLED); os._exit(0)", CRASH),  # settled without an answer, and the real one too many
    ],
)
def test_forged_lines_gain_nothing(lab: Laboratory, body: str, verdict: str) -> None:
    outcome = lab.run(FORGER + at_second(body))
    assert [str(question.verdict) for question in outcome.questions] == [OK, verdict, OK], outcome


def test_an_answer_sent_early_is_not_taken(lab: Laboratory) -> None:
    source = FORGER + policy("return Answer('B', 'honest')", observe="os.write(CHANNEL(), ANSWER('q0'))")
    assert lab.verdicts(source) == [PROTOCOL] * 3


def test_a_forged_settlement_lets_nothing_be_read_ahead_before_the_answer_is_in(lab: Laboratory) -> None:
    body = "os.write(CHANNEL(), ANSWER('q1') + SETTLED); time.sleep(0.2)"
    outcome = lab.run(FORGER + at_second(body))
    assert [question.verdict for question in outcome.questions][::2] == [OK, OK]
    assert outcome.questions[1].answer is None or outcome.questions[1].answer.choice == "A"


def test_an_exit_without_an_answer_is_a_wrong_answer_and_counts(lab: Laboratory) -> None:
    body = """
    import atexit
    atexit.register(os._exit, 0)
    {"q0": sys.exit, "q1": os._exit, "q2": exit_group}[query.id](0)
    """
    source = policy(body, top="def exit_group(status):\n    raise SystemExit(status)")
    outcome = lab.run(source)
    assert [str(question.verdict) for question in outcome.questions] == [CRASH] * 3
    assert all(question.answer is None for question in outcome.questions)


def test_a_slow_drip_does_not_stretch_the_deadline(lab: Laboratory) -> None:
    body = """
    for byte in ANSWER(query.id) * 100:
        os.write(CHANNEL(), bytes([byte]) if byte != 10 else b" ")
        time.sleep(0.05)
    """
    began = time.monotonic()
    outcome = lab.run(FORGER + policy(body), make_shard(1))
    assert outcome.questions[0].verdict == TIMEOUT
    assert time.monotonic() - began < 20  # the drip is meant to last for minutes


def test_time_is_measured_on_the_host(lab: Laboratory) -> None:
    body = "time.sleep(0.5)\nreturn Answer('A', 'x', (), {'seconds': time.monotonic()})"
    question = lab.run(policy(body, top="real = time.monotonic\ntime.monotonic = time.time = lambda: 0.0")).questions[0]
    assert 0.5 <= question.seconds <= 2.5  # the deadline


def test_a_patched_runner_cannot_answer_for_other_questions(lab: Laboratory) -> None:
    """It shares the interpreter, so it can change everything inside; it still answers the open question only."""
    init = """
    import sandbox.runner, sandbox.wire
    sandbox.wire.answer_from_json = lambda *arguments: None
    honest = sandbox.wire.answer_to_json
    sandbox.wire.answer_to_json = lambda answer, query: honest(answer, "q2")
    """
    outcome = lab.run(policy(init=init))
    assert [str(question.verdict) for question in outcome.questions] == [PROTOCOL, PROTOCOL, OK]


def test_the_host_reads_no_pickle_archive_or_file_of_a_candidate() -> None:
    """Nothing on the host's side of the sandbox imports what would execute or unpack a candidate's bytes."""
    banned = {"pickle", "marshal", "shelve", "dill", "yaml", "zipfile", "tarfile"}
    for path in Path("sandbox").rglob("*.py"):
        if "engine" in path.parts:
            continue
        names = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names.add((node.module or "").split(".")[0])
        assert not names & banned, path


@pytest.mark.parametrize("flood", ["b'\\n' * 65536", "b'x' * 65536"], ids=["empty lines", "one endless line"])
def test_a_flood_of_prints_costs_the_host_no_memory(lab: Laboratory, flood: str) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = lab.run(at_second(f"while True: os.write(2, {flood})"))
    assert [str(question.verdict) for question in outcome.questions][::2] == [OK, OK], outcome
    assert outcome.questions[1].verdict in (CRASH, TIMEOUT, "OUTPUT_LIMIT")
    assert len(outcome.log) <= 2 * lab.sandbox.limits.log_bytes
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 65_536  # KiB
