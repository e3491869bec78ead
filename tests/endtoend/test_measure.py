"""Measuring and asking, by the real command in a real process, with policies that stand in this file."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.cli import main
from harness.data.native import Gold, Question, Video
from harness.data.write import DatasetParts, write
from policies import library
from policies.contract import Utterance, Window
from tests.endpoint import Endpoint, endpoint
from tests.endtoend.conftest import Finished, command, environment

__all__ = ["endpoint"]
Command = Callable[..., Finished]
EVIL = "[bold red]x[/]\x1b[31m\u202eevil\x07"
READING = """
from policies.contract import *

class Policy:
    def __init__(self, setup):
        self.windows = []

    def observe(self, windows):
        self.windows += windows

    def settle(self):
        pass

    def answer(self, query):
        words = [word.strip("?.").lower() for word in query.question.split() if len(word) > 3]
        seen = [w for w in self.windows if any(word in " ".join(w.captions).lower() for word in words)]
        context = "\\n\\n".join(" ".join(window.captions) for window in seen)
        try:
            reply = yield Read(query.question, query.choices, context, "Name a letter.")
            choice = reply.choice
        except Refused:
            choice = None
        notes = {"gate_open": False, "choices": list(query.choices.values())}
        return Answer(choice, "reading", tuple(window.index for window in seen), notes)
"""
FIRST = """
from policies.contract import *

class Policy:
    def __init__(self, setup):
        pass

    def observe(self, windows):
        pass

    def settle(self):
        pass

    def answer(self, query):
        return Answer("A", "first", (0,))
"""
CRASHING = FIRST.replace('return Answer("A", "first", (0,))', 'raise ValueError("broken on purpose")')


@pytest.fixture(scope="module")
def room(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data set of one video over two days, and the policies."""
    folder = tmp_path_factory.mktemp("room")
    day = 86_400
    windows = [
        Window(
            n, n * 30.0, n * 30.0 + 30, (f"Ann takes the item{n} from the shelf.",), (Utterance("Ann", "ok"),), False
        )
        for n in range(20)
    ]
    windows.append(Window(20, day + 36_000.0, day + 36_030.0, (f"Bob wears a hat. {EVIL}",), (), False))
    windows.append(Window(21, day + 43_185.0, day + 43_215.0, ("Bob takes the secret.",), (), False))
    video = Video("v1", day + 50_000.0, tuple(windows))

    def asked(n: int) -> tuple[Question, Gold]:
        choices = {"A": f"item{n}", "B": "a boat", "C": "a bird", "D": "a tree"}
        question = Question(f"q{n}", "v1", "EventRecall", f"What of item{n}?", choices, 100.0 + 30 * n)
        return question, Gold("A" if n % 2 else "B", ((n * 30.0, n * 30.0 + 5),))

    splits = {"development": [asked(n) for n in range(8)], "validation": [asked(n) for n in range(8, 12)]}
    for name in ("data", "other"):
        write(DatasetParts("tiny", {"made": "by hand"}, [video], splits), folder / name)
    for name, text in (("reading", READING), ("first", FIRST), ("crashing", CRASHING)):
        (folder / name).mkdir()
        (folder / name / "policy.py").write_text(text)
    return folder


