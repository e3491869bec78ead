"""The page as text: what it may load, what hostile text becomes in it, what it tells, how large it grows."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
import subprocess
import unicodedata
import zlib
from collections.abc import Callable, Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from harness.cli.report import report
from harness.display import HIDDEN
from harness.errors import UserError
from harness.evaluation.metrics import wilson
from harness.report.page import Report
from harness.report.questions import Questions
from harness.report.safe import embedded, packed, shown
from harness.state.manifest import DataRef, RunManifest
from harness.state.store import RunStore
from sandbox.interface import Verdict
from tests.endtoend.conftest import command, environment
from tests.report.conftest import HOSTILE, QUESTIONS, make_evaluation

OFFLINE = "offline profile: no language model was called"


class Reading(HTMLParser):
    """Elements, attributes, the text outside scripts and styles, and what stands in each script and style."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.inside: list[tuple[str, dict[str, str | None], str]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("script", "style"):
            self.inside.append((tag, dict(attrs), ""))

    def handle_data(self, data: str) -> None:
        tag = self.tags[-1][0] if self.tags else ""
        if tag in ("script", "style") and self.cdata_elem:
            name, attributes, before = self.inside[-1]
            self.inside[-1] = name, attributes, before + data
        else:
            self.text += data

    def script(self, name: str) -> str:
        return next(body for _, attributes, body in self.inside if attributes.get("id") == name)

    def detail(self, key: object) -> Any:
        return json.loads(zlib.decompress(base64.b64decode(json.loads(self.script(f"d-{key}")))))


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.items() if isinstance(value, dict) else value:
            yield from strings(list(inner) if isinstance(inner, tuple) else inner)


def page(run: Path) -> str:
    with RunStore.open(run, write=False) as store:
        return Report().page(store)


def read(html: str) -> Reading:
    reading = Reading()
    reading.feed(html)
    return reading


@pytest.fixture(scope="module")
def html(hostile_run: Path) -> str:
    return page(hostile_run)


def test_the_policy_allows_the_files_own_style_and_script_and_nothing_else(html: str) -> None:
    found = read(html)
    policy = next(a["content"] for tag, a in found.tags if a.get("http-equiv") == "Content-Security-Policy")
    allowed = dict(part.split(" ", 1) for part in (policy or "").split("; "))
    style = next(body for tag, _, body in found.inside if tag == "style")
    script = next(body for tag, a, body in found.inside if tag == "script" and "type" not in a)
    for name, body in (("style-src", style), ("script-src", script)):
        assert allowed.pop(name) == f"'sha256-{base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()}'"
    assert allowed == {"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"}


def test_nothing_is_loaded_and_nothing_hostile_is_markup(html: str) -> None:
    found = read(html)
    assert not {tag for tag, _ in found.tags} & {
        "img",
        "iframe",
        "object",
        "embed",
        "link",
        "base",
        "form",
        "audio",
        "video",
    }
    scripts = [a for tag, a in found.tags if tag == "script"]
    assert sum("type" not in a for a in scripts) == 1 and all(a.get("type", "application/json") for a in scripts)
    for _, attributes in found.tags:
        assert not {name for name in attributes if name.startswith("on") or name in ("src", "style", "srcset")}
        assert (attributes.get("href") or "#").startswith("#")
    assert "<script>alert(1)</script>" in found.text  # it is there, as text
    assert "innerHTML" not in html and "insertAdjacentHTML" not in html and "document.write" not in html


def test_no_character_of_the_file_hides_reorders_or_controls(html: str) -> None:
    assert not {c for c in html if unicodedata.category(c) in HIDDEN} - {"\n"}
    assert r"\x1b[31mred" in html and r"\u202e" in read(html).text


