"""All of it together, against a real server: nothing is bought twice, caps hold, quirks are kept."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from harness.config import resolve
from harness.errors import UserError
from harness.models.client import Timing
from harness.models.counting import count_prompt, count_tokens, worst_case
from harness.models.hub import ModelHub, open_models
from harness.models.interface import CapReached, ChatMessage, ChatRequest, ModelError, ReplyKind, Role
from harness.models.replies import read_booked, read_calls

TOML = """
[run]
profile = "test"
{more}
[profiles.test.default]
model = "m"
base_url = "{url}"
[profiles.test.roles.embedder]
model = "e"
"""


def request(text: Any = "question", max_tokens: Any = 20, **changes: Any) -> Any:
    return ChatRequest((ChatMessage("user", text),), max_tokens, **changes)


@pytest.fixture
def configure(server: Any, tmp_path: Any) -> Any:
    def build(more: Any = "", env: Any = None) -> Any:
        file = tmp_path / "harness.toml"
        file.write_text(TOML.format(url=server.url, more=more))
        return resolve({}, env or {}, file)

    return build


@pytest.fixture
def run(tmp_path: Any) -> Any:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture
def open_hub(configure: Any, run: Any, clock: Any) -> Any:
    opened = []

    def build(more: Any = "", **settings: Any) -> Any:
        hub = ModelHub(configure(more), run, Timing(clock=clock, sleep=clock.sleep, jitter=lambda: 1.0), **settings)
        opened.append(hub)
        return hub

    yield build
    for hub in opened:
        hub.close()


def test_the_offline_profile_sends_and_makes_nothing(run: Any) -> None:
    models = open_models(resolve({}, {"OPENAI_API_KEY": "k", "HARNESS_MODEL": "m"}, None), run)
    assert not any(models.has(role) for role in Role)
    assert models.describe(Role.ANSWER) == "offline"
    assert models.spent() == {}
    with pytest.raises(ModelError, match="offline"):
        models.chat(Role.ANSWER, request(), "s")
    assert list(run.iterdir()) == []


def test_a_reply_is_bought_once_also_across_restarts(open_hub: Any, server: Any, run: Any) -> None:
    hub = open_hub()
    first = hub.chat(Role.ANSWER, request(), "0001/develop/q/0")
    again = hub.chat(Role.ANSWER, request(), "0001/develop/q/0")
    hub.close()
    later = open_hub().chat(Role.ANSWER, request(), "0001/develop/q/0")
    assert (first.stored, again.stored, later.stored) == (False, True, True)
    assert first.text == again.text == later.text == "hello"
    assert first.usage == later.usage
    assert len(server.requests) == 1
    assert read_booked(run / "replies.db")[Role.ANSWER][0].requests == 1


def test_another_scope_request_or_role_is_another_call(open_hub: Any, server: Any) -> None:
    hub = open_hub()
    hub.chat(Role.ANSWER, request(), "a")
    hub.chat(Role.ANSWER, request(), "b")
    hub.chat(Role.ANSWER, request("other"), "a")
    hub.chat(Role.ANSWER, request(seed=1), "a")
    hub.chat(Role.REVIEWER, request(), "a")
    assert len(server.requests) == 5


def test_another_model_is_another_call(open_hub: Any, server: Any) -> None:
    hub = open_hub()
    hub.chat(Role.ANSWER, request(), "a")
    hub.close()
    hub = open_hub("[profiles.test.roles.answer]\nmodel = 'better'")
    assert not hub.chat(Role.ANSWER, request(), "a").stored
    assert [sent["model"] for sent in server.requests] == ["m", "better"]


def test_construction_is_shared_by_content(open_hub: Any, server: Any, raw: Any) -> None:
    hub = open_hub()
    assert not hub.chat(Role.BUILDER, request(), "0001/a").stored
    assert hub.chat(Role.BUILDER, request(), "0009/b").stored
    server.script = [raw(body={"data": [{"index": 0, "embedding": [1.0]}], "usage": {"prompt_tokens": 3}})]
    first = hub.embed(("text",), "0001/a")
    assert hub.embed(("text",), "0009/b") == first
    assert first.vectors == (b"\x00\x3c",) and first.usage.prompt_tokens == 3
    assert len(server.requests) == 2
    assert hub.embed((), "x").vectors == ()


def test_identical_calls_at_the_same_time_are_bought_once(open_hub: Any, server: Any, say: Any) -> None:
    server.script = [say()]
    server.script[0].hang = 0.2
    hub = open_hub()
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: hub.chat(Role.BUILDER, request(), "s"), range(8)))
    assert len(server.requests) == 1
    assert sorted(reply.stored for reply in replies) == [False] + [True] * 7
    assert not hub._held


def test_usage_is_counted_offline_where_none_is_reported(open_hub: Any, server: Any, say: Any) -> None:
    server.script = [say("one two three", usage=None)]
    reply = open_hub().chat(Role.ANSWER, request(), "s")
    assert reply.usage.estimated
    assert reply.usage.prompt_tokens == count_prompt(request())
    assert reply.usage.completion_tokens == count_tokens("one two three") == 3


def test_reported_usage_is_priced(open_hub: Any, server: Any, say: Any) -> None:
    usage = {
        "prompt_tokens": 1000,
        "completion_tokens": 100,
        "completion_tokens_details": {"reasoning_tokens": 90},
        "prompt_tokens_details": {"cached_tokens": 800},
    }
    server.script = [say("x", usage=usage)]
    hub = open_hub("[prices.m]\ninput = 2\ncached_input = 0.5\noutput = 8")
    reply = hub.chat(Role.ANSWER, request(), "s")
    assert reply.usage.dollars == pytest.approx((200 * 2 + 800 * 0.5 + 100 * 8) / 1e6)
    assert (reply.usage.reasoning_tokens, reply.usage.cached_tokens, reply.usage.estimated) == (90, 800, False)
    assert hub.spent() == {Role.ANSWER: reply.usage}
    assert hub.paid


@pytest.mark.parametrize(
    ("settings", "kind", "text"),
    [
        ({"content": None}, ReplyKind.EMPTY, ""),
        ({"content": None, "refusal": "no"}, ReplyKind.REFUSED, ""),
        ({"content": "x", "finish": "content_filter"}, ReplyKind.REFUSED, "x"),
        ({"content": "x", "finish": "length"}, ReplyKind.TRUNCATED, "x"),
        ({"content": "<think>a</think>b"}, ReplyKind.OK, "b"),
    ],
)
def test_kinds_survive_the_store(open_hub: Any, server: Any, say: Any, settings: Any, kind: Any, text: Any) -> None:
    server.script = [say(**settings)]
    hub = open_hub()
    for _ in range(2):
        reply = hub.chat(Role.ANSWER, request(), "s")
        assert (reply.kind, reply.text) == (kind, text)
    assert len(server.requests) == 1


def test_a_cap_stops_before_the_call_is_sent(open_hub: Any, server: Any) -> None:
    need = worst_case(count_prompt(request())) + 20
    hub = open_hub(f"[caps.roles.answer]\ntokens = {need + 14}")
    hub.chat(Role.ANSWER, request(), "a")  # reported as 15 tokens
    with pytest.raises(CapReached, match=r"caps\.roles\.answer\.tokens reached: 15 of"):
        hub.chat(Role.ANSWER, request(), "b")
    assert len(server.requests) == 1
    hub.chat(Role.REVIEWER, request(), "b")


def test_caps_hold_over_restarts(open_hub: Any, server: Any) -> None:
    hub = open_hub("[caps]\nrequests = 1")
    hub.chat(Role.ANSWER, request(), "a")
    hub.close()
    hub = open_hub("[caps]\nrequests = 1")
    assert hub.chat(Role.ANSWER, request(), "a").stored
    with pytest.raises(CapReached, match=r"caps\.requests"):
        hub.chat(Role.ANSWER, request(), "b")
    assert len(server.requests) == 1


def test_a_lost_reply_is_booked_and_sent_again(open_hub: Any, server: Any, raw: Any, say: Any, run: Any) -> None:
    server.script = [raw(body=b'{"cut'), say("through")]
    hub = open_hub("[prices.m]\ninput = 1\noutput = 1")
    assert hub.chat(Role.ANSWER, request(), "a").text == "through"
    worst = worst_case(count_prompt(request()))
    spent = hub.spent()[Role.ANSWER]
    assert (spent.requests, spent.prompt_tokens, spent.completion_tokens) == (2, worst + 10, 20 + 5)
    assert spent.dollars == pytest.approx((worst + 35) / 1e6)
    assert [(c.ordinal, c.state) for c in read_calls(run / "replies.db")] == [(0, "lost"), (1, "reply")]


def test_replies_that_keep_getting_lost_end_in_one_line(open_hub: Any, server: Any, raw: Any) -> None:
    server.script = [raw(body=b"")]
    hub = open_hub()
    with pytest.raises(ModelError, match="sent 3 times, each booked at its reservation"):
        hub.chat(Role.ANSWER, request(), "a")
    assert hub.spent()[Role.ANSWER].requests == len(server.requests) == 3


def test_refusals_of_the_endpoint_cost_nothing(open_hub: Any, server: Any, refuse: Any, run: Any) -> None:
    server.script = [refuse("bad prompt")]
    hub = open_hub()
    with pytest.raises(ModelError, match="bad prompt"):
        hub.chat(Role.ANSWER, request(), "a")
    assert hub.spent() == {}
    assert [(c.state, "bad prompt" in c.note) for c in read_calls(run / "replies.db")] == [("refused", True)]


def test_quirks_are_kept_over_restarts_and_shown(open_hub: Any, server: Any, say: Any, refuse: Any) -> None:
    server.behave = lambda body: (
        refuse("Unsupported parameter: 'max_tokens'", "max_tokens") if "max_tokens" in body else say()
    )
    hub = open_hub()
    hub.chat(Role.ANSWER, request(), "a")
    hub.chat(Role.REVIEWER, request(), "a")
    assert len(server.requests) == 3  # both roles share what is known of the model
    hub.close()
    hub = open_hub()
    hub.chat(Role.ANSWER, request(), "b")
    assert len(server.requests) == 4
    assert [(model, fact.parameter, fact.remedy) for model, fact in hub.learned()] == [
        ("m", "max_tokens", "max_completion_tokens")
    ]


def test_settings_of_the_role_replace_what_is_asked_for(configure: Any, server: Any, run: Any, tmp_path: Any) -> None:
    file = tmp_path / "harness.toml"
    configure()
    file.write_text(file.read_text() + "[profiles.test.roles.answer]\nmax_tokens = 999\ntemperature = 0.5\nseed = 7\n")
    hub = ModelHub(resolve({}, {}, file), run)
    hub.chat(Role.ANSWER, request(), "a")
    hub.close()
    sent = server.requests[0]
    assert (sent["max_tokens"], sent["temperature"], sent["seed"]) == (999, 0.5, 7)


def test_text_that_cannot_be_encoded_is_sent_all_the_same(open_hub: Any, server: Any) -> None:
    open_hub().chat(Role.ANSWER, request("a\ud800b"), "a")
    assert server.requests[0]["messages"][0]["content"] == "a?b"


def test_what_is_missing_is_said_before_anything_is_sent(run: Any, server: Any) -> None:
    env = {"HARNESS_MODEL": "gpt-4.1", "HARNESS_PROFILE": "openai"}
    with pytest.raises(UserError, match="environment variable OPENAI_API_KEY is not set"):
        open_models(resolve({}, env, None), run)
    env |= {"OPENAI_API_KEY": "k", "HARNESS_MODEL": "new-model"}
    with pytest.raises(UserError, match=r'\[prices."new-model"\]'):
        open_models(resolve({}, env, None), run)
    assert list(run.iterdir()) == []


def test_the_banner_names_models_prices_and_caps(open_hub: Any) -> None:
    hub = open_hub("[caps.roles.reviewer]\nrequests = 5")
    assert not hub.paid
    lines = "\n".join(hub.banner())
    assert "answer: m at http://127.0.0.1:" in lines
    assert "free: on this machine" in lines
    assert "caps of the run: 10 dollars" in lines
    assert "caps of reviewer: 5 requests" in lines


def test_a_full_disk_at_the_reply_leaves_the_call_booked(open_hub: Any, server: Any, run: Any) -> None:
    hub = open_hub()
    hub.chat(Role.ANSWER, request("warm"), "a")
    hub._replies._db.execute(
        "CREATE TRIGGER full BEFORE UPDATE ON calls BEGIN SELECT RAISE(ABORT, 'disk is full'); END"
    )
    with pytest.raises(UserError, match="free some space"):
        hub.chat(Role.ANSWER, request(), "b")
    assert hub.spent()[Role.ANSWER].requests == 2
    hub._replies._db.execute("DROP TRIGGER full")
    hub.chat(Role.ANSWER, request(), "c")  # no reservation is left hanging


VICTIM = """
import sys
from pathlib import Path
from harness.config import resolve
from harness.models.hub import ModelHub
from harness.models.interface import ChatMessage, ChatRequest, Role
hub = ModelHub(resolve({}, {}, Path(sys.argv[1])), Path(sys.argv[2]))
for number in range(3):
    hub.chat(Role.ANSWER, ChatRequest((ChatMessage("user", f"question {number}"),), 20), f"q/{number}")
    print(number, flush=True)
