"""One role's conversation: a model calls tools until it has handed something in, or a limit ends it.

Every call is a function of what came before it, and is stored under its step: a run that was killed goes through the
same steps again and pays for none of them. What a limit counts is stored with the replies for the same reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

from harness.agents.model import TEMPERATURE
from harness.agents.prompts import render
from harness.agents.text_protocol import ProtocolError, read_calls
from harness.agents.tools import Box, ToolError
from harness.models.counting import count_prompt, worst_case
from harness.models.interface import (
    ChatMessage,
    ChatReply,
    ChatRequest,
    Models,
    ReplyKind,
    RequestRefused,
    Role,
    ToolCall,
    Usage,
)

AT_ONCE = 8
"""Calls of one reply that are served. Not given by the source."""
PATIENCE = 3
"""Replies in a row without a usable call that end the conversation. Not given by the source."""
SHRINKS = 3
"""Times that a refused request is sent again with half of its history. Not given by the source."""
LEFT_OUT = "(left out: the conversation has grown too long; call the tool again where it is needed)"


@dataclass(frozen=True, slots=True)
class Limits:
    """What one conversation may take; what is reached first ends it."""

    steps: int
    """Replies of the model."""
    tokens: int
    """Prompt and completion tokens of all its calls, the next one's worst case included."""
    seconds: float
    """Inside its calls."""
    dollars: float
    window: int
    """Tokens of one request and its reply."""
    reply: int
    """Tokens of one reply."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a conversation ended."""

    reason: str
    """One line; ``done`` where the role handed in what it was asked for."""
    steps: int
    usage: Usage
    last: str
    """The model's last reply, for the record of a conversation that came to nothing."""