def test_what_is_packed_is_safe_too(html: str) -> None:
    for key in ("1", "2", "4", "shared"):
        found = set("".join(strings(read(html).detail(key)))) - {"\n", "\t"}
        assert not {c for c in found if unicodedata.category(c) in HIDDEN}, key
    told = read(html).detail(1)
    assert (
        dict(told["hypothesis"])["what"].endswith("\nsecond line") and told["stages"][3]["findings"][0]["rule"] == "S03"
    )


@pytest.mark.parametrize("text", [HOSTILE, "a\tb\nc", "x" * 30_000, "\u2028</script>&\u2029<!--"])
def test_data_cannot_end_its_element(text: str) -> None:
    assert not set(embedded({"t": shown(text)})) & set("<>&\u2028\u2029")
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", packed(shown(text)))
    assert len(shown(text)) <= 6 * 20_000 and "\x1b" not in shown(text)


def test_the_page_of_an_attempt_says_what_the_run_says(html: str) -> None:
    told = read(html).detail(1)
    interval = wilson(10, QUESTIONS)
    low, high = f"{100 * interval.low:.1f}", f"{100 * interval.high:.1f}"
    (what, expected, measured), tokens, latency = told["effect"]
    assert what == "accuracy" and expected.startswith("</script>")
    assert measured.startswith(f"41.7 % (95 %: {low}–{high}, n = 24); +16.7 points against the parent (95 %: ")
    assert tokens[2] == "1,100 a question; parent 1,000 (+10 %); counted offline"
    assert latency[2].startswith("0.020 s a question (median); parent 0.010 s (+100 %)")
    assert " ".join(stage["stage"] for stage in told["stages"]) == (
        "recall propose intake static develop validate promote remember"
    )
    assert told["types"][0][:3] == ["EventRecall", 24, 0.4167] and told["types"][0][5] == 0.25
    figures = {name: values for name, *values in told["figures"]}
    assert figures["right %"] == ["41.7", "41.7"] and figures["not answered"] == ["1", "1"]
    assert figures["of them answering"] == ["1,100", "1,100"] and figures["evidence hits %"][0] == "no oracle times"
    rejected = read(html).detail(3)
    finding = next(s for s in rejected["stages"] if s["stage"] == "static")["findings"][0]
    assert finding["where"] == "policy.py:2" and finding["code"] == "class Policy:" and finding["title"]
    assert told["diff"].startswith("--- a/policy.py\n+++ b/policy.py\n@@") and "+    x = '''1'''" in told["diff"]
    assert read(html).detail(4)["malformed"].startswith("</script>") and read(html).detail(4)["answers"] is None


def test_evidence_comes_back_as_the_answer_named_it(html: str) -> None:
    answers, shared = read(html).detail(2)["answers"], read(html).detail("shared")
    for item, row, cited in zip(make_evaluation(8, 2).items, answers["evidence"], answers["cited"], strict=True):
        windows, at = row[: shared["first"]], 0
        for step in row[shared["first"] :]:
            windows.append(at := at + step)
        assert (windows[:4], sorted(windows), cited) == ([*item.evidence[:4]], sorted(item.evidence), 12)
        assert set(map(str, windows)) <= shared["windows"]["v1"].keys()
    assert answers["verdicts"][str(QUESTIONS - 1)][0] == "CRASH"


@pytest.mark.parametrize("allowed", [False, True])
def test_single_answers_are_marked_only_where_the_run_lets_authors_see_it(
    new_run: Callable[..., Path], allowed: bool
) -> None:
    found = read(page(new_run(correctness=allowed)))
    marks = found.detail(1)["answers"]["correct"]
    assert marks == ([1] * 10 + [0] * 14 if allowed else None) and found.detail("shared")["correctness"] is allowed
    if not allowed:
        assert "correct" not in json.dumps({k: v for k, v in found.detail(1)["answers"].items() if k != "correct"})


