"""From a recipe to its policy.py: plain code that a person can read, holding only what the recipe uses."""

from __future__ import annotations

import textwrap
from collections import defaultdict
from dataclasses import dataclass, field

from harness.agents.recipes import Recipe

SUBJECT = {
    "uniform": "Windows spread evenly over all that was seen",
    "recent": "The latest windows",
    "bm25": "Windows ranked by BM25",
    "fields": "Event records ranked field by field",
}


@dataclass
class Sheet:
    """The policy being written."""

    recipe: Recipe
    imports: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))
    modules: set[str] = field(default_factory=set)
    constants: list[str] = field(default_factory=list)
    methods: list[str] = field(default_factory=list)

    @property
    def scored(self) -> bool:
        """Whether windows are ranked."""
        return self.recipe.retriever in ("bm25", "fields")

    @property
    def choices(self) -> bool:
        """Whether there is a score for each choice."""
        return self.scored and self.recipe.match == "sum"

    def use(self, module: str, *names: str) -> None:
        """Import names of ``policies.<module>``."""
        self.imports[module].update(names)

    def method(self, head: str, doc: str, lines: list[str]) -> None:
        """Add a method."""
        body = "\n".join(f"        {line}" if line else "" for line in lines)
        self.methods.append(f'    def {head}:\n        """{doc}"""\n{body}\n')


def render(recipe: Recipe) -> str:
    """The policy of a recipe; the same recipe, the same text."""
    sheet = Sheet(recipe.normal())
    _memory(sheet)
    if sheet.scored:
        _score(sheet)
    _select(sheet)
    _habit(sheet)
    _when(sheet)
    _show(sheet)
    _answer(sheet)
    summary = f'"""{_summary(sheet.recipe)}"""'
    recipe_lines = textwrap.fill(f"Recipe: {sheet.recipe.text()}", 110, break_long_words=False, break_on_hyphens=False)
    head = f'"""{_summary(sheet.recipe)}\n\n{recipe_lines}\n"""\n\nfrom __future__ import annotations'
    parts = [head, _imports(sheet), "\n".join(sheet.constants)]
    return "\n\n".join(parts) + f"\n\n\nclass Policy:\n    {summary}\n\n" + "\n".join(sheet.methods)


def _summary(r: Recipe) -> str:
    direct = "; a clear leader is answered without f" if "direct" in r.route or r.habit == "support" else ""
    return f"{SUBJECT[r.retriever]}{direct}."


def _imports(sheet: Sheet) -> str:
    """Standard library, numpy, ours, in the order that import sorters have."""

    def order(name: str) -> tuple[int, str]:
        return (0 if name.isupper() else 1 if name[0].isupper() else 2), name

    standard = [f"import {name}" for name in sorted(sheet.modules - {"numpy as np"})]
    groups = ["\n".join([*standard, "from collections.abc import Sequence"])]
    if "numpy as np" in sheet.modules:
        groups.append("import numpy as np")
    ours = [
        f"from policies.{m} import {', '.join(sorted(names, key=order))}" for m, names in sorted(sheet.imports.items())
    ]
    return "\n\n".join([*groups, "\n".join(ours)])


def _memory(sheet: Sheet) -> None:
    r = sheet.recipe
    events = r.retriever == "fields" or r.show != "raw"
    memory = "EventMemory" if events else "Memory"
    sheet.use("blocks.events" if events else "blocks.memory", memory)
    sheet.use("contract", "Asking", "Query", "Setup", "Window")
    sheet.constants += [f"SLOTS = {r.slots}", f"CAP = {int(r.cap):_}"]
    sheet.methods.append(f'''    def __init__(self, setup: Setup) -> None:
        self.limit = min(CAP, setup.budget.context_chars)
        self.evidence = setup.budget.evidence
        self.memory = {memory}()

    def observe(self, windows: Sequence[Window]) -> None:
        """Keep and index the windows."""
        self.memory.observe(windows)

    def settle(self) -> None:
        """Nothing to batch."""
''')


def _relevance(sheet: Sheet, kind: str) -> str:
    """The call that scores all windows for the question or for the choices."""
    name = f"{sheet.recipe.retriever}_{kind}"
    sheet.use(f"blocks.{sheet.recipe.retriever}", name)
    return f"{name}(self.memory, query)"


