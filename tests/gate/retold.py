"""One idea written three times over V0, and others: what a repeat in other words looks like, and what does not."""

from __future__ import annotations

from policies import library

V00 = library.load("v00")["policy.py"].decode()
OLD = V00[V00.index("        count = limit") : V00.index("        return (yield")]
IMPORTS = "from policies.blocks.bm25 import bm25_question\nfrom policies.blocks.select import top\n"


def candidate(body: str, tail: str = "", head: str = "") -> str:
    """V0 with other lines where it chooses its windows."""
    text = V00.replace(OLD, body).replace("size, head = len(self.memory), asked_at", "head = asked_at")
    text = text.replace("from policies.blocks.formats", f"{IMPORTS}from policies.blocks.formats", 1)
    return text.replace("\n\nclass Policy", f"\n{head}\n\nclass Policy", 1) + tail


FIRST = candidate(
    "        best = top(bm25_question(self.memory, query), 12)\n"
    "        items = fit(((at, raw(self.memory, at)) for at in best), limit)\n"
    "        evidence = self.memory.references([at for at, _ in items])\n"
)
LOOP = candidate(
    "        chosen = []\n"
    "        for place in top(bm25_question(self.memory, query), BEST):\n"
    "            chosen.append((place, raw(self.memory, place)))\n"
    "        items = fit(chosen, limit)\n"
    "        evidence = self.memory.references([number for number, text in items])\n",
    head="BEST = 12\n",
)
METHOD = candidate(
    "        items = fit(self.ranked(query), limit)\n"
    "        evidence = self.memory.references([at for at, _ in items])\n",
    tail="\n    def ranked(self, asked: Query) -> list[tuple[int, str]]:\n"
    '        """The best lexical matches."""\n'
    "        relevance = bm25_question(self.memory, asked)\n"
    "        return [(window, raw(self.memory, window)) for window in top(relevance, 12)]\n",
)
OTHER_NUMBER = FIRST.replace("query), 12)", "query), 20)")
OTHER_BLOCK = FIRST.replace("bm25_question", "bm25_choices")
OTHER_ORDER = FIRST.replace("at in best)", "at in sorted(best[:9], reverse=True))")