@dataclass(slots=True)
class Conversation:
    """The state of one conversation; ``native`` while calls go through the endpoint's tool interface."""

    models: Models
    role: Role
    scope: str
    opening: str
    box: Box
    limits: Limits
    seed: int
    native: bool
    done: Callable[[], bool]
    """Whether the role has handed in its last word."""

    def hold(self) -> Ended:
        """Talk until done or a limit. Raises ModelError and CapReached, which say nothing about the author."""
        messages = self._begin()
        usage, seconds, window, last = Usage(), 0.0, self.limits.window, ""
        bad = refused = 0
        for step in range(self.limits.steps):
            request = self._request(messages, window, step)
            if request is None:
                return Ended("the conversation no longer fits the model's window", step, usage, last)
            if reached := self._reached(request, usage, seconds):
                return Ended(reached, step, usage, last)
            try:
                reply = self.models.chat(self.role, request, f"{self.scope}/{step}")
            except RequestRefused as refusal:
                refused += 1
                if self.native and not last:
                    self.native = False  # an endpoint without tools refuses the first request
                    messages = self._begin()
                elif refused > SHRINKS:
                    return Ended(f"the endpoint refused the request: {refusal}", step + 1, usage, last)
                else:
                    window = count_prompt(request) // 2 + self.limits.reply
                continue
            usage, seconds, last = usage + reply.usage, seconds + reply.seconds, reply.text or last or "(calls)"
            more, usable = self._answer(reply)
            messages += more
            bad = 0 if usable else bad + 1
            if self.done():
                return Ended("done", step + 1, usage, last)
            if bad >= PATIENCE:
                return Ended(f"{PATIENCE} replies in a row without a usable call", step + 1, usage, last)
        return Ended(f"the limit of {self.limits.steps} steps", self.limits.steps, usage, last)

    # ------------------------------------------------------------ requests

    def _begin(self) -> list[ChatMessage]:
        how = "" if self.native else "\n\n" + render("text_protocol_v1", tools=self.box.tools)
        return [ChatMessage("user", self.opening + how)]

    def _request(self, messages: list[ChatMessage], window: int, step: int) -> ChatRequest | None:
        """The next request within ``window``: the oldest results, then the oldest calls, are left out first."""
        tools = self.box.tools if self.native else ()
        kept = list(messages)
        room = window - self.limits.reply - count_prompt(ChatRequest((), 0, tools=tools)) - sum(map(_size, kept))
        for at in range(1, len(kept)):
            if room >= 0:
                break
            room += _size(kept[at])
            kept[at] = _shortened(kept[at])
            room -= _size(kept[at])
        if room < 0:
            return None
        seed = (self.seed + step) % 2**31
        return ChatRequest(tuple(kept), self.limits.reply, TEMPERATURE, seed=seed, tools=tools)

    def _reached(self, request: ChatRequest, usage: Usage, seconds: float) -> str:
        """The limit that the next call could pass, or empty."""
        spent = usage.prompt_tokens + usage.completion_tokens
        if spent + worst_case(count_prompt(request)) + request.max_tokens > self.limits.tokens:
            return f"the limit of {self.limits.tokens} tokens"
        if seconds >= self.limits.seconds:
            return f"the limit of {self.limits.seconds:.0f} seconds"
        if usage.dollars and usage.dollars >= self.limits.dollars:
            return f"the limit of {self.limits.dollars:g} dollars"
        return ""

    # ------------------------------------------------------------ replies

    def _answer(self, reply: ChatReply) -> tuple[list[ChatMessage], bool]:
        """What is added to the conversation, and whether the reply held a call that could be served."""
        if reply.kind is not ReplyKind.OK:
            return self._again(reply, f"the reply is {reply.kind.value}; nothing of it was done")
        if reply.calls:
            said = ChatMessage("assistant", reply.text, calls=reply.calls)
            results = [self._serve_native(call, number) for number, call in enumerate(reply.calls)]
            return [said, *(m for m, _ in results)], any(good for _, good in results)
        try:
            calls = read_calls(reply.text)
        except ProtocolError as error:
            return self._again(reply, str(error))
        if not calls:
            return self._again(reply, f"no tool is called; call one of {', '.join(t.name for t in self.box.tools)}")
        results = []
        parts: list[str] = []
        usable = False
        for number, call in enumerate(calls):
            text, good = self._serve(call.name, call.arguments, number)
            usable |= good
            parts.append(f"<result {call.name}>\n{text}\n</result>")
        return [ChatMessage("assistant", reply.text), ChatMessage("user", "\n".join(parts))], usable

    def _serve_native(self, call: ToolCall, number: int) -> tuple[ChatMessage, bool]:
        try:
            arguments = json.loads(call.arguments or "{}")
        except (ValueError, RecursionError):
            return ChatMessage("tool", "error: the arguments are not JSON", answers=call.id), False
        if not isinstance(arguments, dict):
            return ChatMessage("tool", "error: the arguments are not a JSON object", answers=call.id), False
        text, good = self._serve(call.name, arguments, number)
        return ChatMessage("tool", text, answers=call.id), good

    def _serve(self, name: str, arguments: dict[str, object], number: int) -> tuple[str, bool]:
        if number >= AT_ONCE:
            return f"error: not done; at most {AT_ONCE} calls in one reply", False
        if self.done():
            return "error: not done; the work is handed in", False
        try:
            return self.box.call(name, arguments), True
        except ToolError as error:
            return f"error: {error}", False

    def _again(self, reply: ChatReply, error: str) -> tuple[list[ChatMessage], bool]:
        said = ChatMessage("assistant", reply.text[:3_000] or "(nothing)")
        return [said, ChatMessage("user", f"error: {error}")], False


@lru_cache(maxsize=1_024)
def _size(message: ChatMessage) -> int:
    """Tokens of one message, estimated."""
    return count_prompt(ChatRequest((message,), 0))


def _shortened(message: ChatMessage) -> ChatMessage:
    """A message of the past without what is long in it; which call a result answers stays."""
    calls = tuple(replace(c, arguments="{}") if len(c.arguments) > len(LEFT_OUT) else c for c in message.calls)
    content = LEFT_OUT if len(message.content) > len(LEFT_OUT) else message.content
    return replace(message, content=content, calls=calls)