def _score(sheet: Sheet) -> None:
    r = sheet.recipe
    sheet.use("blocks.postings", "Floats")
    lines, total = [], _relevance(sheet, "question")
    if sheet.choices:
        lines = [f"asked = {total}", f"chosen = {_relevance(sheet, 'choices')}"]
        total = "asked[:, None] + CHOICE_WEIGHT * chosen"
        sheet.constants.append(f"CHOICE_WEIGHT = {r.weight}")
    if r.bonus != "0":
        lines.append("together = (asked[:, None] > 0) & (chosen > 0)")
        total += " + TOGETHER * together"
        sheet.constants.append(f"TOGETHER = {r.bonus}")
    if r.recency != "0":
        sheet.use("blocks.recency", "temporal")
        sheet.constants.append(f"RECENCY = {r.recency}")
        lines += [f"scores = {total}", "return temporal(scores, query.question, RECENCY)"]
    else:
        lines.append(f"return {total}")
    shape = "(n, k), one column per choice" if sheet.choices else "(n,)"
    sheet.method("score(self, query: Query) -> Floats", f"Scores of the windows, shape {shape}.", lines)


def _select(sheet: Sheet) -> None:
    r = sheet.recipe
    if r.retriever == "uniform":
        sheet.use("blocks.select", "uniform")
        sheet.method("select(self) -> list[int]", "Windows to show.", ["return uniform(len(self.memory), SLOTS)"])
        return
    if r.retriever == "recent":
        lines = ["return list(range(len(self.memory)))[::-1][:SLOTS]"]
        sheet.method("select(self) -> list[int]", "Windows to show, the latest first.", lines)
        return
    lines = []
    if r.turn != "0":
        sheet.use("blocks.recency", "direction")
        sheet.use("blocks.select", "earliest", "latest")
        sheet.constants.append(f"TURN = {r.turn}")
        lines += [
            "turn = direction(query.question)",
            "if turn:",
            f"    asked = {_relevance(sheet, 'question')}",
            "    return latest(asked, TURN) if turn > 0 else earliest(asked, TURN)",
        ]
    if sheet.choices and r.pick == "best":
        lines.append("scores = scores.max(axis=1)")
    if r.focus != "0":
        sheet.modules.add("numpy as np")
        sheet.constants.append(f"FOCUS = {r.focus}")
        lines += ["if len(scores):", "    scores = np.where(scores >= FOCUS * scores.max(axis=0), scores, 0)"]
    each = sheet.choices and r.pick == "each"
    sheet.use("blocks.select", *(("interleave", "top_each") if each else ("top",)))
    lines.append("return interleave(top_each(scores, SLOTS))[:SLOTS]" if each else "return top(scores, SLOTS)")
    meaning = "the best of every choice in turn" if each else "the best first"
    sheet.method("select(self, query: Query, scores: Floats) -> list[int]", f"Windows to show, {meaning}.", lines)


def _habit(sheet: Sheet) -> None:
    if sheet.recipe.habit != "support":
        return
    sheet.modules.add("re")
    sheet.use("blocks.support", "leader", "support_counts")
    sheet.constants += [
        'HABIT = re.compile(r"\\b(usually|often|always|habit|every day|how many times|frequently)\\b", re.IGNORECASE)'
    ]
    sheet.modules.add("numpy as np")
    sheet.use("contract", "Answer")
    lines = [
        f"asked, chosen = {_relevance(sheet, 'question')}, {_relevance(sheet, 'choices')}",
        "column = leader(support_counts(asked, chosen), 2, 1.5, 1)",
        "if column is None:",
        "    return None",
        "seen = np.flatnonzero((asked > 0) & (chosen[:, column] > 0))",
        "evidence = self.memory.references([int(at) for at in seen])[: self.evidence]",
        'return Answer(list(query.choices)[column], "support", evidence)',
    ]
    sheet.method("usual(self, query: Query) -> Answer | None", "The choice with clearly more support, or None.", lines)


