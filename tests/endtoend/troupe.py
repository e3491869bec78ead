"""A capable model with tools in every role, over HTTP: it acts as the scene says, and refuses a prompt that lacks what
its role must be shown."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from policies import library
from principles.h0 import load_h0
from tests.agents.player import Player, called
from tests.endpoint import Endpoint

H0 = load_h0()
V00 = library.load("v00")["policy.py"].decode()
IDEA = {
    "title": "BM25 windows", "what": "chooses windows by BM25", "why": "they hold the answer",
    "accuracy": "+8 points", "tokens": "half", "latency": "same", "rule": "R05",
}  # fmt: skip
WANTED = {"rule": "R01", "path": "policy.py", "line": 8, "what": "choose three windows more, as many as were announced"}
PRIVATE = "between you and me, nobody reviews this conversation"
"""What the implementer says while it works: the reviewer is never shown it."""
TOOLS = {
    "researcher": {"list", "read", "trace", "compare", "recall", "propose"},
    "implementer": {"list", "read", "trace", "compare", "edit", "write", "run", "submit"},
}
AUTHOR = (H0.principles.strip(), "The contract. policy.py defines class Policy", "Rules: no files, network")
STATED = (IDEA["title"], IDEA["what"], IDEA["why"])
NEEDED: Mapping[str, Sequence[str]] = {
    "researcher": (*AUTHOR, H0.wiki.strip()[:400], "The frontier", "0000 starting policy v00", "development questions"),
    "implementer": (*AUTHOR, *STATED, IDEA["accuracy"], "development split"),
    "reviser": (*AUTHOR, *STATED, "1. R01 policy.py, line 8: ", WANTED["what"]),
    "mender": (*AUTHOR, *STATED, "1. K01 policy.py: CRASH on 2 of 2: ZeroDivisionError"),
    "reviewer": (
        *STATED, IDEA["rule"], H0.constitution_text.strip(), "static: approve", "   1 ",
        "+from policies.blocks.bm25 import", "R01: The code does what the hypothesis says.",
    ),
    "first look": ("smoke: approve", "dynamic: approve"),
    "look at what was mended": ("smoke: revise", "K01", "smoke-1: approve", "dynamic-1: approve"),
    "second look": ("reviewer: revise", "1. R01 policy.py:8 ", WANTED["what"], "smoke-1: approve", "dynamic-1: app"),
}  # fmt: skip


def policy(count: int) -> str:
    """V0 with the best ``count`` windows by BM25 in place of evenly spread ones."""
    text = V00.replace(
        "for at in uniform(size, max(count, 1))), limit)", "for at in _best(self.memory, query)), limit)"
    )
    text = text.replace(
        "from policies.blocks.select import uniform",
        "from policies.blocks.bm25 import bm25_question\nfrom policies.blocks.select import top, uniform",
    )
    return text + f"\n\ndef _best(memory, query):\n    return top(bm25_question(memory, query), {count})\n"


def handing_in(count: int, adding: str = "") -> list[Any]:
    """The implementer writes a whole file and hands it in, and says what the reviewer must not see."""
    text = policy(count) + adding
    return [called([("write", {"path": "policy.py", "content": text})], PRIVATE), [("submit", {})]]


@dataclass
class Scene:
    """What each role does in one iteration; the last turn of a script is played for ever."""

    implementer: Sequence[Any]
    researcher: Sequence[Any] = ([("propose", IDEA)],)
    reviser: Sequence[Any] = ("nothing to change",)
    mender: Sequence[Any] = ("nothing to mend",)
    reviews: Sequence[Mapping[str, Any]] = ({"verdict": "approve"},)
    """Replies of the reviewer, look by look."""
    storm: list[dict[str, Any]] = field(default_factory=list)
    """Answers that come before the first reply."""
    window: int = 10**9
    """Characters of a request; a longer one does not fit the model."""


class Troupe:
    """Plays the scene that is set. ``lacking`` tells what prompts lacked: it stays empty, or the test fails."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint, self.scene = endpoint, Scene(())
        self.lacking: list[str] = []
        self.paid: dict[str, int] = {}
        """Tokens of the replies that were sent, by role."""
        self.results: list[str] = []
        endpoint.say = self.say

    def say(self, body: dict[str, Any]) -> Any:
        opening = str(body["messages"][0]["content"])
        part = self.part(body["model"], opening)
        if problem := self.lacks(part, body, opening):
            self.lacking.append(f"{part}: {problem}")
            return refusal(f"the prompt of the {part} lacks {problem}")
        if self.scene.storm:
            return self.scene.storm.pop(0)
        if len(json.dumps(body)) > self.scene.window:
            return refusal("maximum context length exceeded", "context_length_exceeded")
        usage = {"prompt_tokens": len(json.dumps(body)) // 5, "completion_tokens": 20}
        self.paid[body["model"]] = self.paid.get(body["model"], 0) + sum(usage.values())
        reply = self.reply(part, body, opening)
        choice = reply if isinstance(reply, dict) else {"finish_reason": "stop", "message": {"content": reply}}
        return {**choice, "message": dict(choice["message"]), "usage": usage}

    def part(self, model: str, opening: str) -> str:
        if model == "implementer" and "changes are asked for" in opening:
            return "mender" if "K01" in opening else "reviser"
        if model != "reviewer":
            return model
        if "This is a second look" in opening:
            return "second look"
        return "look at what was mended" if "smoke: revise" in opening else "first look"

    def lacks(self, part: str, body: dict[str, Any], opening: str) -> str:
        """What the role must be shown and is not, or must not be shown and is."""
        needed = [*NEEDED[part], *(NEEDED["reviewer"] if body["model"] == "reviewer" else ())]
        if missing := [text for text in needed if text not in opening]:
            return repr(missing[0])
        if body["model"] == "reviewer":
            if PRIVATE in opening or body.get("tools") or len(body["messages"]) != 1:
                return "a conversation of its own"
            shape = body["response_format"]["json_schema"]["schema"]["properties"]
            return "" if ("made" in shape) == (part == "second look") else "whether the changes were made"
        offered = {tool["function"]["name"] for tool in body.get("tools", ())}
        offered = offered or set(re.findall(r"^- (\w+)\(", opening, re.MULTILINE))  # the text protocol
        return "" if offered == TOOLS[body["model"]] else f"the tools {TOOLS[body['model']] ^ offered}"

    def reply(self, part: str, body: dict[str, Any], opening: str) -> Any:
        if body["model"] == "reviewer":
            nonce = re.search(r'"nonce": "([0-9a-f]{24})"', opening)
            assert nonce is not None
            plain = {"nonce": nonce[1], "reason": "as it is", "places": [], "rules": []}
            return json.dumps({**plain, **self.scene.reviews[part == "second look"]})
        scripts = {
            "researcher": self.scene.researcher,
            "implementer": self.scene.implementer,
            "reviser": self.scene.reviser,
            "mender": self.scene.mender,
        }
        player = Player(scripts)
        answer = player({**body, "model": part})
        self.results += player.results[part][-8:]
        return answer


def refusal(message: str, code: str = "refused") -> dict[str, Any]:
    """Status 400."""
    return {"status": 400, "body": {"error": {"message": message, "type": "invalid_request_error", "code": code}}}
