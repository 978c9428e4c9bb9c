"""The commands beside a real worker: what runs can be seen while it runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import run
from tests.support.deadline import until
from tests.support.worker import WorkerProcess

APP = """
import pathlib, time
from holdfast import Holdfast

app = Holdfast("sqlite:///tasks.db")

@app.task("waits")
def waits(gate: str) -> str:
    print("waiting for the gate")
    here = pathlib.Path(gate)
    while not here.exists():
        time.sleep(0.01)
    print("it is open")
    return "done"
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a worker at work in it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOLDFAST_URL", "sqlite:///tasks.db")
    (tmp_path / "app.py").write_text(APP)
    with WorkerProcess(tmp_path, "app:app", "-c", "1") as worker:
        worker.ready()
        yield tmp_path
        (tmp_path / "gate").touch()
        assert worker.stop() == 0, worker.said


def test_a_task_is_watched_to_its_end(place: Path) -> None:
    gate = place / "gate"
    task = run("tasks", "send", "waits", "--args", f'["{gate}"]').out.strip()
    until(lambda: "waiting for the gate" in run("tasks", "log", task).out, what="its first line")
    assert "in waits" in run("tasks", "stack", task).out
    assert "runs on" in run("tasks", "why", task).out
    shown = run("tasks", "show", task)
    assert "RUNNING" in shown.out
    (worker,) = run("workers", "list", "--json").json["workers"]
    assert worker["state"] == "alive"
    assert worker["tasks"] == ["waits@1"]
    assert shown.out.count(worker["worker_id"]) >= 2
    gate.touch()
    followed = run("tasks", "log", "--follow", "--attempt", "1", task)
    assert followed.out == "waiting for the gate\nit is open\n"
    ended = run("tasks", "show", task, "--json").json
    assert (ended["status"], ended["result"]) == ("COMPLETED", "done")
    assert ended["attempts"][0]["peak_memory_kb"] > 0


def test_a_running_task_is_cancelled(place: Path) -> None:
    task = run("tasks", "send", "waits", "--args", f'["{place / "gate"}"]').out.strip()
    until(lambda: "RUNNING" in run("tasks", "list").out, what="its start")
    assert "its worker has been asked to end it" in run("tasks", "cancel", task).out
    until(lambda: "CANCELLED" in run("tasks", "list").out, what="its end")
    said = run("tasks", "stack", task)
    assert (said.code, "is CANCELLED" in said.err) == (1, True)
