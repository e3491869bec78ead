"""From a model's reply to hypothesis and code: bounded, tolerant of form, strict about what is adopted."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import json_repair

from harness.agents.interface import Hypothesis

REPLY_CHARS = 200_000
"""Longer replies are not looked at."""
FIELD_CHARS = 600
"""What is kept of one line of the hypothesis."""

FENCE = re.compile(r"^[ \t]*(```+|~~~+)([^\n`]*)$", re.MULTILINE)
LABEL = re.compile(
    r"^[ \t>*#_-]*(title|what|why|accuracy|tokens|latency|rule)[\s*_]*:[\s*_]*(.*)$", re.IGNORECASE | re.MULTILINE
)
PATCH = re.compile(r"^(diff --git |--- |\+\+\+ |@@ -|<{7} |>{7} |\*\*\* Begin Patch)", re.MULTILINE)
FIELDS: Mapping[str, str] = {
    "title": "title",
    "what": "what",
    "why": "why",
    "accuracy": "expected_accuracy",
    "tokens": "expected_tokens",
    "latency": "expected_latency",
    "rule": "rule_at_risk",
}
STATED = frozenset(FIELDS.values()) - {"title", "what"}
"""What an author may add to an idea that the task named."""


class ReplyError(ValueError):
    """The reply cannot be used; one line that tells the author what to do."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply taken apart."""

    hypothesis: Hypothesis
    code: str


def parse_reply(text: str, given: Hypothesis | None = None) -> Reply:
    """Hypothesis and the one code block of a reply. Raises ReplyError.

    ``given`` is the idea that the task itself named: it stands where the author states none.
    """
    check_text(text)
    blocks = code_blocks(text)
    code = _one_block(blocks)
    before = text.split(blocks[0][2], 1)[0] if blocks[0][2] else text
    prose = before + text.rsplit(code, 1)[-1] if given and code in text else before or text
    return Reply(parse_hypothesis(prose, given), code)


def check_text(text: str) -> None:
    """Size and characters, before anything is matched against the reply. Raises ReplyError."""
    if len(text) > REPLY_CHARS:
        raise ReplyError(f"the reply has {len(text)} characters; at most {REPLY_CHARS} are read")
    for at, char in enumerate(text):
        if (char < " " and char not in "\n\t\r") or "\ud800" <= char <= "\udfff":
            offset = len(text[:at].encode("utf-8", "surrogatepass"))
            raise ReplyError(f"character U+{ord(char):04X} at byte {offset}; reply with plain text")


def code_blocks(text: str) -> list[tuple[str, str, str]]:
    """(language or path after the fence, code, the opening line as it stands) of each fenced block.

    Raises ReplyError for a block that is not closed: what was cut off is never adopted.
    """
    found = []
    fences = list(FENCE.finditer(text))
    at = 0
    while at < len(fences):
        opening = fences[at]
        closing = next(
            (i for i in range(at + 1, len(fences)) if fences[i][1][:3] == opening[1][:3] and not fences[i][2].strip()),
            None,
        )
        if closing is None:
            raise ReplyError("the code block is not closed; reply with all of it, shorter if need be")
        found.append((opening[2].strip(), text[opening.end() + 1 : fences[closing].start()], opening[0]))
        at = closing + 1
    return found


def _one_block(blocks: list[tuple[str, str, str]]) -> str:
    code = [(info, body) for info, body, _ in blocks if not info.casefold().startswith("json")]
    if not code:
        raise ReplyError("no code block; put the code between ```python and ```")
    distinct = {body.strip() for _, body in code}
    if len(distinct) > 1:
        raise ReplyError(f"{len(distinct)} different code blocks; reply with one")
    info, body = code[0]
    for word in re.findall(r"[^\s:=]+", info):
        if "/" in word or "\\" in word or (word.endswith((".py", ".json")) and word != "policy.py"):
            raise ReplyError(f"a path after the fence ({ascii(word)[1:60]}); the code goes to policy.py")
    if PATCH.search(body):
        raise ReplyError("the code block is a patch; reply with the code itself")
    if not body.strip():
        raise ReplyError("the code block is empty")
    return body.replace("\r\n", "\n")


def parse_hypothesis(text: str, given: Hypothesis | None = None) -> Hypothesis:
    """The hypothesis from labelled lines or from a JSON object.

    Where title or change is missing it is the one ``given``, with the reason and the effects that the author states;
    raises ReplyError where none is given.
    """
    fields = _labelled(text) or _json(text)
    kept = {FIELDS[key]: " ".join(value.split())[:FIELD_CHARS] for key, value in fields.items() if key in FIELDS}
    missing = [name.upper() for name in ("title", "what") if not kept.get(name)]
    if missing and given is not None:
        return given.model_copy(update={name: said for name, said in kept.items() if name in STATED and said})
    if missing:
        raise ReplyError(f"the hypothesis lacks {' and '.join(missing)}; begin with the lines TITLE:, WHAT:, WHY:")
    kept["title"] = kept["title"][:80]
    kept.setdefault("why", "")
    return Hypothesis(**kept)


def _labelled(text: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    for match in LABEL.finditer(text):
        fields.setdefault(match[1].lower(), match[2].strip().strip("*_").strip())
    return fields


def _json(text: str) -> dict[str, str]:
    start, end = text.find("{"), text.rfind("}")
    if start < 0 or end < start or end - start > 8_000:
        return {}
    try:
        value = json_repair.loads(text[start : end + 1])
    except (ValueError, RecursionError):
        return {}
    if not isinstance(value, dict):
        return {}
    return {str(key).lower(): item if isinstance(item, str) else json.dumps(item) for key, item in value.items()}
