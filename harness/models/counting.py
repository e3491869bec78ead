"""Counting tokens offline, for reservations and for endpoints that report no usage.

Counts are estimates: the vocabulary is o200k, whatever the model is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.models.interface import ChatRequest

PIECE = 100_000
"""Characters encoded at once; the library refuses very long texts. Cutting can only raise the count."""
SHORT = 1_000
"""Characters of a line whose count is kept, so that no text can make what is kept large."""
PER_MESSAGE = 8
"""Tokens of a chat template around one message, at most, in the templates in use."""
PER_IMAGE = 1_600
"""Reserved for an image: its tokens cannot be counted offline."""
AUDIO_TOKENS_PER_SECOND = 20
"""Reserved for a second of audio, and as many for what is said in it; models that count tokens report about 10."""
MARGIN = 1.25
"""Other vocabularies than o200k may need more tokens for the same text."""


@cache
def _encoding() -> Any:
    import bpe_openai  # loads its vocabularies when imported: half a second that most commands do not need

    return bpe_openai.get_encoding("o200k_base")


def count_tokens(text: str) -> int:
    """Tokens of ``text`` in the o200k vocabulary; special tokens are counted as plain text."""
    return sum(_remembered(line) if len(line) <= SHORT else _count(line) for line in _lines(text))


def _lines(text: str) -> Iterator[str]:
    """``text``, cut behind line ends where no token of the vocabulary reaches from one line into the next."""
    held = ""
    for line in text.splitlines(keepends=True) if "\n" in text else [text]:
        if held.endswith("\n") and not line[0].isspace() and line[0] != "/":
            yield held
            held = ""
        held += line
    yield held


def _count(text: str) -> int:
    return sum(len(_encoding().encode_ordinary(text[i : i + PIECE])) for i in range(0, len(text), PIECE))


_remembered = lru_cache(maxsize=16_384)(_count)
"""Passages come up again and again, for one question after another."""


def count_prompt(request: ChatRequest) -> int:
    """Estimated prompt tokens of a request, its schema and images included."""
    total = sum(count_tokens(m.content) + PER_MESSAGE + PER_IMAGE * len(m.images) for m in request.messages)
    total += sum(count_tokens(c.name + c.arguments) + PER_MESSAGE for m in request.messages for c in m.calls)
    total += sum(
        count_tokens(f"{t.name} {t.description} {json.dumps(t.parameters)}") + PER_MESSAGE for t in request.tools
    )
    return total + (count_tokens(json.dumps(request.schema)) if request.schema is not None else 0)


def worst_case(tokens: int) -> int:
    """What is reserved for an offline count of ``tokens``."""
    return math.ceil(MARGIN * tokens) + 2 * PER_MESSAGE
