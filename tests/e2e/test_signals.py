"""Signals other than the usual two, and how processes end when a worker is stopped."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from holdfast import Holdfast
from holdfast.runtime.supervisor.duties.claimer import Claimer
from holdfast.runtime.supervisor.duties.evidence_recorder import EvidenceRecorder
from holdfast.runtime.supervisor.duties.finisher import Finisher
from holdfast.runtime.supervisor.duties.hint_listener import HintListener
from holdfast.runtime.supervisor.duties.janitor import Janitor
from holdfast.runtime.supervisor.duties.lease_keeper import LeaseKeeper
from holdfast.runtime.supervisor.duties.lock_watch import LockWatch
from holdfast.runtime.supervisor.duties.maintenance import Maintenance
from holdfast.runtime.supervisor.duties.reporter import Reporter
from holdfast.runtime.supervisor.duties.request_poller import RequestPoller
from holdfast.runtime.supervisor.duties.time_limits import TimeLimits
from tests.support.deadline import until
from tests.support.site import Engine, Site, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess

pytestmark = pytest.mark.mostly("postgresql")

DUTIES = (
    Claimer,
    EvidenceRecorder,
    Finisher,
    HintListener,
    Janitor,
    LeaseKeeper,
    LockWatch,
    Maintenance,
    Reporter,
    RequestPoller,
    TimeLimits,
)
"""What every worker does."""


@pytest.fixture(scope="module")
def engine() -> Engine:
    """What happens to processes has nothing to do with the database."""
    return "sqlite"


@pytest.fixture
def site(fresh_site: MakeSite) -> Site:
    return fresh_site("tests.e2e.programs.stopping")


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGQUIT])
def test_a_hangup_and_a_quit_stop_in_an_orderly_way(site: Site, number: signal.Signals) -> None:
    worker = site.worker("-c", "1", "--lease", "3", "--grace", "20").ready()
    handle = site.send("resubmits", "a")
    site.begun("a")
    for pid in (worker.pid, *worker.descendants()):
        os.kill(pid, number)
    until(lambda: "stopping: " in worker.said)
    site.ledger.open_gate("a")
    assert worker.wait(10) == 0
    assert handle.get(1) == 1
    assert handle.info().crash_count == 0


def test_a_worker_says_what_it_is_doing(site: Site) -> None:
    worker = site.worker("-c", "1", "--lease", "3", "--log-level", "error", "-q", "default,other")
    handle = site.send("resubmits", "a")
    site.begun("a")
    for pid in (worker.pid, *worker.descendants()):
        os.kill(pid, signal.SIGUSR1)
    until(lambda: "threads:" in worker.said)
    (line,) = site.ledger.lines("begun", "a")
    said = worker.said
    assert "queues: default, other" in said
    assert f"process-1 (pid {line.pid}): ready, 1 of 1 running" in said
    assert f"resubmits {handle.id}, attempt 1: running for 0." in said
    until(
        lambda: all(f"holdfast-{duty.name}: " in worker.said for duty in DUTIES),
        what="every duty to be among the threads",
    )
    site.ledger.open_gate("a")
    assert handle.get(10) == 1
    assert only_attempt(handle).number == 1


def test_a_question_while_it_starts_is_answered(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("import time\nopen('importing', 'x')\ntime.sleep(60)\n")
    with WorkerProcess(tmp_path, "program:app") as worker:
        until((tmp_path / "importing").exists)
        worker.signal(signal.SIGUSR1)
        until(lambda: "the app is being imported" in worker.said)
        worker.signal(signal.SIGHUP)
        assert worker.wait(10) == 0


PROGRAM = """
import atexit
import os
import time
from pathlib import Path
from holdfast import Holdfast

app = Holdfast()

def last():
    with Path("left").open("a") as file:
        file.write(f"{os.getpid()}\\n")

atexit.register(last)

@app.task("process")
def process() -> int:
    return os.getpid()

@app.task("thread", executor="thread")
def thread() -> int:
    return os.getpid()

@app.task("async")
async def async_() -> int:
    return os.getpid()

@app.task("long")
def long() -> None:
    Path("begun").touch()
    time.sleep(60)
"""


def start(folder: Path, *arguments: str) -> WorkerProcess:
    (folder / "program.py").write_text(PROGRAM)
    url = f"sqlite:///{folder}/tasks.db"
    return WorkerProcess(
        folder,
        "program:app",
        *("-c", "1", "--lease", "5", *arguments),
        environment={"HOLDFAST_URL": url},
    )


def left(folder: Path) -> set[int]:
    return set(map(int, (folder / "left").read_text().split()))


def test_exit_functions_run_in_every_process_that_has_the_application(tmp_path: Path) -> None:
    with start(tmp_path).ready() as worker, Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        children = {app.send(kind).get(20) for kind in ("process", "thread", "async")}
        (template,) = {pid for pid in worker.descendants() if os.getsid(pid) == pid}
        assert worker.stop(10) == 0
    assert left(tmp_path) == {template, *children}


def test_exit_functions_run_after_a_task_was_interrupted(tmp_path: Path) -> None:
    with (
        start(tmp_path, "--grace", "0.2").ready() as worker,
        Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app,
    ):
        child = app.send("process").get(20)
        app.send("long")
        until((tmp_path / "begun").exists)
        assert worker.stop(10) == 0
    assert child in left(tmp_path)
