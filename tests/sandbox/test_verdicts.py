"""Every verdict, on every back end, and what it costs the other questions."""

from __future__ import annotations

import time

import pytest

from sandbox.interface import Verdict
from sandbox.stream import MAX_RESTARTS
from tests.conftest import FORGER, Laboratory, at_second, make_shard, policy

OK, CRASH, TIMEOUT, OOM, OUTPUT_LIMIT, PROTOCOL = "OK", "CRASH", "TIMEOUT", "OOM", "OUTPUT_LIMIT", "PROTOCOL"


def test_every_question_gets_one_outcome_in_order(lab: Laboratory) -> None:
    outcome = lab.run(
        policy("return Answer('B', 'route', (0, 3 if len(self.windows) > 3 else 1), {'n': len(self.windows)})")
    )
    assert [question.query_id for question in outcome.questions] == ["q0", "q1", "q2"]
    assert [question.answer.diagnostics["n"] for question in outcome.questions if question.answer] == [2, 5, 8]
    assert outcome.restarts == 0
    assert outcome.runtime_digest == lab.sandbox.runtime_digest


@pytest.mark.parametrize(
    ("body", "verdict", "detail"),
    [
        ("raise KeyError('nothing')", CRASH, "KeyError: 'nothing' (policy.py:"),
        ("1 / 0", CRASH, "ZeroDivisionError: division by zero (policy.py:"),
        ("os._exit(0)", CRASH, "no answer; the child ended with status 0"),
        ("os._exit(7)", CRASH, "no answer; the child ended with status 7"),
        ("sys.exit(0)", CRASH, "SystemExit: 0"),
        ("os.kill(os.getpid(), 9)", CRASH, "no answer; the child ended with status -9"),
        ("return 'A'", CRASH, "TypeError: answer() returned str, not an Answer"),
        ("return Answer('Z', 'x')", CRASH, "ValueError: answer.choice: 'Z' is no letter of the question"),
        ("return Answer('A', 'x' * 65)", CRASH, "answer.route: 65 characters, at most 64"),
        ("return Answer('A', 'x', (99,))", CRASH, "a window that was not seen"),
        ("return Answer('A', 'x', tuple([0] * 65))", CRASH, "65 references, at most 64"),
        ("return Answer('A', 'x', (), {'a': float('nan')})", CRASH, "ValueError: cannot be sent: Out of range float"),
        ("return Answer('A', 'x', (), {'a': 'y' * 9000})", CRASH, "at most 8000"),
        ("def f(): return f()\n    f()", CRASH, "RecursionError"),
        ("while True: pass", TIMEOUT, "nothing within 2.5 s"),
        ("time.sleep(60)", TIMEOUT, "nothing within"),
        ("os.kill(os.getpid(), signal.SIGSTOP)", TIMEOUT, "nothing within"),
        ("os.kill(os.getppid(), signal.SIGSTOP)", TIMEOUT, "nothing within"),
        ("signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals()); time.sleep(60)", TIMEOUT, "nothing within"),
        ("os.kill(os.getppid(), 9); time.sleep(5)", CRASH, "status 137"),
        ("os.write(CHANNEL(), b'x' * 1100000)", OUTPUT_LIMIT, "a line of more than 1048576 bytes"),
        ("while os.write(CHANNEL(), REQUEST): os.read(0, 4096)", OUTPUT_LIMIT, "in all"),
        ("os.write(CHANNEL(), b'hello\\n')", PROTOCOL, "not a line of the protocol"),
        ("os.write(CHANNEL(), b'\\n' * 1000)", PROTOCOL, "not a line of the protocol"),
        ("os.write(CHANNEL(), b'\\xff\\n')", PROTOCOL, "not a line of the protocol"),
        ("os.write(CHANNEL(), b'[' * 100000 + b'\\n')", PROTOCOL, "not a line of the protocol"),
    ],
)  # fmt: skip
def test_a_failure_costs_one_question(lab: Laboratory, body: str, verdict: str, detail: str) -> None:
    began = time.monotonic()
    outcome = lab.run(FORGER + at_second(body))
    first, second, third = outcome.questions
    assert (first.verdict, second.verdict, third.verdict) == (OK, verdict, OK), outcome
    assert detail in second.detail
    assert second.answer is None
    assert time.monotonic() - began < 30  # half of what the sleepers wait; how fast it is, the benchmarks tell


