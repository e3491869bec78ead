"""Tool calls over HTTP: what is sent, what is read of hostile replies, what is stored."""

from __future__ import annotations

from typing import Any

from harness.models.interface import ChatMessage, ChatRequest, ReplyKind, Role, Tool, ToolCall
from tests.endpoint import endpoint, models

__all__ = ["endpoint", "models"]
LOOK = Tool("look", "Look at a thing.", {"type": "object", "properties": {"at": {"type": "string"}}})


def request(*more: ChatMessage, text: str = "go") -> ChatRequest:
    return ChatRequest((ChatMessage("user", text), *more), 50, tools=(LOOK,))


def choice(calls: Any, content: Any = None, finish: str = "tool_calls") -> dict[str, Any]:
    return {"finish_reason": finish, "message": {"content": content, "tool_calls": calls}}


def call(name: str, arguments: Any, number: str | None = "1") -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


def test_a_call_and_its_result_go_both_ways(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: choice([call("look", '{"at": "x"}', "a1")])
    reply = models.chat(Role.RESEARCHER, request(), "1")
    assert reply.kind is ReplyKind.OK and reply.text == ""
    assert reply.calls == (ToolCall("a1", "look", '{"at": "x"}'),)
    sent = endpoint.requests[0]["tools"]
    assert sent == [
        {
            "type": "function",
            "function": {"name": "look", "description": LOOK.description, "parameters": LOOK.parameters},
        }
    ]
    said = ChatMessage("assistant", "", calls=reply.calls)
    models.chat(Role.RESEARCHER, request(said, ChatMessage("tool", "a cup", answers="a1")), "2")
    _, assistant, tool = endpoint.requests[1]["messages"]
    assert assistant["content"] is None and assistant["tool_calls"][0]["function"]["arguments"] == '{"at": "x"}'
    assert (tool["role"], tool["tool_call_id"], tool["content"]) == ("tool", "a1", "a cup")


def test_calls_are_stored_and_tell_requests_apart(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: choice([call("look", "{}", "a1")])
    first = models.chat(Role.RESEARCHER, request(), "1")
    again = models.chat(Role.RESEARCHER, request(), "1")
    assert again.stored and again.calls == first.calls and len(endpoint.requests) == 1
    said = ChatMessage("assistant", "", calls=first.calls)
    for result in ("one", "two"):
        models.chat(Role.RESEARCHER, request(said, ChatMessage("tool", result, answers="a1")), "1")
    assert len(endpoint.requests) == 3


def test_odd_calls_are_left_out_or_mended(endpoint: Any, models: Any) -> None:
    odd = [
        None,
        3,
        {"function": []},
        call("look", {"at": 1}, None),
        call("look", None),
        call("look", "{}"),
        call("look", "{}"),
    ]
    endpoint.say = lambda body: choice(odd)
    calls = models.chat(Role.RESEARCHER, request(), "1").calls
    assert [c.arguments for c in calls] == ['{"at": 1}', "{}", "{}", "{}"]
    assert len({c.id for c in calls}) == 4
    endpoint.say = lambda body: choice([call("look", "x" * 500_000)] + [call("look", "{}")] * 200)
    calls = models.chat(Role.RESEARCHER, request(), "2").calls
    assert len(calls) == 64 and max(len(c.arguments) for c in calls) <= 400_000
    for number, calls_given in enumerate(({"a": 1}, "text", [], None)):
        endpoint.say = lambda body, given=calls_given: choice(given)
        assert models.chat(Role.RESEARCHER, request(), f"3/{number}").kind is ReplyKind.EMPTY


def test_a_reply_that_was_cut_off_says_so(endpoint: Any, models: Any) -> None:
    endpoint.say = lambda body: choice([call("look", "{")], finish="length")
    assert models.chat(Role.RESEARCHER, request(), "1").kind is ReplyKind.TRUNCATED
