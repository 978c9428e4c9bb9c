"""A task that fails with its secret in the message: no trace of it is kept or said."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast import Holdfast, Secret, TaskStatus
from tests.cli.conftest import run
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("sqlite")

VALUE = "hunter2-very-secret"
APP = """
from dataclasses import dataclass
from holdfast import Holdfast, Retry, Secret, TaskError, TaskResult

app = Holdfast("sqlite:///tasks.db")

@dataclass
class Login:
    token: Secret[str]

def fail(login: Login) -> None:
    try:
        raise KeyError(login.token.reveal())
    except KeyError as error:
        raise ValueError(f"401 for https://x/?t={login.token.reveal()}") from error

@app.task("process", retry=Retry(1, delay=0))
def process(login: Login) -> None:
    fail(login)

@app.task("thread", executor="thread")
def thread(login: Login) -> None:
    fail(login)

@app.task("coroutine")
async def coroutine(login: Login) -> None:
    fail(login)

@app.hooks.on_failure
def watch(event) -> None:
    raise RuntimeError(f"the hook saw {event.exception!r} password=letmein99")

@app.task("returned")
def returned(token: Secret[str]) -> TaskResult[None, TaskError]:
    return TaskResult(err=TaskError("NO", f"refused: {token.reveal()}"))

@app.task("echo")
def echo(secret: Secret[str]) -> Secret[str]:
    assert secret.reveal() == "hunter2-very-secret"
    print("got", secret)
    return secret
"""


def test_errors_logs_and_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    with Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        names = ("process", "thread", "coroutine")
        handles = [app.send(name, {"token": Secret(VALUE)}) for name in names]
        handles.append(app.send("returned", Secret(VALUE)))
        echo = app.send("echo", Secret(VALUE))
        with WorkerProcess(tmp_path, "app:app", "-c", "1", "-v", "--log-format", "json") as worker:
            worker.ready()
            for handle in handles:
                assert handle.wait(20) is TaskStatus.FAILED
                error = handle.info().error
                assert error is not None
                assert error.message in ("401 for https://x/?t=***", "refused: ***")
                for attempt in handle.attempts():
                    assert VALUE not in repr(attempt) + str(
                        attempt.error and attempt.error.traceback
                    )
                assert VALUE not in str(handle.info().failed_reason)
            assert echo.get(20) == {"$secret": VALUE}
            assert echo.info().result == "***"
            assert worker.stop() == 0
            assert VALUE not in worker.said
            assert "letmein99" not in worker.said
            assert "the hook saw ValueError('401 for https://x/?t=***')" in worker.said
        for handle in handles[:3]:
            url = f"sqlite:///{tmp_path}/tasks.db"
            said = run("tasks", "log", str(handle.id), "--url", url).out
            assert "the hook saw ValueError" in said
            assert VALUE not in said
        log = run("tasks", "log", str(echo.id), "--url", f"sqlite:///{tmp_path}/tasks.db").out
        assert "got ***" in log