@pytest.fixture
def here(room: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command's own entry point in this process, for speed; the sandbox is the real one."""
    monkeypatch.chdir(room)
    monkeypatch.setenv("COLUMNS", "140")
    for name in [name for name in os.environ if name.startswith(("HARNESS_", "OPENAI_"))]:
        monkeypatch.delenv(name)

    def run(*arguments: str, env: dict[str, str] | None = None) -> Finished:
        monkeypatch.setattr("sys.argv", ["harness", *arguments])
        for name, value in (env or {}).items():
            monkeypatch.setenv(name, value)
        with pytest.raises(SystemExit) as stop:
            main()
        said = capsys.readouterr()
        return Finished(arguments, int(stop.value.code or 0), said.out, said.err)

    return run


def test_evaluate_save_and_rescore(harness: Command, here: Command, room: Path) -> None:
    asked = ("--policy", "reading", "--policy", "first", "--data", "data", "--sandbox", "bubblewrap")
    done = harness("evaluate", *asked, "--split", "all", "--out", "o.json", "--json", cwd=room)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert list(figures) == ["reading", "first", "options_only"]
    reading, first, beside = figures.values()
    assert reading["questions"] == first["questions"] == beside["questions"] == 12
    assert first["accuracy"] == 0.5 and first["direct"]["share"] == 1.0 and first["tokens_in_per_question"] == 0
    assert reading["hit_rate"] == 1.0 and reading["direct"]["share"] == 0.0 and reading["requests_per_question"] == 1
    assert reading["offline"] and reading["gate_open"]["count"] == 0 and first["gate_open"] is None
    assert reading["by_route"]["reading"]["questions"] == 12
    assert len(done.stderr.strip().splitlines()) == 3  # one line for each policy, nothing else

    again = here("evaluate", "--rescore", "o.json", "--data", "data", "--json")
    assert again.returncode == 0 and again.stdout == done.stdout and again.stderr == ""
    shown = here("evaluate", "--rescore", "o.json", "--data", "data")
    assert "50.0 offline" in shown.stdout and "EventRecall (12)" in shown.stdout and "observe s" in shown.stdout

    saved = json.loads((room / "o.json").read_text())
    for item in saved["evaluations"]["options_only"]["items"]:
        item["correct"] = True
    (room / "marked.json").write_text(json.dumps(saved))
    third = here("evaluate", "--rescore", "marked.json", "--data", "data", "--json")
    assert third.stdout == done.stdout and "marked otherwise" in third.stderr
    with (room / "other" / "manifest.json").open("a") as manifest:
        manifest.write("\n")
    pooled = here("evaluate", *("--rescore", "o.json") * 2, "--data", "data", "--data", "other")
    assert pooled.returncode == 2 and "same data" in pooled.stderr
    other = here("evaluate", "--rescore", "o.json", "--data", "other")
    assert other.returncode == 2 and "measured on" in other.stderr and other.stdout == ""


def test_the_lineage_and_the_ablation(here: Command) -> None:
    given = ("--data", "data", "--sandbox", "bubblewrap", "--json")
    done = here("evaluate", "--all", *given, "--sample", "5", "--out", "sampled.json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert here("evaluate", "--all", "--rescore", "sampled.json", *given).stdout == done.stdout
    assert list(facts["measured"]) == list(library.lineage())
    assert all(figures["verdicts"] == {"OK": 5} for figures in facts["measured"].values()), facts["measured"]
    assert facts["measured"]["v47"]["accuracy"] == facts["measured"]["v49"]["accuracy"]  # there are no frames
    assert facts["measured"]["v49"]["gate_open"] is not None and facts["lineage"]["v49"]["parent"] == "v47"
    assert facts["measured_label"] == "measured here: lexical reader, no language model"

    done = here("ablate", "components", *given)
    assert done.returncode == 0, done.stderr
    drops = {row["variant"]: row for row in json.loads(done.stdout)["drops"]}
    assert len(drops) == 8 and drops["without specialists"]["reported_points"] == 2.4
    assert drops["without gated visual verification"]["lost_points"] == 0


def model(endpoint: Endpoint) -> dict[str, str]:
    return {"OPENAI_BASE_URL": endpoint.url, "HARNESS_MODEL": "m", "HARNESS_PROFILE": "openai"}


def test_no_reply_is_paid_for_twice(room: Path, here: Command, endpoint: Endpoint) -> None:
    fourth, go_on = threading.Event(), threading.Event()

    def say(body: dict[str, Any]) -> str:
        if len(endpoint.requests) == 4:
            fourth.set()
            go_on.wait(30)
        return '{"answer": "B"}'

    endpoint.say = say
    asked = ("evaluate", "--policy", "reading", "--data", "data", "--sandbox", "bubblewrap", "--workers", "1")
    started = subprocess.Popen(
        command(*asked), cwd=room, env=environment(model(endpoint)), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert fourth.wait(30)
    started.kill()
    started.communicate()
    go_on.set()
    done = here(*asked, "--json", env=model(endpoint))
    assert done.returncode == 0, done.stderr
    reading = json.loads(done.stdout)["reading"]
    assert reading["accuracy"] == 0.5 and reading["reader"] == "m" and not reading["offline"]
    assert reading["requests_per_question"] == 1 and reading["tokens_in_per_question"] == 10
    assert len(endpoint.requests) == 8 + 1  # eight questions, and the call that was in flight
    again = here(*asked, "--json", env=model(endpoint))
    assert again.returncode == 0 and len(endpoint.requests) == 9
    (kept,) = (room / "replies").iterdir()
    assert kept.name.startswith("tiny-") and kept.name.endswith("-openai") and (kept / "replies.db").is_file()


ASK = ("ask", "--policy", "reading", "--data", "data", "--sandbox", "bubblewrap")
CHOICES = ("--choice", "a hat", "--choice", "a boat")


def test_ask_with_choices(here: Command, harness: Command, room: Path) -> None:
    asked = (*ASK, "--at", "DAY2T12:00", "What does Bob wear?", *CHOICES)
    facts = json.loads(here(*asked, "--json").stdout)
    assert (facts["choice"], facts["text"], facts["route"], facts["open"]) == ("A", "a hat", "reading", False)
    assert [window["window"] for window in facts["evidence"]] == [20]
    assert facts["evidence"][0]["when"] == "DAY2 10:00:00–10:00:30" and facts["asked_at"] == "DAY2 12:00:00"
    assert facts["cost"]["requests"] == 1 and facts["cost"]["prompt_tokens"] > 0
    assert facts["offline"] and facts["seconds"]["all"] > 0

    shown = harness(*asked, cwd=room)
    assert shown.returncode == 0, shown.stderr
    assert "A. a hat" in shown.stdout and "reading" in shown.stdout and "DAY2 10:00:00" in shown.stdout
    assert "[bold red]x[/]\\x1b[31m\\u202eevil\\x07" in shown.stdout
    assert not {"\x1b", "\u202e", "\x07"} & set(shown.stdout)


def test_ask_without_choices(here: Command, endpoint: Endpoint, tmp_path: Path) -> None:
    asked = (*ASK, "--at", "DAY2T12:00", "What does Bob wear?")
    plain = here(*asked)
    assert "no model is configured" in plain.stdout and "Bob wears a hat." in plain.stdout

    endpoint.say = lambda body: f"A hat. {EVIL}"
    kept = ("--replies", str(tmp_path / "bought"))
    shown = here(*asked, *kept, env=model(endpoint))
    assert shown.returncode == 0, shown.stderr
    assert "A hat. [bold red]x[/]\\x1b[31m" in shown.stdout and "\x1b" not in shown.stdout
    (sent,) = endpoint.requests
    prompt = "\n".join(str(message["content"]) for message in sent["messages"])
    assert "Bob wears a hat." in prompt and "What does Bob wear?" in prompt
    assert "Name a letter" not in prompt and "secret" not in prompt
    facts = json.loads(here(*asked, *kept, "--json").stdout)
    assert facts["text"].startswith("A hat.") and facts["choice"] is None and facts["open"]
    assert facts["diagnostics"]["choices"] == ["", ""]
    assert len(endpoint.requests) == 1  # the stored reply


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("ask", "--at", "noon", "What?"), "noon"),
        (("ask", "--at", "DAY0T12:00", "What?"), "DAY0T12:00"),
        (("ask", "--at", "DAY2T24:00", "What?"), "DAY2T24:00"),
        (("ask", "--at", "nan", "What?"), "nan"),
        (("ask", "--at", "-1", "What?"), "-1"),
        (("ask", "--at", "DAY9T12:00", "What?"), "ends at DAY2"),
        (("ask", "--at", "29.9", "What?"), "nothing"),
        (("ask", "--at", "900", "  "), "0 characters"),
        (("ask", "--at", "900", "x" * 20_001), "20001"),
        (("ask", "--at", "900", "What?", "--choice", "one"), "--choice"),
        (("ask", "--at", "900", "What?", *("--choice", "x") * 11), "11"),
        (("ask", "--at", "900", "What?", "--type", "[x]"), "--type"),
        (("ask", "--at", "900", "What?", "--video", "v2"), "v1"),
        (("ask", "--at", "900", "What?\udcff"), "UTF-8"),
        (("ask", "--at", "900", "What?", "--policy", "nowhere"), "nowhere"),
        (("ask", "--at", "900", "What?", "--policy", "crashing"), "broken on purpose"),
        (("evaluate",), "--rescore"),
        (("evaluate", "--rescore", "data/manifest.json"), "manifest.json"),
        (("evaluate", "--rescore", "nowhere.json"), "nowhere.json"),
        (("evaluate", "--rescore", "x.json", "--policy", "first"), "--policy"),
        (("evaluate", "--policy", "first", "--split", "test"), "no test split"),
        (("evaluate", "--policy", "first", "--sample", "99"), "8 questions"),
        (("ablate", "components", "--data", "other"), "one data set at a time"),
    ],
    ids=lambda value: " ".join(value)[:60] if isinstance(value, tuple) else None,
)
def test_bad_input_is_one_line(here: Command, arguments: tuple[str, ...], word: str) -> None:
    given = ["--data", "data", "--sandbox", "bubblewrap"]
    if arguments[0] == "ask" and "--policy" not in arguments:
        given += ["--policy", "reading"]
    done = here(*arguments, *given)
    lines = done.stderr.strip().splitlines()
    assert done.returncode == 2 and done.stdout == "", done
    assert len(lines) == 1 and word in lines[0] and "Traceback" not in done.stderr, done.stderr
