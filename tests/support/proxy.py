"""A TCP proxy that loses answers, cuts connections, or falls silent, on command.

Owns the path between a client and a server. A lost answer is the fault worth having it for: the
server has done what was asked, and the client cannot know.
"""

from __future__ import annotations

import socket
import threading
from typing import Self
from urllib.parse import urlsplit

_CHUNK = 65_536


class Proxy:
    """Forwards to one address until told otherwise.

    with Proxy.to(url) as proxy:
        store = open_store(proxy.url)
        proxy.lose_answer_to(b"COMMIT")
    """

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._flowing = threading.Event()
        self._flowing.set()
        self._lock = threading.Lock()
        self._pairs: set[_Pair] = set()
        self._fatal: bytes | None = None
        self.url = ""
        self.lost = 0
        """How many answers were lost."""
        threading.Thread(target=self._accept, daemon=True).start()

    @classmethod
    def to(cls, url: str) -> Self:
        """A proxy before the server of this URL; its own `url` leads through it."""
        parts = urlsplit(url)
        assert parts.hostname is not None
        assert parts.port is not None
        proxy = cls(parts.hostname, parts.port)
        proxy.url = url.replace(f":{parts.port}/", f":{proxy.port}/")
        return proxy

    @property
    def port(self) -> int:
        return int(self._server.getsockname()[1])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def lose_answer_to(self, request: bytes | None) -> None:
        """Pass on each message that holds these bytes, then cut instead of answering."""
        self._fatal = request

    def cut(self) -> None:
        """Drop every connection, as a crashed router would after sending RST."""
        with self._lock:
            pairs, self._pairs = self._pairs, set()
        for pair in pairs:
            pair.close()

    def mute(self) -> None:
        """Pass on nothing any more; connections stay open."""
        self._flowing.clear()

    def unmute(self) -> None:
        self._flowing.set()

    def close(self) -> None:
        try:
            # `close` alone lets the thread that waits in `accept` take one more.
            self._server.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._server.close()
        self._flowing.set()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            try:
                server = socket.create_connection(self._target)
            except OSError:
                client.close()
                continue
            pair = _Pair(client, server)
            with self._lock:
                self._pairs.add(pair)
            for run in (self._requests, self._answers):
                threading.Thread(target=run, args=(pair,), daemon=True).start()

    def _requests(self, pair: _Pair) -> None:
        while data := pair.read(pair.client):
            self._flowing.wait()
            if self._fatal is not None and self._fatal in data:
                pair.doomed = True
            pair.write(pair.server, data)
        pair.close()

    def _answers(self, pair: _Pair) -> None:
        while data := pair.read(pair.server):
            self._flowing.wait()
            if pair.doomed:
                self.lost += 1
                break
            pair.write(pair.client, data)
        pair.close()


class _Pair:
    """The two sockets of one forwarded connection."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.client = client
        self.server = server
        self.doomed = False

    def read(self, side: socket.socket) -> bytes:
        try:
            return side.recv(_CHUNK)
        except OSError:
            return b""

    def write(self, side: socket.socket, data: bytes) -> None:
        try:
            side.sendall(data)
        except OSError:
            pass

    def close(self) -> None:
        for side in (self.client, self.server):
            try:
                # Wakes the thread that reads from it, which `close` alone does not.
                side.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            side.close()
