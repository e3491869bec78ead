"""Vectors by content: each text of a model is embedded once, and carries its share of the call that did it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

from harness.models.counting import count_tokens
from harness.models.identity import digest_of, utf8
from harness.models.interface import Embedded, Usage


@dataclass(frozen=True, slots=True)
class StoredVector:
    """One text's vector and its share of what the call came to; the shares of a call add up to it."""

    vector: bytes
    prompt_tokens: int
    dollars: float
    estimated: bool
    seconds: float


def places(model: str, texts: Sequence[str]) -> dict[str, str]:
    """Distinct texts by the digest that each is stored under, in order."""
    return {digest_of(model, {"embed": text}): text for text in map(utf8, texts)}


def sealed(vectors: Mapping[str, StoredVector]) -> str:
    """Digest over vectors and their costs, so that a changed one is seen."""
    parts = hashlib.sha256()
    for digest in sorted(vectors):
        v = vectors[digest]
        parts.update(f"{digest} {v.prompt_tokens} {float(v.dollars)} {float(v.seconds)} ".encode() + v.vector)
    return parts.hexdigest()


def shared_out(
    texts: Mapping[str, str], vectors: Sequence[bytes], usage: Usage, seconds: float
) -> dict[str, StoredVector]:
    """One call's vectors by digest; its cost is shared out by the texts' tokens as counted offline."""
    ends = list(accumulate(max(count_tokens(text), 1) for text in texts.values()))
    tokens = [usage.prompt_tokens * end // ends[-1] for end in ends]
    stored = {}
    for digest, vector, start, end, first, last in zip(
        texts, vectors, [0, *tokens], tokens, [0, *ends], ends, strict=False
    ):
        share = (last - first) / ends[-1]
        stored[digest] = StoredVector(vector, end - start, usage.dollars * share, usage.estimated, seconds * share)
    return stored


def gathered(model: str, texts: Sequence[str], stored: Mapping[str, StoredVector]) -> Embedded:
    """The vectors in the order of ``texts``, at their full price whenever they were bought, as one request."""
    used = [stored[digest] for digest in places(model, texts)]
    usage = Usage(
        requests=1,
        prompt_tokens=sum(one.prompt_tokens for one in used),
        dollars=sum(one.dollars for one in used),
        estimated=any(one.estimated for one in used),
    )
    vectors = tuple(stored[digest].vector for text in texts for digest in places(model, (text,)))
    return Embedded(vectors, usage, sum(one.seconds for one in used))
