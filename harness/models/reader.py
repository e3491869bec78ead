"""The offline stand-in for the answer model: a deterministic lexical reader.

It serves ``Read`` where no model is configured, and is never reported as a language-model result. Its rule: the
choice whose best passage has the most evidence for question and choice together wins. Passages weigh terms as BM25
does, with two additions that a context of a few thousand words makes necessary: rarity is measured against an
assumed background as well as within the context (everything in a retrieved context mentions the question, which
makes the question's words look common there and chance words look rare), and function words count for little.

The letters and the order of the choices carry no weight: equal scores are settled by a digest of question and
choice text. So with an empty context, or one that mentions no choice, the answer is a fair draw and a policy that
shows nothing is at chance. The context is only ever split and counted, never formatted or executed.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Mapping
from functools import lru_cache

from policies.blocks.tokens import function_word, terms
from policies.contract import Read, ReadReply

K1 = 1.5
B = 0.75
BACKGROUND = 5_000
"""Passages of the assumed background. Not given by the source: the order of a few days in windows of 30 s."""
FUNCTION_WEIGHT = 0.3
"""Weight of a function word or question word. Not given by the source: enough for a choice such as "Me" to count."""
LONG_BLOCK = 2_000
"""Characters beyond which a block without blank lines is read line by line: it holds several records."""
LONGEST_CONTEXT = 200_000
"""Characters that are read at most; budgets are far below."""
CACHED_PASSAGES = 4_096
"""Counted passages kept, since the same windows come up for many questions. Only such as are no longer than
``LONG_BLOCK``, so that no candidate can make the cache large."""


class LexicalReader:
    """Serves ``Read`` without a model; same request, same reply, in every process. Thread-safe."""

    name = "offline lexical reader"

    def __init__(self) -> None:
        self._counted = lru_cache(maxsize=CACHED_PASSAGES)(_count)

    def read(self, request: Read) -> ReadReply:
        """The best supported choice; None only where the request has no choices."""
        if not request.choices:
            return ReadReply(None, "")
        passages = [
            self._counted(text) if len(text) <= LONG_BLOCK else _count(text)
            for text in _passages(request.context[:LONGEST_CONTEXT])
        ]
        scores = _scores(request.question, request.choices, passages)
        best = max(
            request.choices,
            key=lambda letter: (round(scores[letter], 9), _digest(request.question, request.choices[letter])),
        )
        return ReadReply(best, best)


def _passages(context: str) -> list[str]:
    """Blocks between blank lines, long ones cut into lines; lines where there is no blank line at all."""
    blocks = [block.strip() for block in context.replace("\r\n", "\n").split("\n\n")]
    cut = len(blocks) == 1
    passages: list[str] = []
    for block in blocks:
        passages += block.split("\n") if cut or len(block) > LONG_BLOCK else [block]
    return [passage for passage in passages if passage.strip()]


def _count(passage: str) -> tuple[Counter[str], int]:
    counts = Counter(terms(passage))
    return counts, sum(counts.values())


def _scores(question: str, choices: Mapping[str, str], passages: list[tuple[Counter[str], int]]) -> dict[str, float]:
    """Score of each choice: its best passage for question and choice; 0 where no passage mentions the choice."""
    mean = sum(length for _, length in passages) / len(passages) if passages else 1.0
    norms = [K1 * (1 - B + B * length / max(mean, 1.0)) for _, length in passages]
    weights: dict[str, float] = {}

    def weight(term: str) -> float:
        if term not in weights:
            holding = sum(term in counts for counts, _ in passages)
            rarity = math.log(1 + (BACKGROUND + len(passages) - holding + 0.5) / (holding + 0.5))
            weights[term] = rarity * (FUNCTION_WEIGHT if function_word(term) else 1.0)
        return weights[term]

    def evidence(text: str) -> list[float]:
        wanted = terms(text)
        return [
            sum(weight(term) * counts[term] / (counts[term] + norm) for term in wanted if term in counts)
            for (counts, _), norm in zip(passages, norms, strict=True)
        ]

    asked = evidence(question)
    return {
        letter: max((own + ask for own, ask in zip(evidence(choice), asked, strict=True) if own > 0), default=0.0)
        for letter, choice in choices.items()
    }


def _digest(question: str, choice: str) -> bytes:
    return hashlib.sha256(f"{question}\0{choice}".encode(errors="surrogatepass")).digest()
