"""Live page: the report of a continuous campaign, on the loopback interface, renewed with each request.

Each user of the machine can open the port. So the path has a random word, and no other path exists. Requests from pages
of other sites fail, because these have another Host (DNS rebinding), or not that word.
"""

import secrets
import sys
from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any, Final

from fuzz.errors import PgduelError

_ADDRESS: Final = "127.0.0.1"
_TIMEOUT: Final = 10.0  # seconds in which a client must send its request
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
}


class LivePage(HTTPServer):
    """A server of one page. The kernel chooses the port."""

    def __init__(self, page: Callable[[], str]) -> None:
        """`page` returns the present page; it may raise PgduelError."""
        super().__init__((_ADDRESS, 0), _Handler)
        self.page = page
        self.path = f"/{secrets.token_urlsafe()}/"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore that a client is gone; print all else."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)

    @property
    def hosts(self) -> tuple[str, ...]:
        """Return the values of the header Host that browsers send."""
        return tuple(f"{name}:{self.server_port}" for name in (_ADDRESS, "localhost"))

    @property
    def address(self) -> str:
        """Return the page's URL."""
        return f"http://{self.hosts[0]}{self.path}"


class _Handler(BaseHTTPRequestHandler):
    """Handler of GET and HEAD; http.server refuses all other methods."""

    timeout = _TIMEOUT
    server: LivePage
    server_version = "pgduel"
    sys_version = ""

    def do_GET(self) -> None:
        """Send the page."""
        self._respond(with_body=True)

    def do_HEAD(self) -> None:
        """Send the headers of the page."""
        self._respond(with_body=False)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""

    def _respond(self, *, with_body: bool) -> None:
        status, kind, text = self._response()
        body = text.encode(errors="replace")
        self.send_response(status)
        for name, value in (_HEADERS | {"Content-Type": f"{kind}; charset=utf-8"}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if with_body:
            self.wfile.write(body)

    def _response(self) -> tuple[HTTPStatus, str, str]:
        """Return status, type and text."""
        allowed = self.headers.get("Host") in self.server.hosts
        if not allowed or not secrets.compare_digest(self.path.encode(), self.server.path.encode()):
            return HTTPStatus.NOT_FOUND, "text/plain", "not found\n"
        try:
            return HTTPStatus.OK, "text/html", self.server.page()
        except PgduelError as error:
            return HTTPStatus.INTERNAL_SERVER_ERROR, "text/plain", f"{error}\n"
