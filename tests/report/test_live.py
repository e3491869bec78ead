"""The served page: who is answered what, and that it follows a run that another process writes."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.errors import UserError
from harness.report.live import HEADERS, View
from harness.state.store import RunStore
from tests.report.browser import Chromium, Page
from tests.report.conftest import Maker


@contextmanager
def serving(run: Path) -> Iterator[View]:
    with View(run, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def still(hostile_run: Path) -> Iterator[View]:
    """A run that does not go on."""
    with serving(hostile_run) as view:
        yield view


@pytest.fixture
def view(new_run: Callable[..., Path]) -> Iterator[View]:
    with serving(new_run()) as view:
        yield view


def ask(view: View, path: str, method: str = "GET", host: str | None = "") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", view.server_port, timeout=10)
    connection.putrequest(method, path, skip_host=True)
    if host is not None:
        connection.putheader("Host", host or f"127.0.0.1:{view.server_port}")
    connection.endheaders()
    return connection.getresponse()


def test_the_page_is_there_with_its_token_only(still: View) -> None:
    found = ask(still, f"/{still.token}/")
    assert found.status == 200 and found.read().startswith(b"<!doctype html>")
    assert {name: found.headers[name] for name in HEADERS} == HEADERS
    assert ask(still, f"/{still.token}/", host=f"localhost:{still.server_port}").status == 200
    assert still.server_address[0] == "127.0.0.1" and len(still.token) == 32


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "//",
        "/TOKEN",
        "/wrong/",
        "/%74OKEN/",
        "/TOKEN/run.db",
        "/TOKEN/../run.db",
        "/TOKEN//",
        "TOKEN/",
        "/%C3%A9/",
    ],
)
def test_nothing_else_is(still: View, path: str) -> None:
    asked = path.replace("TOKEN", still.token if "run.db" in path or path == "/TOKEN//" else still.token[:-1])
    found = ask(still, asked)
    assert found.status == 404 and b"<" not in found.read()


@pytest.mark.parametrize("host", [None, "evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:80@127.0.0.1"])
def test_another_host_is_refused(still: View, host: str | None) -> None:
    assert ask(still, f"/{still.token}/", host=host).status == 403


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_get_is_answered(still: View, method: str) -> None:
    found = ask(still, f"/{still.token}/", method)
    assert found.status == 405 and still.token.encode() not in found.read()


def go_on(run: Path, k: int) -> None:
    now = iter(range(1_500_000_000, 2_000_000_000))
    with RunStore.open(run, write=True, clock=lambda: float(next(now))) as store:
        Maker(store).remembered(5, 1, "develop") if k == 5 else Maker(store).candidate(k, 1, 9, "develop")


def test_it_follows_the_run_and_reads_only_what_is_new(view: View) -> None:
    first = ask(view, f"/{view.token}/").read()
    assert view.page() is view.page()
    go_on(view.folder, 5)
    go_on(view.folder, 6)
    second = ask(view, f"/{view.token}/").read()
    assert b'id="row-6"' in second and b'id="row-6"' not in first
    assert ask(view, f"/{view.token}/head").read().decode() in second.decode()
    with View(view.folder, 0) as fresh:
        strip = view.mark().encode()
        assert fresh.page().replace(strip, b"") == second.replace(strip, b"")


def test_while_a_writer_is_at_work_the_page_shows_what_is_committed(new_run: Callable[..., Path]) -> None:
    run = new_run()
    with RunStore.open(run, write=True, clock=lambda: 1.6e9) as store:
        Maker(store).remembered(5, 1, "develop")
        with View(run, 0) as view:
            assert b'"k":5,"parent":1' in view.page() and b'"end":"running"' not in view.page()


def test_what_cannot_be_served_is_said_in_a_line(view: View, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=f"port {view.server_port} cannot be used"):
        View(view.folder, view.server_port)
    with pytest.raises(UserError, match="cannot be read"):
        View(tmp_path / "nothing", 0)
    (view.folder / "audit.jsonl").write_text("torn\n")
    found = ask(view, f"/{view.token}/")
    assert found.status == 503 and found.read().count(b"\n") == 1


def test_in_chromium_it_renews_itself_and_keeps_place_and_filters(chromium: Chromium, view: View) -> None:
    page = Page(chromium, view.address, 390)
    page.run("(() => { const f = document.getElementById('f-text'); f.value = '000'; f.focus(); })()")
    assert page.run("document.getElementById('row-6')") is None
    go_on(view.folder, 5)
    go_on(view.folder, 6)
    fields = "document.getElementById('f-text').value + document.activeElement.id"
    assert page.until(f"document.getElementById('row-6') && document.activeElement.id && {fields}") == "000f-text"
    asked = {line.removeprefix("request ").rsplit("/", 1)[1] for line in page.complaints if line.startswith("request")}
    assert asked == {"head"} and all(line.startswith("request") for line in page.complaints)
    page.close()
