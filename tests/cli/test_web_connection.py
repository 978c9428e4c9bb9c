"""Connections to `holdfast web`: who says nothing is not waited for, and who asks is."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import uvicorn

from holdfast.cli.web_connection import WebConnection
from tests.support.deadline import until

PATIENCE = 0.3
ANSWER = b"HTTP/1.1 200 OK"


async def asked(scope: Any, receive: Any, send: Any) -> None:
    """Answers at once, but what is slow after three times the patience."""
    if scope["path"] == "/slow":
        await asyncio.sleep(3 * PATIENCE)
    length = [(b"content-length", b"2")]
    await send({"type": "http.response.start", "status": 200, "headers": length})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    monkeypatch.setattr("holdfast.cli.web_connection.PATIENCE", PATIENCE)
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(asked, http=WebConnection, ws="none", lifespan="off", log_config=None)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    until(lambda: server.started)
    yield listener.getsockname()[1]
    server.should_exit = True
    thread.join()
    listener.close()


def connect(port: int, text: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), 10)
    connection.sendall(text)
    return connection


def is_closed(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        connection.settimeout(10)


@pytest.mark.parametrize("text", [b"", b"GET / HTTP/1.1\r\nHost: x\r\nX: "])
def test_who_asks_nothing_is_not_waited_for(text: bytes, port: int) -> None:
    with connect(port, text) as silent, connect(port, text) as slow:

        def say_a_letter() -> bool:
            try:
                slow.sendall(b"a")
            except OSError:
                return True
            return is_closed(slow)

        until(lambda: is_closed(silent), within=10)
        until(say_a_letter, within=10)


def test_who_has_asked_is_answered_however_long_it_takes(port: int) -> None:
    with connect(port, b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n") as patient:
        assert patient.recv(1000).startswith(ANSWER)
        until(lambda: is_closed(patient), within=10)


def test_who_goes_on_asking_keeps_the_connection(port: int) -> None:
    with connect(port, b"") as busy:
        end = time.monotonic() + 4 * PATIENCE
        while time.monotonic() < end:
            busy.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            found = b""
            while not found.endswith(b"ok"):
                found += busy.recv(1000)


def test_another_protocol_is_not_spoken(port: int, caplog: pytest.LogCaptureFixture) -> None:
    upgrade = b"Host: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    with connect(port, b"GET / HTTP/1.1\r\n" + upgrade) as other:
        assert other.recv(1000).startswith(ANSWER)
    assert "pip install" not in caplog.text
