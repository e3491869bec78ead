"""``harness ask``: one question, put into the stream at a time; the answer with its route and its evidence."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from rich.table import Table
from rich.text import Text

from harness.cli.measure import bench_options, errors
from harness.cli.options import console, json_option, print_json, settings
from harness.data.frames import open_frames
from harness.data.native import Dataset, Video
from harness.display import cell, visible
from harness.errors import UserError
from harness.evaluation import asking
from harness.evaluation.outcomes import Cost
from harness.measuring import bench, dataset, policy_bundle
from harness.models.interface import Role
from harness.models.letters import LETTERS
from harness.seeds import derive
from policies.blocks.timefmt import DAY_SECONDS, stamp
from policies.contract import Query, Setup, Window

AT = re.compile(r"day([1-9]\d{0,4})[t ]([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d(?:\.\d+)?))?", re.IGNORECASE | re.ASCII)
TYPE = re.compile(r"[A-Za-z0-9][A-Za-z0-9 _&/-]{0,59}")
MAX_TEXT = 20_000
"""Characters of the question and of a choice, as in a data set."""
SHOWN = 800
"""Characters of one window's captions, and of its transcript, on the screen; --json has all of it."""


@click.command()
@click.argument("question")
@click.option("--policy", "name", required=True, metavar="NAME", help="Of the library, or a folder with policy.py.")
@click.option("--at", required=True, metavar="TIME", help="When it is asked: DAY3T12:00, DAY3T12:00:30, or seconds.")
@click.option("--choice", "choices", multiple=True, metavar="TEXT", help="One of the choices, in order. Repeatable.")
@click.option("--type", "kind", default="Question", show_default=True, metavar="T", help="The question-type label.")
@click.option("--video", metavar="ID", help="Which video of the data set. Needed where it has several.")
@click.option("--data", metavar="DIR", help="Data set folder. Default: the bundled life-log.")
@bench_options
@json_option
def ask(
    question: str,
    name: str,
    at: str,
    choices: tuple[str, ...],
    kind: str,
    video: str | None,
    replies: Path | None,
    file: Path | None,
    as_json: bool,
    **flags: object,
) -> None:
    """Put QUESTION into a video's stream at a time.

    Shown are the answer, its route, its evidence and its cost. Only windows that had ended by then are seen. Without
    --choice the answer model answers in its own words from the policy's evidence; without a model the evidence is all
    there is.
    """
    config = settings(flags, file)
    given = _choices(choices)
    _check_text("the question", question)
    if TYPE.fullmatch(kind) is None:
        raise UserError("--type: letters, digits, spaces and _ & / - only, 60 at most, the first a letter or digit")
    time = _time(at)
    bundle = policy_bundle(name)
    data = dataset(config, errors())
    chosen = _video(data, video)
    if time > chosen.duration:
        raise UserError(f"--at {at}: {chosen.id} ends at {stamp(chosen.duration)}; ask at a time up to then")
    query = Query(asking.query_id(chosen.id, kind, question, given, time), kind, question, given, time)
    with bench(config, data, replies, "ask", workers=1) as on:
        setup = Setup(config.budget, derive(config.run.seed, 0, "policy"))
        with errors().status(cell(f"asking {name}")):
            found = asking.ask(bundle, chosen, query, setup, on.box, on.models, open_frames(data))
        reader = on.models.describe(Role.ANSWER) if on.models.has(Role.ANSWER) else ""
    facts = _facts(found, query, chosen, reader)
    if as_json:
        print_json(facts)
    else:
        _show(facts)


# ---------------------------------------------------------------- what was asked


def _choices(texts: tuple[str, ...]) -> dict[str, str]:
    if len(texts) == 1 or len(texts) > len(LETTERS):
        raise UserError(f"--choice: {len(texts)} given; give none, or from 2 to {len(LETTERS)}")
    for text in texts:
        _check_text("--choice", text)
    return dict(zip(LETTERS, texts, strict=False))


def _check_text(what: str, text: str) -> None:
    if not text.strip() or len(text) > MAX_TEXT:
        raise UserError(f"{what} has {len(text.strip())} characters; write from 1 to {MAX_TEXT:,}")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(f"{what} is not UTF-8 text; write it in UTF-8") from None


def _time(text: str) -> float:
    """Seconds on the video's axis."""
    if match := AT.fullmatch(text.strip()):
        day, hour, minute, second = match.groups()
        return (int(day) - 1) * DAY_SECONDS + int(hour) * 3_600 + int(minute) * 60 + float(second or 0)
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and seconds >= 0):
        raise UserError(f"--at {visible(text, 80)}: no time; write DAY3T12:00, DAY3T12:00:30, or seconds from 0 on")
    return seconds


