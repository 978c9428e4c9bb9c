"""The worker's own port: `/health/live`, `/health/ready`, `/metrics`.

Owns the socket and its threads. Whoever asks can never harm the queue: at most `_MOST` connections
are open at a time and none for longer than `_LONGEST`, the store is read by one thread at a time
and not again before that has rested, and no thread of the worker ever waits for one of these. It
takes GET and HEAD, tells names and numbers but no payloads, and changes nothing.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from socketserver import ThreadingMixIn
from time import monotonic
from typing import Any, Final, cast

from holdfast.core.errors import ConfigError
from holdfast.core.metrics import CONTENT_TYPE
from holdfast.runtime.http_address import HttpAddress

log = logging.getLogger("holdfast.worker")

_MOST: Final = 16
_LONGEST: Final = 10.0
_SILENT: Final = 5.0
_LOOK: Final = 0.5
_IDLE: Final = 60.0
_PLAIN: Final = "text/plain; charset=utf-8"


class HttpPort:
    """Listens from when it is made, answers from `start` to `close`."""

    def __init__(
        self,
        address: HttpAddress,
        *,
        why_not: Callable[[], str | None],
        metrics: Callable[[], str],
    ) -> None:
        """`why_not` says what keeps the worker from being ready, `metrics` gives the text."""
        try:
            self._server = _Server(address, why_not, metrics)
        except (OSError, OverflowError) as error:
            raise ConfigError(
                f"the worker cannot listen at http={str(address)!r} ({error}): give an address of "
                "this machine and a port that is free",
                option="http",
            ) from error
        self._thread = threading.Thread(
            target=self._server.serve, name="holdfast-http", daemon=True
        )

    @property
    def port(self) -> int:
        """Where it listens; the system has chosen it if 0 was asked for."""
        return int(self._server.server_address[1])

    def start(self) -> None:
        """Answer from now on."""
        self._thread.start()
        log.info("health and metrics at http://%s", self._server.where.at(self.port))
        if not self._server.where.is_loopback:
            log.info(
                "whoever reaches that address can read the names of queues and tasks, and counts"
            )

    def close(self) -> None:
        """Answer no more."""
        if self._thread.ident is not None:
            self._server.end()
            self._thread.join(_LOOK * 2)
        self._server.server_close()


class _Server(ThreadingMixIn, HTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = _MOST

    def __init__(
        self,
        address: HttpAddress,
        why_not: Callable[[], str | None],
        metrics: Callable[[], str],
    ) -> None:
        self.where = address
        self.why_not = why_not
        self.metrics = metrics
        self._open: dict[socket.socket, float] = {}
        self._is_ended = False
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if address.is_ipv6 else socket.AF_INET
        super().__init__((address.host, address.port), _Answer)

    def server_bind(self) -> None:
        # Not HTTPServer's: that asks the resolver for the machine's name.
        if self.allow_reuse_address:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = self.where.host, int(self.server_address[1])

    def serve(self) -> None:
        """Answer until it is ended."""
        while not self._is_ended:
            self.socket.settimeout(_LOOK if self._open else _IDLE)
            self.handle_request()
            self._end_late()

    def end(self) -> None:
        """Have `serve` return, and not only after its next look."""
        self._is_ended = True
        with socket.socket(self.address_family) as caller:
            caller.settimeout(_LOOK)
            try:
                caller.connect(self.socket.getsockname()[:2])
            except OSError:
                # It looks by itself soon.
                pass

    def process_request(self, request: Any, client_address: Any) -> None:
        with self._lock:
            is_full = len(self._open) >= _MOST
            if not is_full:
                self._open[request] = monotonic()
        if is_full:
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:
            # There can be no more threads; the worker's own are more important.
            self.shutdown_request(request)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def _end_late(self) -> None:
        """End connections that are kept open for too long."""
        oldest = monotonic() - _LONGEST
        with self._lock:
            late = [each for each, since in self._open.items() if since < oldest]
        for each in late:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                # It has just been closed.
                pass

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever asked has gone, or asks nonsense: nothing that a log should hold."""
        log.debug("a request to the worker's port failed: %s", type(sys.exception()).__name__)


class _Answer(BaseHTTPRequestHandler):
    timeout = _SILENT
    server_version = "holdfast"
    sys_version = ""

    @property
    def _asked(self) -> _Server:
        return cast("_Server", self.server)

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        if self.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
            # A page of somebody else's, in a browser on this machine.
            self._say(403, "a page of another site may not ask")
            return
        match self.path.partition("?")[0]:
            case "/health/live":
                self._tell(200, {"status": "live"})
            case "/health/ready":
                reason = self._asked.why_not()
                if reason is None:
                    self._tell(200, {"status": "ready"})
                else:
                    self._tell(503, {"status": "not ready", "reason": reason})
            case "/metrics":
                self._send(200, CONTENT_TYPE, self._asked.metrics())
            case _:
                self._say(404, "there are /health/live, /health/ready and /metrics")

    def _tell(self, status: int, document: dict[str, str]) -> None:
        self._send(status, "application/json", json.dumps(document) + "\n")

    def _say(self, status: int, text: str) -> None:
        self._send(status, _PLAIN, text + "\n")

    def _send(self, status: int, kind: str, text: str) -> None:
        body = text.encode("utf-8", "backslashreplace")
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name it has
        """Nobody wants a line for each probe."""
