"""MERIT: four keys per clip, matched by the best of them; a solver that searches in rounds; neighbours filtered.

Stage 1 gives every window four keys and embeds them. Stage 2, round by round: the solver regenerates a query, the
clips whose best key is nearest to it are retrieved with the windows around them, and a filter keeps the useful lines.
Numbers of clips, rounds and neighbours, the prompts and the stop rule are not given by the source.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policies.blocks.filtering import Passage, asking, attach, keep_useful
from policies.blocks.formats import SEPARATOR, asked_at, fit, joined
from policies.blocks.keys import KEYS, KeyMemory
from policies.blocks.postings import Floats
from policies.blocks.reading import read
from policies.blocks.rewrite import FOUR_KEYS, Rewriter, closed
from policies.blocks.timefmt import stamp
from policies.blocks.vectors import decode
from policies.contract import (
    Asking,
    Budget,
    Embed,
    EmbedReply,
    Generate,
    GenerateReply,
    Json,
    Message,
    Query,
    Refused,
    Setup,
    Window,
)

CLIPS = 5
"""Clips retrieved in a round. Not given by the source."""
ROUNDS = 5
"""Rounds at most. Not given by the source: the released default of the system it compares with."""
LATEST = CLIPS
"""Windows that came after the last settle, the best by BM25, are embedded with the question, so many. Not given by the
source: as many as a round can retrieve; each costs four texts."""
QUERY_CHARS = 400
"""Characters of a regenerated query that are used. Not given by the source."""
SOLVER_CHARS = 8_000
"""Characters of evidence that the solver is shown. Not given by the source: within the default budget of a request."""
TOKENS = 128

SOLVER = """\
You answer a question about a long video by searching its memory, which holds a short text for every half minute.
Decide whether the evidence found so far is enough to answer. If it is, reply with the action "answer" and an empty
query. If not, reply with the action "search" and one short query for what is still missing: the action, words said,
thing or scene to look for, in the words that would describe it. Do not repeat an earlier query."""
STEP = closed({"action": {"type": "string", "enum": ["search", "answer"]}, "query": {"type": "string"}})
INSTRUCTIONS = """\
Answer from the evidence, which stands in order of time. Join what several moments say where the question needs it.
Reply with one letter."""


class Policy:
    """Episodic multi-key memory, and relations composed when the question is there."""

    def __init__(self, setup: Setup) -> None:
        self.budget = setup.budget
        self.rounds = max(1, min(ROUNDS, setup.budget.generates // 2))  # a round asks f twice: query and filter
        self.memory = KeyMemory()
        self.rewriter = Rewriter(FOUR_KEYS, self.memory.observe)

    def observe(self, windows: Sequence[Window]) -> None:
        """Hand the windows to the rewrite."""
        self.rewriter.observe(windows)

    def settle(self) -> Asking:
        """Keys of the windows that wait, and their vectors."""
        yield from self.rewriter.settle()
        yield from self.memory.embed(self.memory.bare[:])

    def answer(self, query: Query) -> Asking:
        """Search in rounds, then ask f once."""
        self.rewriter.answer()
        search = _Search(self.memory, query, self.budget)
        yield from search.run(self.rounds)
        head = asked_at(query) + SEPARATOR
        items = fit(search.evidence(), self.budget.context_chars - len(head))
        context = (head + joined(items))[: self.budget.context_chars]
        evidence = self.memory.references([at for at, _ in items])[: self.budget.evidence]
        notes = {"builder": self.rewriter.label, "rounds": search.rounds, "stop": search.stop}
        return (yield from read(query, context, "multi_key", evidence, INSTRUCTIONS, notes))


class _Search:
    """The rounds of one question."""

    def __init__(self, memory: KeyMemory, query: Query, budget: Budget) -> None:
        self.memory, self.query, self.budget = memory, query, budget
        self.kept: list[Passage] = []
        self.rounds: list[dict[str, Json]] = []
        """Query, index, filter and retrieved clips of each round."""
        self.stop = "rounds"
        """Why it ended: ``rounds`` (all used), ``answer``, ``no query``, ``no new clip``."""
        self._seen: set[int] = set()

    def run(self, rounds: int) -> Asking:
        """Up to ``rounds`` of regenerate, retrieve, filter."""
        for _ in range(rounds):
            text = yield from self._regenerate()
            if not text:
                return
            scores, index = yield from self._relevance(text)
            hits = self._best(scores)
            if not hits:
                self.stop = "no new clip"
                return
            positions = attach(self.memory, hits, self._seen)
            self._seen.update(positions)
            kept, by_model = yield from keep_useful(self.memory, self.query, text, positions, hits, self.budget)
            self.kept += kept
            clips = list(self.memory.references(hits))
            self.rounds.append(
                {"query": text, "index": index, "filter": "model" if by_model else "rules", "clips": clips}
            )

    def evidence(self) -> list[tuple[int, str]]:
        """What was kept, as (position, line) in the order found."""
        return [(kept.position, f"[{self._time(kept.position)}] {kept.text}") for kept in self.kept]

    def _regenerate(self) -> Asking:
        """The next query; empty where the search is over. Where f gives none, the first one is the question."""
        first = not self.rounds
        found = joined(fit(self.evidence(), SOLVER_CHARS)) or "(none)"
        earlier = "; ".join(str(one["query"]) for one in self.rounds) or "(none)"
        user = f"{asking(self.query)}\n\nEarlier queries: {earlier}\n\nEvidence so far:\n{found}"
        messages = (Message("system", SOLVER), Message("user", user))
        try:
            reply = yield Generate(messages, min(TOKENS, self.budget.generate_tokens), STEP)
        except Refused:
            reply = None
        step = reply.value if isinstance(reply, GenerateReply) and reply.value is not None else {}
        if not first and step.get("action") == "answer":
            self.stop = "answer"
            return ""
        text = " ".join(step.get("query", "")[:QUERY_CHARS].split())
        if not text and not first:
            self.stop = "no query"
        return text or (self.query.question if first else "")

    def _relevance(self, text: str) -> Asking:
        """Scores of all windows for ``text``, -inf for one that does not match, and the name of the index."""
        lexical = self.memory.lexical(text)
        if self.memory.embedder:
            room = max(self.budget.embeds - ROUNDS, 0) // len(KEYS)
            late = sorted(self.memory.bare, key=lambda at: -lexical[at])[: min(LATEST, room)]
            if not self.rounds:
                yield from self.memory.embed(sorted(late))
            try:
                reply = yield Embed((text,))
            except Refused:
                reply = None
            if isinstance(reply, EmbedReply):
                scores = self.memory.cosine(decode(reply)[0])
                if np.isfinite(scores).any():
                    return scores, "embeddings"
        return np.where(lexical > 0, lexical, -np.inf), "bm25"

    def _best(self, scores: Floats) -> list[int]:
        """The best clips that were not seen in an earlier round; ties go to the earlier window."""
        order = np.argsort(-scores, kind="stable")
        return [int(at) for at in order if np.isfinite(scores[at]) and int(at) not in self._seen][:CLIPS]

    def _time(self, position: int) -> str:
        return stamp(self.memory.windows[position].start)
