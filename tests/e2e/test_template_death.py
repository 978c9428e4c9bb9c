"""The process that children are made from dies: nothing that runs is lost, and another is made."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from holdfast import Holdfast, TaskStatus
from holdfast.core.status import AttemptOutcome
from tests.support.deadline import until
from tests.support.site import Engine, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

pytestmark = pytest.mark.mostly("sqlite")

BACK = "children can be made again"


@pytest.fixture(scope="module")
def engine() -> Engine:
    """What happens to processes has nothing to do with the database."""
    return "sqlite"


def template_of(worker: WorkerProcess) -> int:
    """The process that children are made from: the leader of a session of its own."""
    (found,) = {pid for pid in worker.descendants() if os.getsid(pid) == pid}
    return found


def test_running_tasks_go_on_and_new_children_are_made(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.stopping")
    worker = site.worker("-c", "1", "--lease", "3", "--grace", "5").ready()
    handle = site.send("resubmits", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    os.kill(template_of(worker), signal.SIGKILL)
    until(lambda: BACK in worker.said)
    assert "has ended (killed by SIGKILL)" in worker.said
    site.ledger.open_gate("a")
    assert handle.get(10) == 1
    assert only_attempt(handle).outcome is AttemptOutcome.COMPLETED
    # The child that nobody reaps for us any more is still watched.
    os.kill(line.pid, signal.SIGKILL)
    follower = site.send("resubmits", "b")
    site.begun("b")
    site.ledger.open_gate("b")
    # Twice, if it was given to the child that was being killed.
    assert follower.get(10) in (1, 2)
    assert site.ledger.lines("begun", "b")[0].pid != line.pid
    family = worker.descendants()
    assert worker.stop() == 0
    until(lambda: not any(map(alive, family)), within=2, what="nothing to be left")


def test_a_child_of_a_dead_template_that_dies_is_a_crash(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.stopping")
    worker = site.worker("-c", "1", "--lease", "3").ready()
    handle = site.send("resubmits", "a")
    site.begun("a")
    (line,) = site.ledger.lines("begun", "a")
    os.kill(template_of(worker), signal.SIGKILL)
    until(lambda: BACK in worker.said)
    os.kill(line.pid, signal.SIGKILL)
    until(lambda: site.ledger.count("begun", "a") == 2)
    site.ledger.open_gate("a")
    assert handle.wait(10) is TaskStatus.COMPLETED
    assert handle.info().crash_count == 1


def test_what_hangs_on_a_supervisor_that_is_killed(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.stopping")
    worker = site.worker("-c", "1", "--lease", "3").ready()
    site.send("resubmits", "a")
    site.begun("a")
    family = worker.descendants()
    os.kill(template_of(worker), signal.SIGKILL)
    until(lambda: BACK in worker.said)
    family |= worker.descendants()
    worker.kill()
    until(lambda: not any(map(alive, family)), within=2, what="nothing to be left")


PROGRAM = """
import os
from holdfast import Holdfast

app = Holdfast()

@app.task("who")
def who() -> int:
    return os.getpid()
"""


@pytest.fixture
def worker(tmp_path: Path) -> WorkerProcess:
    (tmp_path / "program.py").write_text(PROGRAM)
    return WorkerProcess(
        tmp_path,
        "program:app",
        *("-c", "1", "--lease", "5"),
        environment={"HOLDFAST_URL": f"sqlite:///{tmp_path}/tasks.db"},
    )


def test_an_application_that_cannot_be_imported_any_more(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    with worker, Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        child = app.send("who").get(20)
        (tmp_path / "program.py").write_text("import nowhere_at_all")
        os.kill(template_of(worker), signal.SIGKILL)
        until(lambda: "cannot be imported any more" in worker.said)
        assert "nowhere_at_all" in worker.said
        assert app.send("who").get(20) == child
        (tmp_path / "program.py").write_text(PROGRAM)
        until(lambda: BACK in worker.said)
        os.kill(child, signal.SIGKILL)
        assert app.send("who").get(20) != child
        assert worker.stop() == 0


def test_a_worker_that_can_make_no_child_any_more_ends(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    with worker, Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        child = app.send("who").get(20)
        (tmp_path / "program.py").write_text("import nowhere_at_all")
        os.kill(template_of(worker), signal.SIGKILL)
        os.kill(child, signal.SIGKILL)
        assert worker.wait() == 70
        assert "cannot be imported any more" in worker.said


PATCHED = """
from gevent import monkey
monkey.patch_all()

import os
import time
from holdfast import Holdfast

app = Holdfast()

@app.task("who")
def who() -> int:
    print("here")
    time.sleep(0.01)
    return os.getpid()

@app.task("die")
def die() -> None:
    os._exit(3)

@app.task("slow", timeout=0.3)
def slow() -> None:
    time.sleep(60)
"""


def test_an_application_that_gevent_has_patched(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PATCHED)
    url = f"sqlite:///{tmp_path}/tasks.db"
    arguments = ("-c", "1", "--lease", "5", "--max-tasks-per-child", "2")
    worker = WorkerProcess(tmp_path, "program:app", *arguments, environment={"HOLDFAST_URL": url})
    with worker, Holdfast(url) as app:
        assert len({app.send("who").get(20) for _ in range(4)}) >= 2
        dead, slow = app.send("die"), app.send("slow")
        assert dead.wait(20) is TaskStatus.FAILED
        assert dead.attempts()[0].exit_code == 3
        assert slow.wait(20) is TaskStatus.FAILED
        assert app.send("who").get(20)
        assert "ChildProcessError" not in worker.said
        assert "children can be made again" not in worker.said
        assert worker.stop() == 0
