"""The analyst: one call that says what an attempt teaches. Its reply becomes a note for authors and nothing else.

What the candidate's author wrote reaches the model as data between fences that do not occur in it; of the reply two
short sentences are kept, after what the harness itself says of the attempt. Where there is no model, or no such reply,
the lesson is the one made by rule.
"""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.agents.prompts import render
from harness.display import visible
from harness.gate.fence import fence
from harness.models.interface import CapReached, ChatMessage, ChatRequest, ModelError, Models, Role
from harness.models.structured import Unparseable, parse_json
from meta_memory.lessons import lesson_by_rule, what_happened
from meta_memory.records import Attempt
from meta_memory.view import scan, view

REPLY_TOKENS = 300
"""Two sentences in a JSON object; not given by the source."""
SENTENCE_CHARS = 240
"""What is kept of each of the two; not given by the source."""
DIFFERENCE_CHARS = 6_000
"""What is shown of the change: about 2,000 tokens, so that a context of 8,192 holds the request."""
TOLD_CHARS = 600
"""What is shown of each thing that the author said."""
SCHEMA = {
    "type": "object",
    "properties": {"why": {"type": "string"}, "advice": {"type": "string"}},
    "required": ["why", "advice"],
    "additionalProperties": False,
}


class Reply(BaseModel):
    """What the model answers, exactly these keys."""

    model_config = ConfigDict(extra="forbid", strict=True)

    why: str
    advice: str


@dataclass(frozen=True, slots=True)
class Lesson:
    """A lesson and who drew it."""

    text: str
    by: str = "rules"
    failure: str = ""
    """Why the analyst's model gave none, one line; empty where none was asked or it did."""


def distil(attempt: Attempt, difference: str, models: Models, seed: int, scope: str) -> Lesson:
    """The lesson of an attempt. Never raises for anything that the model or its endpoint does.

    ``attempt`` is complete but for its lesson; ``difference`` is what the candidate changed of its parent's text.
    ``seed`` draws the fence; ``scope`` names the call in the reply store.
    """
    if not models.has(Role.ANALYST):
        return Lesson(lesson_by_rule(attempt))
    request = ChatRequest((ChatMessage("user", prompt(attempt, difference, seed)),), REPLY_TOKENS, 0.0, schema=SCHEMA)
    try:
        said = Reply.model_validate(parse_json(models.chat(Role.ANALYST, request, scope)))
        told = " ".join(filter(None, map(_sentence, (said.why, said.advice))))
        if not told:
            raise Unparseable("the reply says nothing")
    except ValidationError:
        return Lesson(lesson_by_rule(attempt), failure="the reply is not the object asked for")
    except (Unparseable, ModelError, CapReached) as error:
        return Lesson(lesson_by_rule(attempt), failure=visible(" ".join(str(error).split()), 200))
    return Lesson(scan(f"{what_happened(attempt)} {told}", attempt), by=models.describe(Role.ANALYST))


def prompt(attempt: Attempt, difference: str, seed: int) -> str:
    """What the analyst is shown: development facts as any agent may see them, and no time that was measured, so that
    a run which is gone through again asks the same."""
    seen = view(attempt)
    expected = "\n".join(f"expected {name}: {text[:TOLD_CHARS]}" for name, text in attempt.expected.items())
    told = f"{seen.title}\n{seen.hypothesis[:TOLD_CHARS]}\nwhy: {attempt.why[:TOLD_CHARS]}\n{expected}"
    told, noted = visible(told, keep_lines=True), visible(lesson_by_rule(attempt))
    shown = visible(difference, DIFFERENCE_CHARS, keep_lines=True) or "nothing"
    return render(
        "analyst_v1",
        outcome="promoted" if seen.outcome == "promoted" else f"rejected at {seen.outcome}",
        rules=", ".join(attempt.rules),
        noted=noted,
        told=told,
        difference=shown,
        fence=fence(f"{told}\n{noted}\n{shown}", seed),
    )


def _sentence(text: str) -> str:
    """One line of plain text, ended."""
    line = visible(" ".join(text.split()), SENTENCE_CHARS)[:SENTENCE_CHARS]
    return line if not line or line[-1] in ".!?" else f"{line}."
