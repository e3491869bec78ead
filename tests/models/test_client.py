"""The client against a real HTTP server."""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import threading
import time
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest

from harness.models.client import Client, LostInFlight, Timing
from harness.models.interface import ChatMessage, ChatRequest, ModelError, ReplyKind, RequestRefused
from harness.models.quirks import Learned, Quirks
from harness.settings import RoleModel

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}


def request(**changes: Any) -> ChatRequest:
    return ChatRequest((ChatMessage("user", "question"),), max_tokens=20, **changes)


@pytest.fixture
def learned() -> list[Learned]:
    return []


@pytest.fixture
def make(server: Any, clock: Any, learned: Any) -> Any:
    made = []

    def build(key: str | None = "k-secret", reply_bytes: int = 100_000, **settings: Any) -> Client:
        endpoint = RoleModel(model="m", base_url=settings.pop("base_url", server.url), **settings)
        timing = Timing(clock=clock, sleep=clock.sleep, jitter=lambda: 1.0)
        client = Client(endpoint, key, Quirks((), learned.append, "max_tokens"), timing, reply_bytes)
        made.append(client)
        return client

    yield build
    for client in made:
        client.close()


def test_a_plain_call_sends_what_was_asked_for(make: Any, server: Any) -> None:
    done = make().chat(request(seed=3), 60)
    assert (done.kind, done.text, done.model, done.finish_reason) == (ReplyKind.OK, "hello", "served", "stop")
    sent = server.requests[0]
    assert sent.pop("_path") == "/v1/chat/completions"
    assert sent == {
        "model": "m",
        "messages": [{"role": "user", "content": "question"}],
        "max_tokens": 20,
        "temperature": 0.0,
        "seed": 3,
    }
    assert server.headers[0]["authorization"] == "Bearer k-secret"


def test_images_go_as_data_urls_after_the_text(make: Any, server: Any) -> None:
    image = b"\x89PNG\r\n\x1a\nxx"
    make().chat(ChatRequest((ChatMessage("user", "look", (image, b"\xff\xd8\xff")),), 5), 60)
    text, png, jpeg = server.requests[0]["messages"][0]["content"]
    assert text == {"type": "text", "text": "look"}
    assert png["image_url"]["url"].startswith("data:image/png;base64,iVBOR")
    assert jpeg["image_url"]["url"].startswith("data:image/jpeg;base64,")


# ---------------------------------------------------------------- what costs nothing is sent again


def test_a_storm_of_429_is_waited_out_as_asked(make: Any, server: Any, clock: Any, say: Any, refuse: Any) -> None:
    storm = refuse("slow down", status=429)
    storm.headers = {"Retry-After": "7"}
    server.script = [storm, storm, storm, say("through")]
    assert make().chat(request(), 60).text == "through"
    assert clock.sleeps == [7, 7, 7]
    assert len(server.requests) == 4


def test_retry_after_may_be_a_date(make: Any, server: Any, clock: Any, say: Any, refuse: Any) -> None:
    storm = refuse("slow down", status=429)
    storm.headers = {"Retry-After": formatdate(time.time() + 30, usegmt=True)}
    server.script = [storm, say("through")]
    assert make().chat(request(), 60).text == "through"
    assert 28 <= clock.sleeps[0] <= 31


def test_500s_back_off_exponentially_then_give_up(make: Any, server: Any, clock: Any, refuse: Any) -> None:
    server.script = [refuse("oops", status=500)]
    with pytest.raises(ModelError, match="gave up after 6 attempts: status 500: oops"):
        make(attempts=6).chat(request(), 600)
    assert clock.sleeps == [0.5, 1, 2, 4, 8]
    assert len(server.requests) == 6


def test_a_wait_past_the_deadline_is_not_begun(make: Any, server: Any, clock: Any, refuse: Any) -> None:
    storm = refuse("slow down", status=429)
    storm.headers = {"Retry-After": "3600"}
    server.script = [storm]
    with pytest.raises(ModelError, match="3600 s would pass the call's 60 s"):
        make().chat(request(), 60)
    assert clock.sleeps == []