def _video(data: Dataset, name: str | None) -> Video:
    only = next(iter(data.videos)) if len(data.videos) == 1 else None
    wanted = name or only
    if wanted is not None and wanted in data.videos:
        return data.videos[wanted]
    known = ", ".join(sorted(data.videos)[:8]) + (", ..." if len(data.videos) > 8 else "")
    what = "several videos" if name is None else f"no video {visible(name, 80)}"
    raise UserError(f"{data.name} has {what}; name one with --video: {known}")


# ---------------------------------------------------------------- what came of it


def _facts(found: asking.Asked, query: Query, video: Video, reader: str) -> dict[str, Any]:
    """Everything as JSON values."""
    answer, meter = found.answer, found.meter
    choice = answer.choice if answer.choice in query.choices else None
    total = meter.retrieval + meter.answering + meter.verification
    seconds = {
        "retrieval": found.policy_seconds,
        "frames": meter.frame_seconds,
        "embedding": meter.embed_seconds,
        "model": meter.model_seconds,
    }
    return {
        "question": query.question,
        "asked_at": _clock(query.time),
        "choice": choice,
        "text": query.choices[choice] if choice is not None else found.said,
        "open": not query.choices,
        "reader": reader or "lexical reader, no language model",
        "offline": not reader,
        "route": answer.route,
        "evidence": [_window(video.windows[i]) for i in answer.evidence if 0 <= i < len(video.windows)],
        "cost": _cost(total),
        "construction": _cost(found.construction),
        "seconds": {"all": sum(seconds.values()), **seconds},
        "observe_seconds": found.observe_seconds,
        "diagnostics": answer.diagnostics,
    }


def _cost(cost: Cost) -> Mapping[str, Any]:
    return cost.model_dump(exclude={"seconds"})


def _window(window: Window) -> dict[str, Any]:
    return {
        "window": window.index,
        "start": window.start,
        "end": window.end,
        "when": f"{_clock(window.start)}–{_clock(window.end).split()[1]}",
        "captions": list(window.captions),
        "transcript": [{"speaker": line.speaker, "text": line.text} for line in window.transcript],
    }


def _clock(seconds: float) -> str:
    """``DAYn HH:MM:SS``."""
    return f"{stamp(seconds)}:{int(seconds) % 60:02d}"


def _show(facts: dict[str, Any]) -> None:
    out = console()
    out.print(Text("answer    ", style="bold") + _answer(facts), soft_wrap=True)
    out.print(Text("route     ", style="bold") + cell(facts["route"] or "(none)"))
    cost, built, seconds = facts["cost"], facts["construction"], facts["seconds"]
    mark = "~" if cost["estimated"] else ""
    line = (
        f"{mark}{cost['prompt_tokens']:,} tokens in, {mark}{cost['completion_tokens']:,} out, "
        f"{cost['requests']} requests, {cost['frames']} frames"
    )
    if built["requests"]:
        line += (
            f"; construction {built['requests']:,} requests, "
            f"{built['prompt_tokens']:,} tokens in, {built['completion_tokens']:,} out"
        )
    out.print(Text("cost      ", style="bold") + Text(line), soft_wrap=True)
    named = ", ".join(f"{name} {seconds[name]:.3f}" for name in ("retrieval", "frames", "embedding", "model"))
    line = f"{seconds['all']:.3f} s ({named}); the stream before it {facts['observe_seconds']:.1f} s"
    out.print(Text("seconds   ", style="bold") + Text(line), soft_wrap=True)
    reader = facts["reader"] if cost["requests"] else "no model was asked"
    out.print(Text("reader    ", style="bold") + cell(reader))
    table = Table(title=Text(f"evidence, asked at {facts['asked_at']}"), title_justify="left", show_lines=True)
    table.add_column("when", no_wrap=True)
    table.add_column("what was seen and said")
    for window in facts["evidence"]:
        seen = " ".join(window["captions"])
        said = " / ".join(f"{line['speaker'] or '?'}: {line['text']}" for line in window["transcript"])
        table.add_row(window["when"], Text("\n").join(Text(visible(text, SHOWN)) for text in (seen, said) if text))
    out.print(table if facts["evidence"] else Text("evidence: the policy names none", style="yellow"))


def _answer(facts: dict[str, Any]) -> Text:
    if facts["choice"] is not None:
        return Text(f"{facts['choice']}. ") + cell(facts["text"])
    if not facts["open"]:
        return Text("none: the policy abstained", style="yellow")
    if facts["text"]:
        return Text(visible(facts["text"], keep_lines=True))
    why = "no model is configured to answer in words" if facts["offline"] else "the model said nothing usable"
    return Text(f"none: {why}; the evidence is below", style="yellow")
