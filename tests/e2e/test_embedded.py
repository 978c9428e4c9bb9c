"""Workers that are not started from the command line, and one that starts itself anew."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import ConfigError, Holdfast, TaskStatus
from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

CONTROL = "tests.e2e.programs.control"


# In this process, for tests.


def test_until_idle(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.outcomes")
    good, bad, twice = site.send("value", 7), site.send("boom"), site.send("err-listed")
    later = site.options(delay=60).send("value", 8)
    assert site.app.worker().run_until_idle() == 4
    assert good.get(0) == 7
    assert bad.status() is TaskStatus.FAILED
    assert twice.get(0) == 2
    assert later.status() is TaskStatus.SCHEDULED
    assert site.app.worker().run_until_idle() == 0


def test_until_idle_on_some_queues(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.outcomes")
    here, there = site.send("value", 1), site.options(queue="there").send("value", 2)
    assert site.app.worker(queues="there").run_until_idle() == 1
    assert (here.status(), there.status()) == (TaskStatus.PENDING, TaskStatus.COMPLETED)


def test_until_idle_with_tasks_that_send_tasks(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.executors")
    handle = site.send("operator")
    assert site.app.worker().run_until_idle() == 1
    assert handle.get(0) == ["SCHEDULED", "CANCELLED", "['a task']"]


# Beside something else.


@pytest.fixture
def site(fresh_site: MakeSite, monkeypatch: pytest.MonkeyPatch) -> Site:
    site = fresh_site(CONTROL)
    for name, value in site.environment.items():
        monkeypatch.setenv(name, value)
    return site


def test_beside_a_web_application(site: Site) -> None:
    with site.app.worker(processes=1, lease=5, target=f"{CONTROL}:app") as worker:
        pid = site.send("who").get(20)
        assert alive(pid)
        with pytest.raises(ConfigError):
            worker.start()
    assert not alive(pid)
    assert site.send("who").status() is TaskStatus.PENDING


def test_started_by_a_thread_that_ends(site: Site) -> None:
    # The kernel ends a process when the *thread* that made it does; that must not be ours.
    worker = site.app.worker(processes=1, lease=5, target=f"{CONTROL}:app")
    starter = threading.Thread(target=worker.start)
    starter.start()
    starter.join()
    try:
        first = site.send("who").get(20)
        assert site.send("who").get(20) == first
    finally:
        worker.stop()
    assert not alive(first)


def test_one_that_cannot_start_says_so(site: Site) -> None:
    with pytest.raises(ConfigError, match="nowhere"):
        site.app.worker(processes=1, target="nowhere:app").start()


# As a program of its own.

SCRIPT = """
import sys
from holdfast import Holdfast

app = Holdfast()

@app.task("add")
def add(a: int, b: int) -> int:
    return a + b

if __name__ == "__main__":
    sys.exit(app.worker(processes=1, lease=5).run())
"""


def test_a_script_that_is_its_own_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path}/tasks.db"
    monkeypatch.setenv("HOLDFAST_URL", url)
    (tmp_path / "script.py").write_text(SCRIPT)
    with subprocess.Popen([sys.executable, "script.py"], cwd=tmp_path) as process:
        with Holdfast(url) as app:
            assert app.send("add", 1, 2).get(20) == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(10) == 0


# For development.

CHANGING = """
from holdfast import Holdfast
app = Holdfast()

@app.task("answer")
def answer() -> int:
    return {answer}
"""


@pytest.fixture
def reloading(tmp_path: Path) -> Iterator[WorkerProcess]:
    (tmp_path / "program.py").write_text(CHANGING.format(answer=1))
    with WorkerProcess(
        tmp_path,
        "program:app",
        *("--reload", "-c", "1", "--lease", "5"),
        environment={"HOLDFAST_URL": f"sqlite:///{tmp_path}/tasks.db"},
    ) as worker:
        yield worker


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_reloading(reloading: WorkerProcess, tmp_path: Path, number: signal.Signals) -> None:
    with Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        assert app.send("answer").get(20) == 1
        (tmp_path / "program.py").write_text(CHANGING.format(answer=2))
        until(lambda: app.send("answer").get(20) == 2)
    family = reloading.descendants()
    assert family
    reloading.signal(number)
    assert reloading.wait(10) == 0
    until(lambda: not any(map(alive, family)), within=3, what="nothing to be left")
