"""The page in a real Chromium, on a phone and on a desk: any request, dialog or console line is a failure."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.report.page import Report
from harness.state.store import RunStore
from tests.report.browser import HOW, Chromium, Page

ROOT = Path(__file__).parents[2]
INERT = "test_every_view_of_a_hostile_run_is_inert[390]"


@pytest.fixture(scope="module")
def file(hostile_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "page.html"
    with RunStore.open(hostile_run, write=False) as store:
        path.write_text(Report().page(store), encoding="utf-8")
    return path


@pytest.fixture(params=[390, 1440])
def page(request: pytest.FixtureRequest, chromium: Chromium, file: Path) -> Iterator[Page]:
    opened = Page(chromium, file.as_uri(), request.param, dark=request.param == 390)
    yield opened
    opened.close()


def test_a_missing_browser_is_named_and_a_failure_in_ci(tmp_path: Path) -> None:
    """Where nothing may be installed: no package manager on the path."""
    (tmp_path / "git").symlink_to(str(shutil.which("git")))
    environment = {**os.environ, "PATH": str(tmp_path), "CI": "true"}
    for command in (["tests.report.browser"], ["pytest", "-q", "-p", "no:cacheprovider", f"{__file__}::{INERT}"]):
        done = subprocess.run(
            [sys.executable, "-m", *command], env=environment, cwd=ROOT, capture_output=True, text=True, check=False
        )
        assert done.returncode and "no Chromium here" in done.stdout + done.stderr and HOW in done.stdout + done.stderr


def test_every_view_of_a_hostile_run_is_inert(page: Page) -> None:
    width = page.run("innerWidth")
    for k in range(6):
        page.go(k)
        page.run("document.querySelectorAll('.questions summary').forEach((s, n) => n % 8 || s.click())")
        page.until("[...document.querySelectorAll('details[open]')].every((box) => box.children.length > 1)")
        page.run("document.querySelectorAll('.question summary').forEach((s) => s.click())")
        page.until("[...document.querySelectorAll('details[open]')].every((box) => box.children.length > 1)")
        assert page.run("document.documentElement.scrollWidth") <= width, k
    assert page.run("document.querySelectorAll('.evidence li').length") == 0  # the fifth was not measured
    page.go(1)
    page.run("document.querySelector('.questions summary').click()")
    assert page.until("document.querySelectorAll('svg.line .cite').length") == 12
    assert "<script>alert(1)</script>" in page.run("document.querySelector('.evidence').textContent")
    page.run("location.hash = 'attempts'")
    page.until("!document.getElementById('overview').hidden")
    assert page.run("document.documentElement.scrollWidth") <= width
    assert page.run("document.querySelectorAll('img, iframe, form, main script').length") == 0
    assert page.complaints == []


def test_letters_of_pictures_are_as_large_as_meant_and_figures_stand_in_view(page: Page) -> None:
    scale = "[...document.querySelectorAll('.pair svg')].map((s) => s.getScreenCTM().a)"
    assert min(page.run(scale)) > 0.9, page.run(scale)
    beyond = "[...document.querySelectorAll('.cards td')].filter((d) => d.getBoundingClientRect().right > innerWidth)"
    assert page.run(f"{beyond}.length") == 0


def test_a_script_that_got_in_would_not_run(page: Page) -> None:
    page.run(
        "(() => { const s = document.createElement('script'); s.textContent = 'window.ran = 1';"
        " document.body.append(s); })()"
    )
    page.run("(() => { const i = new Image(); i.src = 'http://127.0.0.1:1/x'; document.body.append(i); })()")
    assert page.run("window.ran === undefined")
    assert len([line for line in page.complaints if "Content Security Policy" in line]) == 2
    ended = [e["params"] for e in page.browser.events if e["method"] == "Network.loadingFailed"]
    assert [end["blockedReason"] for end in ended] == ["csp"]


def test_filters(page: Page) -> None:
    visible = "[...document.querySelectorAll('#list tbody tr')].filter((r) => r.offsetParent).length"
    type_in = (
        "((id, v) => { const f = document.getElementById(id); f.value = v; f.dispatchEvent(new Event('input')); })"
    )
    assert page.run(visible) == 6
    for field, value, rows in (("f-end", "static", 1), ("f-verdict", "malformed", 0), ("f-end", "malformed", 1)):
        page.run(f"{type_in}('{field}', '{value}')")
        assert page.run(visible) == rows, (field, value)
    page.run(f"{type_in}('f-end', ''); {type_in}('f-verdict', ''); {type_in}('f-text', '0002 SCRIPT')")
    assert page.run(visible) == 1
    assert page.run("document.getElementById('f-count').textContent") == "1 of 6"
    assert page.complaints == []


def press(page: Page, key: str, code: int = 0) -> None:
    text = {"text": key} if len(key) == 1 else {"text": "\r"} if key == "Enter" else {}
    for kind in ("keyDown", "keyUp"):
        more = text if kind == "keyDown" else {}
        page.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, **more)


def test_by_keyboard(page: Page) -> None:
    press(page, "Tab", 9)
    assert page.run("document.activeElement.className") == "skip"
    press(page, "/", 191)
    assert page.run("document.activeElement.id") == "f-text"
    press(page, "Escape", 27)
    page.run("document.querySelector('#row-1 a').focus()")
    press(page, "Enter", 13)
    shown = "document.querySelector('#h-attempt')?.innerText.startsWith('{}') && document.activeElement.id"
    assert page.until(shown.replace("{}", "0001")) == "attempt"
    press(page, "j", 74)
    assert page.until(shown.replace("{}", "0002")) == "attempt"
    press(page, "u", 85)
    assert page.until("!document.getElementById('overview').hidden")
    assert page.complaints == []
