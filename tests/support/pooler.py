"""A transaction pooler for PostgreSQL, as small as one can be: what PgBouncer does to its clients.

Owns the sessions at the server and lends one for each transaction, never the same twice in a row.
A client is given a process number that is not the server's. What arrives from the server while
nobody has the session, notifications above all, is lost.
"""

from __future__ import annotations

import secrets
import socket
import struct
import threading
from collections import deque
from typing import Self
from urllib.parse import urlsplit

_SSL, _GSS = 80877103, 80877104
_READY, _KEY, _PARAMETER = b"Z", b"K", b"S"


class TransactionPooler:
    """Lends sessions until it is closed.

    with TransactionPooler.to(url) as pooler:
        app = Holdfast(pooler.url)
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._lock = threading.Lock()
        self._idle: dict[bytes, deque[_Session]] = {}
        self._sockets: set[socket.socket] = set()
        self.url = ""
        self.transactions = 0
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def to(cls, url: str) -> Self:
        """A pooler before the server of this URL; its own `url` leads through it."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        pooler = cls(parts.hostname, parts.port)
        port = pooler._server.getsockname()[1]
        pooler.url = url.replace(f":{parts.port}/", f":{port}/")
        return pooler

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.close()
        with self._lock:
            open_ones = list(self._sockets)
            open_ones += [s.wire.socket for idle in self._idle.values() for s in idle]
        for each in open_ones:
            try:
                each.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            each.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with self._lock:
                self._sockets.add(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        wire, session = _Wire(client), None
        try:
            startup = _startup(wire)
            session = self._take(startup)
            key = struct.pack("!ii", secrets.randbits(30), secrets.randbits(30))
            wire.send(b"R", struct.pack("!i", 0))
            for parameter in session.parameters:
                wire.send(_PARAMETER, parameter)
            wire.send(_KEY, key)
            wire.send(_READY, b"I")
            self._give_back(startup, session)
            session = None
            while True:
                kind, body = wire.receive()
                if kind == b"X":
                    return
                if session is None:
                    session = self._take(startup)
                    self.transactions += 1
                session.wire.send(kind, body)
                # A simple query or a Sync: the server answers now, and says how it stands.
                if kind in (b"Q", b"S") and session.answer(wire) == b"I":
                    self._give_back(startup, session)
                    session = None
        except (OSError, EOFError):
            pass
        finally:
            client.close()
            if session is not None:
                session.wire.socket.close()

    def _take(self, startup: bytes) -> _Session:
        with self._lock:
            idle = self._idle.setdefault(startup, deque())
            # Two at least, and the one that has rested longest: never the same twice in a row.
            if len(idle) > 1:
                session = idle.popleft()
                session.wire.drain()
                return session
        return _Session(socket.create_connection(self._target), startup)

    def _give_back(self, startup: bytes, session: _Session) -> None:
        with self._lock:
            self._idle[startup].append(session)


class _Session:
    """One session at the server."""

    def __init__(self, connection: socket.socket, startup: bytes) -> None:
        self.wire = _Wire(connection)
        self.parameters: list[bytes] = []
        connection.sendall(struct.pack("!i", len(startup) + 4) + startup)
        while True:
            kind, body = self.wire.receive()
            if kind == _PARAMETER:
                self.parameters.append(body)
            elif kind == _READY:
                return
            elif kind == b"E":
                raise EOFError(body)

    def answer(self, client: _Wire) -> bytes:
        """Pass on the answer; how the session stands then."""
        while True:
            kind, body = self.wire.receive()
            client.send(kind, body)
            if kind == _READY:
                return body


class _Wire:
    """Messages of PostgreSQL's protocol over a socket."""

    def __init__(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = connection

    def read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = self.socket.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data

    def receive(self) -> tuple[bytes, bytes]:
        head = self.read(5)
        return head[:1], self.read(struct.unpack("!i", head[1:])[0] - 4)

    def send(self, kind: bytes, body: bytes) -> None:
        self.socket.sendall(kind + struct.pack("!i", len(body) + 4) + body)

    def drain(self) -> None:
        """Forget what has arrived."""
        self.socket.setblocking(False)
        try:
            while self.socket.recv(65_536):
                pass
        except BlockingIOError:
            pass
        finally:
            self.socket.setblocking(True)


def _startup(wire: _Wire) -> bytes:
    """The client's startup message, without its length; encryption is declined."""
    while True:
        body = wire.read(struct.unpack("!i", wire.read(4))[0] - 4)
        if struct.unpack("!i", body[:4])[0] not in (_SSL, _GSS):
            return body
        wire.socket.sendall(b"N")