"""


def test_kill_between_intent_and_reply(configure: Any, server: Any, run: Any, say: Any, tmp_path: Any) -> None:
    """The received reply is not bought again; the one in flight is booked at its reservation, then bought."""
    arrived = threading.Event()

    def behave(body: Any) -> Any:
        answer = say(body["messages"][0]["content"])
        if body["messages"][0]["content"] == "question 1" and not arrived.is_set():
            arrived.set()
            answer.hang = 100
        return answer

    server.behave = behave
    configure()
    script = tmp_path / "victim.py"
    script.write_text(textwrap.dedent(VICTIM))
    command = [sys.executable, str(script), str(tmp_path / "harness.toml"), str(run)]
    victim = subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=str(Path.cwd()), env={**os.environ, "PYTHONPATH": str(Path.cwd())}
    )
    assert arrived.wait(90)
    os.kill(victim.pid, signal.SIGKILL)
    assert victim.communicate()[0] == b"0\n"

    files = sorted(run.iterdir())
    intents = [(c.scope, c.state) for c in read_calls(run / "replies.db")]
    assert intents == [("q/0", "reply"), ("q/1", "intent")]
    assert sorted(run.iterdir()) == files

    hub = ModelHub(resolve({}, {}, tmp_path / "harness.toml"), run)
    worst = worst_case(count_prompt(request("question 1")))
    assert hub.spent()[Role.ANSWER].prompt_tokens == 10 + worst
    for number in range(3):
        reply = hub.chat(Role.ANSWER, request(f"question {number}"), f"q/{number}")
        assert reply.text == f"question {number}"
        assert reply.stored is (number == 0)
    spent = hub.spent()[Role.ANSWER]
    hub.close()
    asked = [sent["messages"][0]["content"] for sent in server.requests]
    assert asked == ["question 0", "question 1", "question 1", "question 2"]
    assert (spent.requests, spent.prompt_tokens, spent.completion_tokens) == (4, 3 * 10 + worst, 3 * 5 + 20)
    assert read_booked(run / "replies.db")[Role.ANSWER][0] == spent


def test_many_threads_never_pass_a_cap_of_the_server_s_count(open_hub: Any, server: Any) -> None:
    hub = open_hub("[caps]\nrequests = 25")
    refused = []

    def ask(number: Any) -> None:
        try:
            hub.chat(Role.ANSWER, request(), f"q/{number}")
        except CapReached as error:
            refused.append(str(error))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(40)))
    assert len(server.requests) == 25
    assert len(refused) == 15


def test_a_stored_reply_comes_fast(open_hub: Any) -> None:
    hub = open_hub()
    hub.chat(Role.ANSWER, request(), "a")
    started = time.perf_counter()
    for _ in range(50):
        hub.chat(Role.ANSWER, request(), "a")
    assert (time.perf_counter() - started) / 50 < 0.2
