"""The worker speaks: what it prints about tasks that fail, crash, and code outside of tasks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.deadline import until
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("postgresql")

APP = """
import asyncio, atexit, os, signal, time, threading
from holdfast import Holdfast, Retry

app = Holdfast("sqlite:///tasks.db", kill_grace=2)

@app.task("good")
def good() -> int:
    return 1

@app.task("flaky", retry=Retry(1, delay=0.1))
def flaky() -> None:
    raise KeyError("x\\nforged line")

@app.task("segfault", max_crashes=1)
def segfault() -> None:
    os.kill(os.getpid(), 11)

@app.task("hang", timeout=0.3)
def hang() -> None:
    time.sleep(60)

@app.task("hang_in_thread", timeout=0.3, executor="thread")
def hang_in_thread() -> None:
    while True:
        time.sleep(0.01)

@app.task("hang_in_loop", timeout=0.3)
async def hang_in_loop() -> None:
    await asyncio.sleep(60)

@app.task("deaf", timeout=0.3)
def deaf() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    time.sleep(60)

@app.task("silent", max_heartbeat_interval=1)
def silent() -> None:
    time.sleep(60)

@app.task("leaves_a_thread")
def leaves_a_thread() -> None:
    def late() -> None:
        time.sleep(0.3)
        print("words of nobody")
        raise OSError("nobody's fault")
    threading.Thread(target=late).start()
    atexit.register(print, "the last words")

@app.hooks.worker_started
def started(event: object) -> None:
    print("hello from a hook")

@good.hooks.on_success
def bad(event: object) -> None:
    raise RuntimeError("bad hook")
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///tasks.db")
    (tmp_path / "app.py").write_text(APP)
    return tmp_path


def send(name: str) -> str:
    return run("tasks", "send", name).out.strip()


def test_failures_crashes_and_stalls_are_said(place: Path) -> None:
    with WorkerProcess(place, "app:app", "-c", "2") as worker:
        worker.ready()
        assert "holdfast tasks list --app app:app" in worker.said
        names = ("flaky", "segfault", "hang", "silent", "good", "leaves_a_thread")
        for name in names:
            send(name)
        wanted = [
            "KeyError: 'x\\nforged line'; retry 1 of 1 in 100 ms",
            "(after 1 retry); FAILED, dead letter",
            "crashed in attempt",
            "SIGSEGV",
            "timed out in attempt",
            "stalled in attempt",
            "hello from a hook",
            "raised RuntimeError: bad hook",
            "words of nobody",
            "OSError: nobody's fault",
        ]
        until(lambda: all(words in worker.said for words in wanted), what=str(wanted))
        assert worker.stop() == 0, worker.said
        lines = worker.said.splitlines()
        assert "the last words" in worker.said
    assert not any(line.startswith("forged") for line in lines)
    assert not any("completed" in line for line in lines), "only with -v"


def test_every_task_has_a_line_with_v_and_json_is_json(place: Path) -> None:
    task = send("good")
    flaky = send("flaky")
    flags = ("-c", "1", "--burst", "-v", "--log-format", "json")
    with WorkerProcess(place, "app:app", *flags) as worker:
        assert worker.wait() == 0, worker.said
        records = [json.loads(line) for line in worker.said.splitlines()]
    by_task = {(r["task_id"], r["event"]): r for r in records if "task_id" in r}
    done = by_task[task, "completed"]
    assert done["level"] == "debug"
    assert done["status"] == "COMPLETED"
    assert done["duration"] >= 0
    failed = by_task[flaky, "failed"]
    assert failed["exception"] == "builtins.KeyError"
    assert "in flaky" in failed["traceback"]
    assert all({"time", "level", "logger", "message"} <= set(record) for record in records)


def test_less_can_be_asked_for(place: Path) -> None:
    send("good")
    flags = ("-c", "1", "--burst", "--log-level", "error")
    with WorkerProcess(place, "app:app", *flags) as worker:
        assert worker.wait() == 0, worker.said
        assert all("bad hook" in line for line in worker.said.splitlines())


def test_a_timeout_records_where_the_code_was(place: Path) -> None:
    names = ("hang", "silent", "hang_in_thread", "hang_in_loop", "deaf")
    tasks = {name: send(name) for name in names}
    with WorkerProcess(place, "app:app", "-c", "3", "--burst") as worker:
        assert worker.wait() == 0, worker.said
    for name, task in tasks.items():
        shown = run("tasks", "show", task).out
        assert "Where it was when it was ended" in shown, (name, shown)
        assert f"in {name}" in shown
        assert "sleep(" in shown