@pytest.mark.parametrize("where", ["init", "observe"])
@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("raise ValueError('broken')", CRASH),
        ("os._exit(3)", CRASH),
        ("sys.exit()", CRASH),
        ("time.sleep(60)", TIMEOUT),
        ("os.write(CHANNEL(), b'?\\n')", PROTOCOL),
        ("os.write(CHANNEL(), b'x' * 1100000)", OUTPUT_LIMIT),
    ],
)
def test_a_failure_before_the_first_question_costs_all(lab: Laboratory, where: str, body: str, verdict: str) -> None:
    outcome = lab.run(FORGER + policy(**{where: body}))
    assert [str(question.verdict) for question in outcome.questions] == [verdict] * 3
    assert outcome.restarts == 0


def test_a_crash_in_observe_costs_the_later_questions_only(lab: Laboratory) -> None:
    outcome = lab.run(policy(observe="assert len(self.windows) < 5, 'full\\x1b[31m'"))
    assert [str(question.verdict) for question in outcome.questions] == [OK, CRASH, CRASH]
    assert "AssertionError: full\\x1b[31m (policy.py:" in outcome.questions[1].detail


@pytest.mark.parametrize(
    "source",
    [
        "class Policy: pass",
        "Policy = 3",
        "import nonexistent",
        "def f(:",
        "raise SystemExit",
        "\x00",
        "while True: pass",
    ],
)
def test_a_module_that_does_not_load_costs_all(lab: Laboratory, source: str) -> None:
    verdicts = lab.verdicts(source)
    assert set(verdicts) == {TIMEOUT if "while" in source else CRASH}


def test_time_outs_end_the_shard(lab: Laboratory) -> None:
    outcome = lab.run(policy("time.sleep(9)"), make_shard(6))
    assert [str(question.verdict) for question in outcome.questions] == [TIMEOUT] * 6
    assert outcome.restarts == lab.sandbox.limits.timeouts - 1
    assert "after 2 time-outs" in outcome.questions[-1].detail


def test_breaking_the_protocol_at_every_question_is_bounded(lab: Laboratory) -> None:
    outcome = lab.run(FORGER + policy("os.write(CHANNEL(), b'?\\n')"), make_shard(MAX_RESTARTS + 3))
    assert [question.verdict for question in outcome.questions] == [Verdict.PROTOCOL] * (MAX_RESTARTS + 3)
    assert outcome.restarts <= MAX_RESTARTS


def test_prints_go_to_the_capped_log_and_harm_nothing(lab: Laboratory) -> None:
    body = """
    print('{"kind":"answer"}')
    print("\\x1b[2J" + "z" * 100_000)
    sys.stderr.write("err\\n")
    os.write(1, b"raw\\n")
    return Answer("A", "x")
    """
    outcome = lab.run(policy(body, observe="print('seen', len(windows))"))
    assert [str(question.verdict) for question in outcome.questions] == [OK] * 3
    assert "seen 2\n" in outcome.log
    assert "\\x1b[2J" in outcome.log
    assert "\x1b" not in outcome.log
    assert len(outcome.log.encode()) < 2 * lab.sandbox.limits.log_bytes


def test_addresses_are_the_same_in_every_run_so_that_nobody_draws_lots_from_them(lab: Laboratory) -> None:
    source = policy("return Answer('A', f'{id(self):x}-{id(len):x}-{id(object()):x}')")
    first, second = (lab.run(source, make_shard(2)) for _ in range(2))
    drawn = [[question.answer.route for question in run.questions if question.answer] for run in (first, second)]
    assert len(drawn[0]) == 2
    assert drawn[0] == drawn[1]
