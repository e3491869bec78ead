"""A JSON value out of a model's reply. Whether it is the value that was asked for is the caller's to check."""

from __future__ import annotations

import json
import math
import re
from typing import Any

import json_repair

from harness.display import visible
from harness.models.interface import ChatReply, ReplyKind

REPAIR_CHARS = 8_000
"""Longer texts are not repaired: no request asks for so long a value, and a third party's parser is kept on small
input. Not given."""


class Unparseable(ValueError):
    """The reply holds no JSON value. One line that may go back to the model."""


def parse_json(reply: ChatReply | str, lenient: bool = True) -> Any:
    """The reply's JSON value; its numbers are finite.

    Args:
        reply: a reply, or its text.
        lenient: also take JSON out of surrounding prose and mend its syntax. Not for verdicts: there, the whole reply
            must be the value (in a code fence or not).

    Raises:
        Unparseable: refused, empty or cut off; or no JSON.
    """
    if isinstance(reply, ChatReply):
        if reply.kind is not ReplyKind.OK:
            raise Unparseable(
                f"the reply was {reply.kind.value} (finish reason {visible(reply.finish_reason, 40) or 'none'})"
            )
        reply = reply.text
    text = _unfenced(reply)
    try:
        return _loads(text)
    except ValueError:
        if not lenient:
            raise Unparseable("the reply is not JSON alone") from None
        return _dig_out(text)


def _unfenced(text: str) -> str:
    """What stands in a code fence that is all of the text."""
    first, _, rest = text.strip().partition("\n")
    language = first.removeprefix("```").strip()
    fenced = first.startswith("```") and rest.endswith("```") and (not language or language.isalnum())
    return rest.removesuffix("```") if fenced else text


def _loads(text: str) -> Any:
    """Strict JSON with finite numbers. Raises ValueError."""

    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is no JSON number")

    def finite(digits: str) -> float:
        return number if math.isfinite(number := float(digits)) else refuse(digits)

    try:
        return json.loads(text, parse_constant=refuse, parse_float=finite)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _dig_out(text: str) -> Any:
    """The object or list that the first bracket of ``text`` opens, mended where it is broken."""
    first = re.search(r"[{\[]", text)
    if first is None:
        raise Unparseable("the reply holds no JSON")
    try:
        value = json.JSONDecoder().raw_decode(text, first.start())[0]
    except (ValueError, RecursionError):
        if len(text) > REPAIR_CHARS:
            raise Unparseable(
                f"the reply holds no JSON and, with {len(text)} characters, is too long to mend"
            ) from None
        try:
            value = json_repair.loads(text[first.start() :])
        except Exception as error:  # a third party's parser over hostile text: whatever it raises, there is no value
            raise Unparseable(f"the reply holds no JSON that can be mended ({type(error).__name__})") from None
    try:
        return _loads(json.dumps(value))
    except (ValueError, TypeError, RecursionError):
        raise Unparseable("the reply holds no JSON") from None
