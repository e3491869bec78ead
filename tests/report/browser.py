"""A real Chromium over its debugging pipe: what it was asked to fetch, what it said, what the page looks like.

``python -m tests.report.browser`` installs one where there is none (Debian, as root).
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sandbox.engine import EngineError
from sandbox.engine.daemon import apt_install

SECONDS = 60.0
HOW = "apt-get install chromium as root on Debian; elsewhere any Chromium or Chrome whose program is on the path"


def find() -> str | None:
    """The program, or None."""
    return next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def ensure() -> str:
    """What browser there is, as one line; on Debian as root it is installed. Raises EngineError."""
    if program := find():
        return f"Chromium is here: {program}"
    debian = shutil.which("apt-get") and "ID=debian" in Path("/etc/os-release").read_text().splitlines()
    if not debian or os.geteuid() != 0:
        raise EngineError(f"no Chromium here, so the report is not looked at in a browser: {HOW}")
    print("installing chromium", file=sys.stderr)
    began = time.monotonic()
    apt_install(["chromium"])
    return f"Chromium is installed ({time.monotonic() - began:.0f} s)"


class Chromium:
    """One headless browser with one page at a time. Commands and events travel as JSON ended by a zero byte."""

    def __init__(self, program: str, profile: Path) -> None:
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()

        def connect() -> None:
            low, high = os.dup(theirs_in), os.dup(theirs_out)
            os.dup2(low, 3)
            os.dup2(high, 4)

        flags = (
            "--headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --remote-debugging-pipe --no-first-run "
            "--disable-background-networking --disable-component-update --disable-sync --hide-scrollbars"
        )
        self.process = subprocess.Popen(
            ["nice", "-n", "19", program, *flags.split(), f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=connect,
            close_fds=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for end in (theirs_in, theirs_out):
            os.close(end)
        self._in, self._out = ours_in, ours_out
        self._buffer, self._number = b"", 0
        self.events: list[dict[str, Any]] = []

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._in)
        os.close(self._out)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events met on the way are kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda found: found.get("id") == self._number)
        assert "error" not in answer, (method, answer["error"])
        result: dict[str, Any] = answer["result"]
        return result

    def wait(self, method: str, session: str) -> dict[str, Any]:
        """The first event of a kind since the page was opened."""
        for event in self.events:
            if event["method"] == method and event.get("sessionId") == session:
                return event
        return self._until(lambda found: found.get("method") == method and found.get("sessionId") == session)

    def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while True:
            while b"\0" in self._buffer:
                raw, self._buffer = self._buffer.split(b"\0", 1)
                found = json.loads(raw)
                if "method" in found:
                    self.events.append(found)
                if wanted(found):
                    return dict(found)
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError("the browser does not answer")
            read = os.read(self._in, 1 << 20)
            assert read, "the browser ended"
            self._buffer += read


class Page:
    """One page at one width. ``complaints`` are requests, dialogs, console lines and errors."""

    def __init__(self, browser: Chromium, url: str, width: int, dark: bool = False) -> None:
        self.browser, self.url = browser, url
        browser.events.clear()
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.target = target
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 700
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=scheme)
        self.call("Page.navigate", url=url)
        browser.wait("Page.loadEventFired", self.session)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def run(self, script: str) -> Any:
        """The value of an expression, promises awaited."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, condition: str) -> Any:
        """The value of an expression as soon as it is true; a page that is just being replaced is asked again."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            with contextlib.suppress(AssertionError):
                if found := self.run(condition):
                    return found
            time.sleep(0.02)
        raise TimeoutError(condition)

    def go(self, k: int) -> None:
        """Open an attempt and wait until it is drawn."""
        self.run(
            f"new Promise((done) => {{ location.hash = 'attempt-{k}'; const look = () => (document.querySelector("
            f"'#h-attempt')?.textContent.startsWith('{k:04d}') ? done() : setTimeout(look, 10)); look(); }})"
        )

    def picture(self, path: Path, whole: bool = False) -> None:
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))

    @property
    def complaints(self) -> list[str]:
        self.run("1")  # events that are on their way arrive before this answer
        told = []
        for event in self.browser.events:
            if event.get("sessionId") != self.session:
                continue
            method, given = event["method"], event["params"]
            if (
                method == "Network.requestWillBeSent"
                and given["request"]["url"].split("#")[0] != self.url.split("#")[0]
            ):
                told.append(f"request {given['request']['url'][:200]}")
            elif method in ("Page.javascriptDialogOpening", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                told.append(f"{method} {json.dumps(given)[:300]}")
            elif method == "Log.entryAdded":
                told.append(f"log {given['entry'].get('text', '')[:300]}")
        return told

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self.target)


def main() -> int:
    """Exit 2 where there is no browser in the end."""
    try:
        print(ensure())
    except EngineError as error:
        print(f"tests: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
