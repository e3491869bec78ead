"""The page: one HTML file with its pictures, its style, its script and its data, and a policy that allows no more."""

from __future__ import annotations

import base64
import hashlib
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from harness import __version__, history
from harness.evaluation.outcomes import Evaluation
from harness.outcomes import Measured
from harness.report import charts
from harness.report.detail import detail, rule_titles
from harness.report.questions import Questions, find_data, tells_correctness
from harness.report.safe import cleaned, embedded, packed
from harness.report.spend import seconds_by_stage, spent, tokens_by_part
from harness.report.story import Reader, Story
from harness.state.store import RunStore

ASSETS = Path(__file__).resolve().parent / "assets"
STYLES = ("page.css", "chart.css")
PARENTS = 16
"""Evaluations kept while pages are made: an attempt is compared with its parent, and parents are few."""
ROOM = 64
"""Attempts for which every report has room."""
SCRIPTS = ("dom.js", "code.js", "questions.js", "attempt.js", "page.js")


class Report:
    """Pages of one run: made again while the run goes on, only what is new is read."""

    def __init__(self, data: Path | None = None) -> None:
        """``data``: the folder of the run's data set, where it is not at the path that the run names."""
        self._data = data
        self._reader = Reader()
        self._questions: Questions | None = None
        self._kept: dict[int, tuple[str, str]] = {}

    def page(self, store: RunStore, live: str = "") -> str:
        """The page as the run stands now. ``live``: the mark of this state; the page asks its server for a newer one.

        Raises UserError: the run or the data named cannot be used.
        """
        story = self._reader.story(store)
        return render(store, story, self._details(store, story), live)

    def _details(self, store: RunStore, story: Story) -> dict[str, str]:
        """The packed details of each attempt by its iteration, and what they share under ``shared``."""
        questions = self._asked(store, sum(row.developed is not None for row in story.rows))
        titles, rows = rule_titles(store), {row.iteration: row for row in story.rows}
        states = {entry.iteration: entry.hash for entry in store.audit()}

        @lru_cache(maxsize=PARENTS)
        def developed(k: int) -> Evaluation | None:
            found = store.stage(k, "develop", Measured)
            return found.evaluation if found else None

        for row in story.rows:
            k = row.iteration
            if self._kept.get(k, ("", ""))[0] == states[k]:
                continue
            parent = None if row.parent is None else rows.get(row.parent)
            told: dict[str, Any] = cleaned(detail(store, row, parent, titles, developed))
            measured = developed(k)
            told["answers"] = questions.of(measured) if measured else None
            self._kept[k] = states[k], packed(told)
        details = {str(row.iteration): self._kept[row.iteration][1] for row in story.rows}
        return {**details, "shared": packed(questions.shared())}

    def _asked(self, store: RunStore, measured: int) -> Questions:
        """The run's questions. With twice the attempts each may take up half: then all are made anew."""
        room = ROOM
        while room < measured:
            room *= 2
        if self._questions is None or self._questions.attempts != room:
            dataset, note = find_data(store, self._data)
            self._questions = Questions(dataset, note, tells_correctness(store.manifest), room)
            self._kept.clear()
        return self._questions


def render(store: RunStore, story: Story, details: dict[str, str], live: str) -> str:
    """The HTML of a run that was read."""
    style, script = _joined(STYLES), _joined(SCRIPTS)
    sources = {"default-src": "'none'", "style-src": _hash(style), "script-src": _hash(script)}
    sources |= {"base-uri": "'none'", "form-action": "'none'"}
    if live:
        sources["connect-src"] = "'self'"
    calls = spent(store)
    seconds = seconds_by_stage(store)
    facts = {
        "live": live,
        "rows": [
            {
                "k": row.iteration,
                "parent": row.parent,
                "title": row.title,
                "verdict": row.verdict,
                "end": row.outcome,
                "text": row.words.casefold(),
            }
            for row in story.rows
        ],
    }
    page: str = _template().render(
        policy="; ".join(f"{name} {value}" for name, value in sources.items()),
        style=Markup(style),
        script=Markup(script),
        story=story,
        offline_label=history.OFFLINE,
        version=__version__,
        kinds={row.iteration: charts.kind(row) for row in story.rows},
        lineage=charts.lineage(story),
        by_iteration=charts.by_iteration(story),
        against_tokens=charts.against_tokens(story),
        against_seconds=charts.against_seconds(story),
        spent=calls,
        spend_chart=charts.spend(calls),
        seconds_chart=charts.seconds(seconds),
        parts=tokens_by_part(story.rows),
        facts=Markup(embedded(facts)),
        details={key: Markup(value) for key, value in details.items()},
        live=live,
    )
    return page


@cache
def _template() -> Any:
    environment = Environment(
        loader=FileSystemLoader(ASSETS),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html.jinja")


@cache
def _joined(names: tuple[str, ...]) -> str:
    """Our own files one after the other; scripts in strict mode and in a scope of their own."""
    text = "\n".join((ASSETS / name).read_text("utf-8") for name in names)
    return f'"use strict";(() => {{\n{text}\n}})();\n' if names[0].endswith(".js") else text


def _hash(text: str) -> str:
    """As a content policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode('ascii')}'"
