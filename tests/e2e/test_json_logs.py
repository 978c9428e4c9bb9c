"""Logs as JSON: of the worker, and of what tasks log themselves, in every kind of child."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast import Holdfast
from tests.cli.conftest import run
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("postgresql")

TRACE = "0af7651916cd43dd8448eb211c80319c"
APP = """
import logging
from holdfast import Holdfast

app = Holdfast("sqlite:///tasks.db")
log = logging.getLogger("shop")

@app.task("process")
def process() -> None:
    log.info("hello from %s", "process", extra={"order": 7})

@app.task("thread", executor="thread")
def thread() -> None:
    log.warning("hello from thread")

@app.task("coroutine")
async def coroutine() -> None:
    log.info("hello from coroutine")
"""
NAMES = ("process", "thread", "coroutine")


def test_every_line_says_whose_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "app.py").write_text(APP)
    monkeypatch.chdir(tmp_path)
    with Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        ids = {name: str(app.send(name).id) for name in NAMES}
        for name in NAMES:
            _carry(app, ids[name])
        flags = ("-c", "1", "--burst", "-v", "--log-format", "json")
        with WorkerProcess(tmp_path, "app:app", *flags) as worker:
            assert worker.wait() == 0, worker.said
            records = [json.loads(line) for line in worker.said.splitlines()]
    (worker_id,) = {record["worker"] for record in records if "worker" in record}
    done = {record["task"]: record for record in records if record.get("event") == "completed"}
    for name in NAMES:
        assert done[name]["trace_id"] == TRACE
        assert done[name]["worker"] == worker_id
        said = _logged(ids[name])
        assert said["message"] == f"hello from {name}"
        assert (said["task"], said["task_id"], said["attempt"]) == (name, ids[name], 1)
        assert (said["worker"], said["trace_id"]) == (worker_id, TRACE)
        assert said["logger"] == "shop"
    assert _logged(ids["process"])["order"] == 7


def _carry(app: Holdfast, task: str) -> None:
    import apsw

    db = apsw.Connection(app.config.store.address)
    db.execute(
        "UPDATE holdfast_tasks SET trace_context = ? WHERE id = ?",
        (f"00-{TRACE}-b7ad6b7169203331-01", task),
    )
    assert db.changes() == 1
    db.close()


def _logged(task: str) -> dict[str, Any]:
    text = run("tasks", "log", task, "--url", "sqlite:///tasks.db").out
    (line,) = [each for each in text.splitlines() if "hello from" in each]
    found: dict[str, Any] = json.loads(line[line.index("{") :])
    return found
