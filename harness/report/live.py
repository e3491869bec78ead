"""The page of a run, served while the run goes on: on the loopback interface, behind a token, for reading only."""

from __future__ import annotations

import hmac
import json
import secrets
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from harness.display import visible
from harness.errors import UserError
from harness.report.page import Report
from harness.state.folder import AUDIT
from harness.state.store import RunStore

ADDRESS = "127.0.0.1"
TOKEN_BYTES = 24
TAIL_BYTES = 65_536
"""More than the longest audit line, twice."""
SECONDS = 20.0
"""A client that says nothing for so long is left."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # a page cannot say this of itself; the rest it does
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


def mark(folder: Path) -> str:
    """What changes whenever a stage was committed: the hash of the last whole audit line, found without opening the
    run's database, which may be large."""
    with (folder / AUDIT).open("rb") as file:
        file.seek(0, 2)
        file.seek(max(0, file.tell() - TAIL_BYTES))
        lines = file.read().split(b"\n")[:-1]
    return str(json.loads(lines[-1])["hash"]) if lines else "none"


class View(ThreadingHTTPServer):
    """Serves one run. ``address`` is where; ``serve_forever`` answers until ``shutdown``."""

    daemon_threads = True

    def __init__(self, folder: Path, port: int, data: Path | None = None) -> None:
        """``port`` 0 takes any that is free. Raises UserError where the port is taken or the run cannot be read."""
        self.folder = folder
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self._report = Report(data)
        self._lock = threading.Lock()
        self._made: tuple[str, bytes] = ("", b"")
        self.page()
        try:
            super().__init__((ADDRESS, port), _Handler)
        except OSError as error:
            raise UserError(f"port {port} cannot be used ({error.strerror}); name another one, or 0 for any") from None

    @property
    def address(self) -> str:
        """The address of the page, token included."""
        return f"http://{ADDRESS}:{self.server_port}/{self.token}/"

    def page(self) -> bytes:
        """The page as the run stands now; made again only when something was committed. Raises UserError."""
        with self._lock:
            now = self.mark()
            if now != self._made[0]:
                with RunStore.open(self.folder, write=False) as store:
                    html = self._report.page(store, live=now)
                self._made = now, html.encode("utf-8")
            return self._made[1]

    def mark(self) -> str:
        """See ``mark``. Raises UserError."""
        try:
            return mark(self.folder)
        except (OSError, ValueError, KeyError, TypeError):
            raise UserError(f"{self.folder / AUDIT} cannot be read; see: harness status --verify") from None


class _Handler(BaseHTTPRequestHandler):
    server: View
    server_version = "harness"
    sys_version = ""
    timeout = SECONDS

    def do_GET(self) -> None:
        if self.headers.get("Host") not in (
            f"{ADDRESS}:{self.server.server_port}",
            f"localhost:{self.server.server_port}",
        ):
            return self._answer(HTTPStatus.FORBIDDEN, "this is not the address of this server\n")
        _, _, rest = self.path.partition("/")
        token, _, name = rest.partition("/")
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.server.token.encode("ascii")):
            return self._answer(HTTPStatus.NOT_FOUND, "nothing here; use the whole address that was printed\n")
        try:
            if name == "":
                return self._answer(HTTPStatus.OK, self.server.page(), "text/html")
            if name == "head":
                return self._answer(HTTPStatus.OK, self.server.mark())
        except UserError as error:
            return self._answer(HTTPStatus.SERVICE_UNAVAILABLE, visible(str(error)) + "\n")
        return self._answer(HTTPStatus.NOT_FOUND, "nothing here\n")

    def _refuse(self) -> None:
        self._answer(HTTPStatus.METHOD_NOT_ALLOWED, "only GET is answered\n")

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse

    def _answer(self, status: HTTPStatus, body: str | bytes, kind: str = "text/plain") -> None:
        content = body.encode("utf-8") if isinstance(body, str) else body
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing: a request's line holds the token, or what a stranger put there."""