def test_the_overview(html: str) -> None:
    found = read(html)
    facts = json.loads(found.script("facts"))
    assert [(row["k"], row["end"]) for row in facts["rows"]] == [
        (0, "start"), (1, "promoted"), (2, "develop"), (3, "static"), (4, "malformed"), (5, "running"),
    ]  # fmt: skip
    assert [row["k"] for row in facts["rows"] if row["verdict"] == "on the frontier"] == [0, 1]
    assert found.text.count(OFFLINE) == 6  # over the page, and over each section with figures
    assert "CRASH" in found.text and "researcher · propose" in found.text and "$0.2500" in found.text
    ids = [a["id"] for _, a in found.tags if "id" in a]
    assert len(ids) == len(set(ids))
    targets = {a["href"][1:] for tag, a in found.tags if tag == "a" and a.get("href")}
    assert {t for t in targets if not t.startswith("attempt-")} <= set(ids)


def test_a_real_profile_has_no_offline_label(new_run: Callable[..., Path]) -> None:
    assert OFFLINE not in read(page(new_run(profile="models"))).text


def test_without_the_data_the_page_says_so(new_run: Callable[..., Path]) -> None:
    run = new_run()
    (run.parent.parent / "data" / "hostile" / "manifest.json").unlink()
    shared = read(page(run)).detail("shared")
    assert "is not here" in shared["note"] and shared["windows"] == {} and shared["questions"][0][0] == "q0"


def test_a_run_that_has_just_begun(tmp_path: Path) -> None:
    made = RunManifest(
        name="new", created="", seed=1, parent="v00", profile="offline", config={}, sandbox="none", h0={},
        data=DataRef(name="d", digest="d", path="nowhere"), runtime_digest="r",
    )  # fmt: skip
    RunStore.create(tmp_path / "new", made).close()
    found = read(page(tmp_path / "new"))
    assert "starting policy v00" in found.text and found.detail(0)["answers"] is None
    assert "nan" not in found.text.casefold().split()


def test_reading_changes_nothing(hostile_run: Path) -> None:
    before = {p: p.read_bytes() for p in hostile_run.rglob("*") if p.is_file()}
    page(hostile_run)
    assert {p: p.read_bytes() for p in hostile_run.rglob("*") if p.is_file()} == before


def test_five_hundred_attempts_of_a_week_stay_small() -> None:
    """490 questions, 64 windows of 6,000 each, drawn without any pattern that deflating could use."""
    draw = random.Random(1)
    questions = Questions(None, "", False, 400)
    items = [
        item.model_copy(
            update={"evidence": tuple(draw.sample(range(6_000), 64)), "verdict": Verdict.OK, "route": "reader"}
        )
        for item in make_evaluation(200, 1, n=490).items
    ]
    answers = questions.of(make_evaluation(1, 1).model_copy(update={"items": tuple(items)}))
    assert len(packed(answers)) * 400 < 17_000_000
    assert {len(row) for row in answers["evidence"]} == {20} and set(answers["cited"]) == {64}


def test_the_command(hostile_run: Path, tmp_path: Path) -> None:
    arguments = command("report", str(hostile_run), "--out", "page.html")
    done = subprocess.run(arguments, cwd=tmp_path, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0 and OFFLINE in done.stdout and "\x1b" not in done.stdout
    assert (tmp_path / "page.html").read_text().startswith("<!doctype html>")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["RUN", "--out", "/nothing/here/page.html"], "--out"),
        (["no-such-run"], "no run 'no-such-run'"),
        (["RUN", "--data", "/nothing/here"], "manifest.json"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(hostile_run: Path, arguments: list[str], words: str) -> None:
    given = [str(hostile_run) if argument == "RUN" else argument for argument in arguments]
    with pytest.raises(UserError, match=re.escape(words)):
        report.main(given, standalone_mode=False)


def test_what_was_never_measured_says_how_to_measure_it(html: str) -> None:
    found = read(html)
    measured = {k: found.detail(k)["effect"][0][2] if found.detail(k)["effect"] else "" for k in range(6)}
    assert measured[3].endswith("harness replay 3 --stage develop")
    assert [k for k, text in measured.items() if "harness replay" in text] == [3]