@pytest.mark.parametrize("value", ["nonsense", "-5", "nan", "inf", "1e400", "0", ""])
def test_a_strange_retry_after_falls_back_to_the_back_off(
    make: Any, server: Any, clock: Any, say: Any, refuse: Any, value: Any
) -> None:
    storm = refuse("slow down", status=429)
    storm.headers = {"Retry-After": value}
    server.script = [storm, say()]
    make().chat(request(), 60)
    assert clock.sleeps == [0.5]


def test_nothing_listening_is_said_in_one_line(make: Any, server: Any, clock: Any) -> None:
    server.close()
    with pytest.raises(ModelError) as caught:
        make().chat(request(), 600)
    assert "no connection" in str(caught.value)
    assert server.url in str(caught.value)
    assert "\n" not in str(caught.value)
    assert clock.sleeps == [0.5, 1, 2, 4]


# ---------------------------------------------------------------- final errors


@pytest.mark.parametrize(
    ("status", "kind", "words"),
    [
        (401, ModelError, "the key was refused"),
        (403, ModelError, "the key was refused"),
        (404, ModelError, "no such model or address"),
        (402, ModelError, "no credit"),
        (400, RequestRefused, "refused the request"),
        (413, RequestRefused, "refused the request"),
        (422, RequestRefused, "refused the request"),
        (307, ModelError, "redirect"),
    ],
)
def test_errors_are_told_apart_and_tried_once(
    make: Any, server: Any, refuse: Any, status: Any, kind: Any, words: Any
) -> None:
    server.script = [refuse("bad \x1b[31m k-secret\nline", status=status)]
    server.script[0].headers = {"Location": "http://example.invalid/"}
    with pytest.raises(ModelError) as caught:
        make().chat(request(), 60)
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert "k-secret" not in str(caught.value)
    assert "\x1b" not in str(caught.value) and "\n" not in str(caught.value)
    assert len(server.requests) == 1


def test_no_credit_is_not_retried(make: Any, server: Any, refuse: Any) -> None:
    server.script = [refuse("You exceeded your quota", code="insufficient_quota", status=429)]
    with pytest.raises(ModelError, match="no credit left"):
        make().chat(request(), 60)
    assert len(server.requests) == 1


def test_an_unknown_model_under_400_is_an_unknown_model(make: Any, server: Any, refuse: Any) -> None:
    server.script = [refuse("The model `m` does not exist", code="model_not_found")]
    with pytest.raises(ModelError, match="no such model"):
        make().chat(request(), 60)


def test_a_value_out_of_range_teaches_nothing(make: Any, server: Any, refuse: Any, learned: Any) -> None:
    server.script = [refuse("max_tokens is too large: 20. This model supports at most 10 tokens", "max_tokens")]
    with pytest.raises(RequestRefused, match="at most 10"):
        make().chat(request(), 60)
    assert learned == []


# ---------------------------------------------------------------- refused parameters


def picky(say: Any, refuse: Any, refused: dict[str, str]) -> Any:
    """An endpoint that refuses parameters, in OpenAI's words."""

    def behave(body: Any) -> Any:
        for name, message in refused.items():
            if name in body:
                return refuse(message, name, "unsupported_parameter")
        return say()

    return behave


def test_refused_parameters_are_learned_once(
    make: Any, server: Any, say: Any, refuse: Any, learned: Any, caplog: Any
) -> None:
    server.behave = picky(
        say,
        refuse,
        {
            "max_tokens": "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            "temperature": "Unsupported value: 'temperature' does not support 0 with this model. Only the default (1) "
            "value is supported.",
            "seed": "Unsupported parameter: 'seed'",
        },
    )
    client = make()
    client.chat(request(seed=1), 60)
    assert len(server.requests) == 4
    assert [(fact.parameter, fact.remedy) for fact in learned] == [
        ("max_tokens", "max_completion_tokens"),
        ("temperature", "left out"),
        ("seed", "left out"),
    ]
    assert "Only the default" in learned[1].message
    assert [record.args[:2] for record in caplog.records] == [(fact.parameter, fact.remedy) for fact in learned]
    client.chat(request(seed=2), 60)
    assert len(server.requests) == 5
    assert {"max_tokens", "temperature", "seed"}.isdisjoint(server.requests[-1])
    assert server.requests[-1]["max_completion_tokens"] == 20


