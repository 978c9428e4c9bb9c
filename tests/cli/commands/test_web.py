"""`holdfast web`: who it lets in, where it listens, and what it says when it cannot."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from holdfast import Holdfast
from holdfast.web.tokens import Tokens
from tests.cli.conftest import run
from tests.support.deadline import until


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database that has a task."""
    with Holdfast(f"sqlite:///{tmp_path / 'tasks.db'}") as app:
        app.send("any")
    return f"sqlite:///{tmp_path / 'tasks.db'}"


@contextmanager
def serving(*arguments: str, log: Path, **environment: str) -> Iterator[tuple[str, int]]:
    """The address and process id of a server, which is told to stop at the end."""
    with log.open("w") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "holdfast", "web", "--port", "0", *arguments],
            stderr=file,
            env={**os.environ, **environment},
        )
    try:
        until(
            lambda: "at http" in log.read_text() or process.poll() is not None,
            within=20,
            what="the server to listen",
        )
        found = re.search(r"\bat (http://\S+/), for", log.read_text())
        assert found is not None, log.read_text()
        yield found[1], process.pid
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0, log.read_text()
    finally:
        process.kill()
        process.wait()


def test_it_serves_this_machine_and_stops_when_told(url: str, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with serving("--url", url, log=log) as (address, _):
        assert httpx.get(f"{address}api/v1/health/ready").json() == {"status": "ready"}
        (task,) = httpx.get(f"{address}api/v1/tasks").json()["tasks"]
        assert task["name"] == "any"
        rebound = httpx.get(f"{address}api/v1/tasks", headers={"host": "evil.example"})
        assert rebound.status_code == 421
        (tmp_path / "tasks.db").write_bytes(b"no database any more" * 1000)
        for path in ("tasks.db-wal", "tasks.db-shm"):
            (tmp_path / path).unlink(missing_ok=True)
        assert httpx.get(f"{address}api/v1/tasks").status_code == 503
    assert "warning: " in log.read_text()


BROKEN = """
from holdfast import Holdfast
from holdfast.client.control import Control

app = Holdfast(URL)

async def broken(self, *args, **kwargs):
    raise ZeroDivisionError("a defect\\nof the dashboard")

Control.anow = broken
"""


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_defect_is_logged_with_its_traceback(form: str, url: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN.replace("URL", repr(url)))
    log = tmp_path / "log"
    path = {"PYTHONPATH": str(tmp_path)}
    with serving("--app", "broken:app", "--log-format", form, log=log, **path) as (address, _):
        answer = httpx.get(f"{address}api/v1/health/ready")
        assert (answer.status_code, answer.json()["kind"]) == (500, "defect")
        assert "ZeroDivisionError" not in answer.text
        number = answer.json()["log"]
    said = log.read_text()
    (line,) = [line for line in said.splitlines() if f"request failed ({number})" in line]
    if form == "json":
        found = json.loads(line)
        assert (found["level"], found["logger"]) == ("error", "holdfast.web")
        assert "ZeroDivisionError: a defect" in found["traceback"]
    else:
        assert "web: error: " in line
        assert "\n    Traceback (most recent call last):\n" in said
        assert "    ZeroDivisionError: a defect" in said


def test_it_asks_for_a_token_when_it_was_given_one(url: str, tmp_path: Path) -> None:
    made = run("web", "--new-token", "anna", "--roles", "read,payloads")
    token, line = made.lines
    (tmp_path / "tokens").write_text(line + "\n")
    given = ["--url", url, "--host", "0.0.0.0", "--tokens", str(tmp_path / "tokens")]
    own = "a-token-of-some-length"
    with serving(*given, log=tmp_path / "log", HOLDFAST_WEB_TOKEN=own) as (address, _):
        tasks = f"{address.replace('0.0.0.0', '127.0.0.1')}api/v1/tasks"
        assert httpx.get(tasks).status_code == 401
        for known in (token, own):
            headers = {"authorization": f"Bearer {known}"}
            assert httpx.get(tasks, headers=headers).status_code == 200
    said = (tmp_path / "log").read_text()
    assert token not in said
    assert own not in said


def test_a_new_token_is_printed_with_its_line(tmp_path: Path) -> None:
    said = run("web", "--new-token", "anna", "--roles", "operate,payloads")
    token, line = said.lines
    assert line.startswith("anna operate,payloads sha256:")
    (tmp_path / "tokens").write_text(line)
    visitor = Tokens.in_file(tmp_path / "tokens").holder(token)
    assert visitor is not None
    assert (visitor.name, visitor.role.word, visitor.payloads) == ("anna", "operate", True)
    spaced = run("web", "--new-token", "an na")
    assert (spaced.code, "the name 'an na' is not of letters" in spaced.err) == (2, True)
    assert run("web", "--new-token", "anna", "--roles", "read, payloads").code == 0
    assert run("web", "--new-token", "anna", "--roles", "root").code == 2


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "example.org"])
def test_another_address_is_refused_without_tokens(host: str, url: str) -> None:
    said = run("web", "--url", url, "--host", host)
    assert said.code == 2
    assert "set HOLDFAST_WEB_TOKEN, or give --tokens FILE" in said.err


def test_what_cannot_be_served_is_said_at_once(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing = run("web", "--url", f"sqlite:///{tmp_path / 'nothing.db'}")
    assert (nothing.code, "there is no database" in nothing.err) == (3, True)
    unread = run("web", "--url", url, "--tokens", str(tmp_path / "no-file"))
    assert (unread.code, "cannot be read" in unread.err) == (2, True)
    monkeypatch.setenv("HOLDFAST_WEB_TOKEN", "short")
    short = run("web", "--url", url)
    assert (short.code, "at least 16 characters" in short.err) == (2, True)


def test_a_port_that_is_taken_is_named(url: str) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = run("web", "--url", url, "--port", str(port))
    assert (said.code, f"cannot listen on 127.0.0.1, port {port}" in said.err) == (1, True)


def test_a_missing_extra_is_named(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.cli.commands.web.find_spec", lambda _: None)
    said = run("web", "--url", url)
    assert (said.code, "pip install 'holdfast[web]'" in said.err) == (2, True)
