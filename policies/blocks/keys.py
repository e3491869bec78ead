"""Multi-key episodic memory: four keys per window, matched by the best of them.

The source gives the keys and that a clip's relevance is the largest cosine over its keys. Not given: the embedding
model, how keys are made without a builder, and what to do without an embedder (here: the largest BM25 over the keys).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from policies.blocks.bm25 import bm25
from policies.blocks.extract import Line, read_line
from policies.blocks.lexicon import HANDLING
from policies.blocks.memory import Memory, spoken, window_text
from policies.blocks.postings import Floats, Postings
from policies.blocks.tokens import function_word, normal, terms, words
from policies.blocks.vectors import Vectors, decode
from policies.contract import Asking, Embed, EmbedReply, NoModel, Window

KEYS = ("EVENT_ACTION", "DIALOGUE_MENTION", "OBJECT", "SUMMARY")
"""The four keys (given)."""
SUMMARY_TERMS = 12
"""Terms of a summary by rule. Not given by the source: about a headline."""
KEY_CHARS = 2_000
"""Characters of a key that are embedded. Not given by the source: more than a small model reads (256 tokens)."""
BATCH = 32
"""Texts in one Embed request. Not given by the source: what common embedding servers take at once."""
_CACHED_LINES = 32_768


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one window, in the order of ``KEYS``; an empty one is absent and never matches."""

    event: str
    dialogue: str
    objects: str
    summary: str

    @property
    def texts(self) -> tuple[str, str, str, str]:
        """All four."""
        return self.event, self.dialogue, self.objects, self.summary


class KeyMemory(Memory):
    """Raw memory and, for window i, its keys: an index of terms for each key, and vectors where they were embedded."""

    def __init__(self) -> None:
        super().__init__()
        self.keys: list[Keys] = []
        self.bare: list[int] = []
        """Positions without vectors, in order of time."""
        self.embedder = True
        """Whether there may be an embedding model; False once a request was refused for want of one."""
        self._indexes = tuple(Postings() for _ in KEYS)
        self._chunks: list[tuple[Vectors, list[int]]] = []
        self._read = lru_cache(maxsize=_CACHED_LINES)(read_line)

    def observe(self, windows: Sequence[Window], keys: Sequence[Keys | None] = ()) -> None:
        """Take in the next windows; ``keys`` are a builder's, one for each, made by rule where there is none."""
        super().observe(windows)
        for at, window in enumerate(windows):
            made = (keys[at] if keys else None) or rule_keys(window, [self._read(line) for line in window.captions])
            self.bare.append(len(self.keys))
            self.keys.append(made)
            for index, text in zip(self._indexes, made.texts, strict=True):
                index.add(Counter(terms(text)))

    def embed(self, positions: Sequence[int]) -> Asking:
        """Embed the keys of the windows at ``positions``, in requests of ``BATCH`` texts.

        A request that is refused leaves its windows, and those that share a window with it, without vectors.
        """
        texts = [(at, text[:KEY_CHARS]) for at in positions for text in self.keys[at].texts if text.strip()]
        batches = [texts[first : first + BATCH] for first in range(0, len(texts), BATCH)]
        if not batches or not self.embedder:
            return
        replies = yield [Embed(tuple(text for _, text in batch)) for batch in batches]
        self.embedder = not any(isinstance(reply, NoModel) for reply in replies)
        pairs = list(zip(batches, replies, strict=True))
        failed = {at for batch, reply in pairs if not isinstance(reply, EmbedReply) for at, _ in batch}
        for batch, reply in pairs:
            if isinstance(reply, EmbedReply):
                kept = [row for row, (at, _) in enumerate(batch) if at not in failed]
                self._chunks.append((_unit(decode(reply))[kept], [batch[row][0] for row in kept]))
        done = {at for at, _ in texts} - failed
        self.bare = [at for at in self.bare if at not in done]

    def cosine(self, query: Vectors) -> Floats:
        """Largest cosine of ``query`` (d,) over each window's keys, shape (n,); -inf for a window without vectors."""
        scores = np.full(len(self), -np.inf)
        unit = _unit(query[None])[0]
        for vectors, owners in self._chunks:
            np.maximum.at(scores, owners, vectors @ unit)
        return scores

    def lexical(self, text: str) -> Floats:
        """Largest BM25 of ``text`` over each window's keys, shape (n,)."""
        asked = terms(text)
        return np.asarray(np.max([bm25(index, asked) for index in self._indexes], axis=0))


def rule_keys(window: Window, lines: Sequence[Line]) -> Keys:
    """Keys of a window without a builder, from its captions as ``read_line`` analyses them."""
    quoted = (f"{line.speaker}: {said}" if line.speaker else said for line in lines for said in line.speech)
    counted = Counter(term for term in terms(window_text(window)) if not function_word(term))
    return Keys(
        event=_joined(line.event for line in lines),
        dialogue=_joined((*spoken(window), *quoted)),
        objects=_joined((thing for line in lines for thing in _handled(line)), ", "),
        summary=" ".join(term for term, _ in counted.most_common(SUMMARY_TERMS)),
    )


def _handled(line: Line) -> Iterator[str]:
    """Each object after the verb of handling that stands before it and says what becomes of it ("put mug")."""
    text = line.event.casefold()
    for thing in line.objects:
        before = words(text[: max(text.find(thing), 0)])
        verb = next((base for word in reversed(before) if (base := normal(word)) in HANDLING), "")
        yield f"{verb} {thing}".strip()


def _joined(texts: Iterable[str], separator: str = " ") -> str:
    return separator.join(dict.fromkeys(" ".join(text.split()) for text in texts if text.strip()))


def _unit(vectors: Vectors) -> Vectors:
    """Rows of ``vectors`` (m, d) at length 1; a zero row stays."""
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0))
