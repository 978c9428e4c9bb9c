"""The worker's own port: what it answers, and what nobody can do to it."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from holdfast.core.errors import ConfigError
from holdfast.runtime.http_address import HttpAddress
from holdfast.runtime.supervisor import http_port
from holdfast.runtime.supervisor.http_port import HttpPort
from tests.support.deadline import until

HERE = HttpAddress("127.0.0.1", 0)


class Worker:
    """What the port is told."""

    reason: str | None = None
    failure: Exception | None = None

    def why_not(self) -> str | None:
        return self.reason

    def metrics(self) -> str:
        if self.failure is not None:
            raise self.failure
        return "# é\nx 1\n"


@pytest.fixture
def worker() -> Worker:
    return Worker()


@pytest.fixture
def port(worker: Worker) -> Iterator[HttpPort]:
    port = HttpPort(HERE, why_not=worker.why_not, metrics=worker.metrics)
    port.start()
    yield port
    port.close()


def get(
    port: HttpPort, path: str, method: str = "GET", **headers: str
) -> tuple[int, str, dict[str, str]]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port.port}{path}", method=method, headers=headers
    )
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode(), dict(answer.headers)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode(), dict(error.headers)


def test_what_it_answers(port: HttpPort, worker: Worker) -> None:
    assert get(port, "/health/live")[:2] == (200, '{"status": "live"}\n')
    assert get(port, "/health/ready")[0] == 200
    worker.reason = "the store has been away for 7 s"
    status, text, _ = get(port, "/health/ready?x=1")
    assert (status, json.loads(text)["reason"]) == (503, worker.reason)
    status, text, headers = get(port, "/metrics")
    assert (status, text) == (200, "# é\nx 1\n")
    assert headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert get(port, "/metrics", "HEAD")[:2] == (200, "")
    assert get(port, "/etc/passwd")[0] == 404
    assert get(port, "/metrics", "POST")[0] == 501
    # A page in a browser on this machine must not read names of tasks through it.
    assert get(port, "/metrics", **{"Sec-Fetch-Site": "cross-site"})[0] == 403


def test_a_failure_is_the_askers_alone(port: HttpPort, worker: Worker) -> None:
    worker.failure = RuntimeError("no")
    with pytest.raises((OSError, urllib.error.URLError)):
        get(port, "/metrics")
    assert get(port, "/health/live")[0] == 200


def test_garbage_and_callers_who_say_nothing(
    worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_port, "_LONGEST", 0.3)
    port = HttpPort(HERE, why_not=worker.why_not, metrics=worker.metrics)
    port.start()
    silent = [
        socket.create_connection(("127.0.0.1", port.port)) for _ in range(http_port._MOST + 4)
    ]
    try:
        for each, said in zip(
            silent, (b"\x16\x03\x01\x00", b"GET \xff\xfe HTTP/9\r\n"), strict=False
        ):
            each.sendall(said)
        # They hold every place, until their time is over.
        until(lambda: _answers(port), within=10, what="the port to answer again")
    finally:
        for each in silent:
            each.close()
        port.close()


def _answers(port: HttpPort) -> bool:
    try:
        return get(port, "/health/live")[0] == 200
    except OSError:
        return False


def test_a_port_that_is_taken_is_said_at_once(port: HttpPort, worker: Worker) -> None:
    with pytest.raises(ConfigError, match=f"http='127.0.0.1:{port.port}'.*free") as raised:
        HttpPort(
            HttpAddress("127.0.0.1", port.port), why_not=worker.why_not, metrics=worker.metrics
        )
    assert raised.value.option == "http"


def test_it_is_closed_at_once_and_may_never_have_started(worker: Worker) -> None:
    port = HttpPort(HERE, why_not=worker.why_not, metrics=worker.metrics)
    port.close()
    port = HttpPort(HttpAddress("0.0.0.0", 0), why_not=worker.why_not, metrics=worker.metrics)
    port.start()
    until(lambda: _answers(port))
    port.close()
    assert not _answers(port)