def test_a_422_with_a_list_of_places_is_understood(make: Any, server: Any, say: Any, raw: Any) -> None:
    body = {"detail": [{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted"}]}
    server.behave = lambda sent: raw(422, body) if "seed" in sent else say()
    assert make().chat(request(seed=1), 60).text == "hello"


def test_json_schema_falls_back_to_json_object_then_to_words(
    make: Any, server: Any, say: Any, refuse: Any, learned: Any
) -> None:
    def behave(body: Any) -> Any:
        return (
            refuse("This response_format type is unavailable now") if "response_format" in body else say('{"a": "b"}')
        )

    server.behave = behave
    client = make()
    client.chat(request(schema=SCHEMA), 60)
    formats = [sent.get("response_format", {}).get("type") for sent in server.requests]
    assert formats == ["json_schema", "json_object", None]
    assert json.dumps(SCHEMA) in server.requests[-1]["messages"][-1]["content"]
    assert [fact.remedy for fact in learned] == ["json_object", "text"]
    client.chat(request(schema=SCHEMA), 60)
    assert len(server.requests) == 4


def test_a_bad_schema_of_one_request_is_not_held_against_the_model(
    make: Any, server: Any, say: Any, refuse: Any, learned: Any
) -> None:
    def behave(body: Any) -> Any:
        wrong = body.get("response_format", {}).get("json_schema", {}).get("schema") == {"type": "odd"}
        message = "Invalid schema for response_format 'reply': 'odd' is not supported"
        return refuse(message, "response_format", "invalid_json_schema") if wrong else say()

    server.behave = behave
    client = make()
    client.chat(request(schema={"type": "odd"}), 60)
    client.chat(request(schema=SCHEMA), 60)
    assert learned == []
    assert [sent.get("response_format", {}).get("type") for sent in server.requests] == [
        "json_schema",
        None,
        "json_schema",
    ]
    assert server.requests[-1]["response_format"]["json_schema"]["strict"] is True


def test_a_model_that_refuses_both_names_ends_in_one_line(make: Any, server: Any, refuse: Any) -> None:
    server.behave = lambda body: refuse(f"Unsupported parameter: '{next(k for k in body if k.startswith('max_'))}'")
    with pytest.raises(ModelError, match="Unsupported parameter"):
        make().chat(request(), 60)
    assert len(server.requests) == 2


def test_known_quirks_are_not_met_again(server: Any, say: Any, refuse: Any, clock: Any) -> None:
    server.behave = picky(say, refuse, {"max_tokens": "Unsupported parameter: 'max_tokens'"})
    endpoint = RoleModel(model="m", base_url=server.url)
    known = Quirks([Learned("max_tokens", "max_completion_tokens", "")], lambda fact: None, "max_tokens")
    client = Client(endpoint, None, known, Timing())
    client.chat(request(), 60)
    client.close()
    assert len(server.requests) == 1


# ---------------------------------------------------------------- lost in flight


def test_truncated_json_is_lost(make: Any, server: Any, raw: Any) -> None:
    server.script = [raw(body=b'{"choices": [{"mess')]
    with pytest.raises(LostInFlight, match="not JSON"):
        make().chat(request(), 60)


@pytest.mark.parametrize("body", [[], {}, {"choices": []}, {"choices": [1]}, {"choices": [{"message": 5}]}, None])
def test_other_json_is_lost(make: Any, server: Any, raw: Any, body: Any) -> None:
    server.script = [raw(body=body)]
    with pytest.raises(LostInFlight):
        make().chat(request(), 60)


def test_a_connection_cut_inside_the_body_is_lost(make: Any, server: Any, raw: Any) -> None:
    server.script = [raw(body=b'{"choices": ', promise=5_000)]
    with pytest.raises(LostInFlight, match="connection broke"):
        make().chat(request(), 60)


def test_a_hang_is_lost_after_the_timeout(make: Any, server: Any, say: Any) -> None:
    server.script = [say()]
    server.script[0].hang = 60
    started = time.monotonic()
    with pytest.raises(LostInFlight, match="no reply in time"):
        make(timeout=0.3).chat(request(), 60)
    assert time.monotonic() - started < 20


def test_a_dripping_head_is_lost_after_the_timeout(make: Any) -> None:
    over = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while not over.wait(0.05):
                connection.sendall(b"x")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=drip, daemon=True).start()
        started = time.monotonic()
        with pytest.raises(LostInFlight, match="did not end in time"):
            make(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}/v1", timeout=0.5).chat(request(), 60)
        over.set()
    assert time.monotonic() - started < 20


def test_a_dripping_reply_is_lost_after_the_timeout(make: Any, server: Any, say: Any) -> None:
    server.script = [say("x" * 500)]
    server.script[0].drip = 0.05
    started = time.monotonic()
    with pytest.raises(LostInFlight, match="did not end in time"):
        make(timeout=0.5).chat(request(), 60)
    assert time.monotonic() - started < 20


@pytest.mark.parametrize("status", [200, 400])
def test_a_huge_body_is_not_read(make: Any, server: Any, raw: Any, status: Any) -> None:
    server.script = [raw(status, b" " * 3_000_000)]
    with pytest.raises(LostInFlight, match="larger than 100000 bytes"):
        make().chat(request(), 60)


def test_a_packed_body_is_not_unpacked(make: Any, server: Any, raw: Any) -> None:
    server.script = [raw(body=b"\x1f\x8b\x08", headers={"Content-Encoding": "gzip"})]
    with pytest.raises(LostInFlight, match="compressed"):
        make().chat(request(), 60)


# ---------------------------------------------------------------- embeddings


def test_embeddings_come_back_in_order_as_float16(make: Any, server: Any, raw: Any) -> None:
    def packed(*numbers: float) -> str:
        return base64.b64encode(np.array(numbers, "<f4").tobytes()).decode()

    data = [{"index": 1, "embedding": packed(3, 4)}, {"index": 0, "embedding": packed(1, 0.5)}]
    server.script = [raw(body={"data": data, "usage": {"prompt_tokens": 4, "total_tokens": 4}})]
    vectors, usage = make().embed(("a", "b"), 60)
    assert [np.frombuffer(v, "<f2").tolist() for v in vectors] == [[1, 0.5], [3, 4]]
    assert usage is not None and (usage.prompt, usage.completion) == (4, 0)
    assert server.requests[0]["encoding_format"] == "base64"


def test_an_endpoint_without_base64_is_asked_for_floats(
    make: Any, server: Any, raw: Any, refuse: Any, learned: Any
) -> None:
    def behave(body: Any) -> Any:
        if body["encoding_format"] == "base64":
            return refuse("Unsupported parameter: encoding_format", "encoding_format")
        return raw(body={"data": [{"index": 0, "embedding": [0.25, 1]}]})

    server.behave = behave
    vectors, usage = make().embed(("a",), 60)
    assert vectors == (b"\x00\x34\x00\x3c",)
    assert usage is None
    assert [fact.parameter for fact in learned] == ["encoding_format"]


@pytest.mark.parametrize(
    "data",
    [
        [],
        [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, 2]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1e30]}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": "not base64!"}],
        [{"index": 0, "embedding": [1]}, {"index": 1, "embedding": ["1"]}],
        [{"index": 0, "embedding": [1]}, 7],
        [{"index": 0, "embedding": [1]}, {"index": 9, "embedding": [1]}],
    ],
)
def test_vectors_that_are_none_are_lost(make: Any, server: Any, raw: Any, data: Any) -> None:
    server.script = [raw(body={"data": data})]
    with pytest.raises(LostInFlight):
        make().embed(("a", "b"), 60)