def _when(sheet: Sheet) -> None:
    if sheet.recipe.words != "relative":
        return
    sheet.use("blocks.timefmt", "DAY_SECONDS")
    sheet.constants.append(
        'PARTS = ((11, "in the morning"), (14, "around noon"), (18, "in the afternoon"), (24, "in the evening"))'
    )
    lines = [
        "start = self.memory.windows[at].start",
        "days = int(now // DAY_SECONDS) - int(start // DAY_SECONDS)",
        'day = ("today", "yesterday")[days] if days < 2 else f"{days} days ago"',
        "hour = start % DAY_SECONDS / 3600",
        'return f"{day} {next(name for until, name in PARTS if hour < until)}"',
    ]
    sheet.method("when(self, at: int, now: float) -> str", "A window's time as people say it at the query time.", lines)


def _show(sheet: Sheet) -> None:
    """How one selected window becomes a passage."""
    r = sheet.recipe
    prefix = 'f"{self.when(at, query.time)}: " + ' if r.words == "relative" else ""
    near = "near = neighbours([at], AROUND, len(self.memory))"
    if r.around != "0":
        sheet.use("blocks.select", "neighbours")
        sheet.constants.append(f"AROUND = {r.around}")
    if r.lines == "all":
        sheet.use("blocks.formats", r.show)
        if r.around != "0":
            text = f'" ".join({r.show}(self.memory, position) for position in near)'
            sheet.method("show(self, query: Query, at: int) -> str", "A passage.", [near, f"return {prefix}{text}"])
        elif prefix:
            text = f"{r.show}(self.memory, at)"
            sheet.method("show(self, query: Query, at: int) -> str", "A passage.", [f"return {prefix}{text}"])
        return
    sheet.use("blocks.memory", "window_text")
    sheet.use("blocks.tokens", "content")
    sheet.use("blocks.formats", "one_line")
    windows = "near" if r.around != "0" else "[at]"
    lines = [near] if r.around != "0" else []
    lines += [
        "wanted = content(query.question).union(*map(content, query.choices.values()))",
        f'said = [line for position in {windows} for line in window_text(self.memory.windows[position]).split("\\n")]',
        "kept = [one_line(line) for line in said if not wanted.isdisjoint(content(line))]",
    ]
    if r.words == "relative":
        lines.append("time = self.when(at, query.time)")
    else:
        sheet.use("blocks.timefmt", "stamp")
        lines.append("time = stamp(self.memory.windows[at].start)")
    if r.lines == "apart":
        sheet.use("blocks.formats", "SEPARATOR")
        lines.append('return SEPARATOR.join(f"[{time}] {line}" for line in kept)')
        doc = "Every line that shares a word with question or choices, as a passage of its own."
    else:
        lines.append("return f\"[{time}] {' '.join(kept)}\"")
        doc = "The lines that share a word with question or choices, as one passage."
    sheet.method("show(self, query: Query, at: int) -> str", doc, lines)


def _answer(sheet: Sheet) -> None:
    r = sheet.recipe
    lines = []
    if r.habit == "support":
        lines += [
            "if HABIT.search(query.question) and (answer := self.usual(query)) is not None:",
            "    return answer",
        ]
    lines += ["scores = self.score(query)"] if sheet.scored else []
    if r.route == "direct":
        sheet.use("contract", "Answer")
        sheet.use("blocks.support", "leader")
        sheet.constants.append(f"LEAD = {r.lead}")
        lines += [
            "column = leader(scores.max(axis=0), 0, LEAD, 0) if len(scores) else None",
            "if column is not None:",
            "    best = int(scores[:, column].argmax())",
            '    return Answer(list(query.choices)[column], "direct", self.memory.references([best]))',
        ]
    own = r.around != "0" or r.lines != "all" or r.words == "relative"
    shown = "self.show(query, at)" if own else f"{r.show}(self.memory, at)"
    sheet.use("blocks.formats", "fit", "joined" if r.order == "time" else "SEPARATOR")
    sheet.use("blocks.reading", "read")
    lines += [
        "positions = self.select(query, scores)" if sheet.scored else "positions = self.select()",
        f"items = fit(((at, {shown}) for at in positions), self.limit)",
        "context = joined(items)" if r.order == "time" else "context = SEPARATOR.join(text for _, text in items)",
        "used = [at for at, _ in items]",
    ]
    if r.around != "0":
        lines.append("used = neighbours(used, AROUND, len(self.memory))")
    lines += [
        "evidence = self.memory.references(used)[: self.evidence]",
        f'return (yield from read(query, context, "{r.retriever}", evidence))',
    ]
    sheet.method("answer(self, query: Query) -> Asking", "Choose windows, format them, ask f.", lines)
