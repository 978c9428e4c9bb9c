"""Workers that are not started from the command line, and one that starts itself anew."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import ANY
from uuid import UUID

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


def test_until_idle_with_a_task_that_raises_what_bad_arguments_raise(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.outcomes")
    handle = site.send("async-payload-error")
    assert site.app.worker().run_until_idle() == 2
    assert handle.get(0) == "fits now"


def test_until_idle_on_some_queues(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.outcomes")
    here, there = site.send("value", 1), site.options(queue="there").send("value", 2)
    assert site.app.worker(queues="there").run_until_idle() == 1
    assert (here.status(), there.status()) == (TaskStatus.PENDING, TaskStatus.COMPLETED)


@pytest.mark.parametrize("name", ["parent", "parent-async", "gather-async-inside"])
def test_until_idle_with_tasks_that_wait_for_tasks(fresh_site: MakeSite, name: str) -> None:
    site = fresh_site("tests.e2e.programs.executors")
    handle = site.send(name, [21] if name.startswith("gather") else 21)
    assert site.app.worker().run_until_idle() == 2
    assert handle.get(0) in (42, [ANY, 42])


def test_until_idle_with_a_family(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.executors")
    # The first waits for one that was claimed together with it.
    first = site.send("waits-for", str(UUID(int=7)))
    second = site.options(id=UUID(int=7)).send("nest", 3)
    third = site.send("gather", [1, 2, 3])
    assert site.app.worker().run_until_idle() == 9
    assert (first.get(0), second.get(0), third.get(0)) == (3, 3, 12)


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
    with site.app.worker(concurrency=1, lease=5, target=f"{CONTROL}:app") as worker:
        pid = site.send("who").get(20)
        assert alive(pid)
        with pytest.raises(ConfigError):
            worker.start()
    assert not alive(pid)
    assert site.send("who").status() is TaskStatus.PENDING


@pytest.mark.slow
def test_a_worker_that_gets_no_thread_leaves_nothing_running(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = threading.Thread.start

    def refuse(thread: threading.Thread) -> None:
        if thread.name == "holdfast-janitor":
            raise RuntimeError("can't start new thread")
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", refuse)
    with pytest.raises(OSError, match="no thread for the worker's janitor"):
        site.app.worker(concurrency=1, target=f"{CONTROL}:app").run()
    mine = {f"holdfast-{name}" for name in ("message_loop", "claimer", "finisher", "maintenance")}
    until(lambda: not mine & {thread.name for thread in threading.enumerate()})
    children = Path(f"/proc/{os.getpid()}/task/{threading.get_native_id()}/children")
    until(lambda: not _templates(children.read_text().split()), what="the template to be gone")


def _templates(pids: list[str]) -> list[str]:
    return [pid for pid in pids if b"child.template" in Path(f"/proc/{pid}/cmdline").read_bytes()]


def test_started_by_a_thread_that_ends(site: Site) -> None:
    # The kernel ends a process when the *thread* that made it does; that must not be ours.
    worker = site.app.worker(concurrency=1, lease=5, target=f"{CONTROL}:app")
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
        site.app.worker(concurrency=1, target="nowhere:app").start()


# As a program of its own.

SCRIPT = """
import sys
from holdfast import Holdfast

app = Holdfast()

@app.task("add")
def add(a: int, b: int) -> int:
    return a + b

if __name__ == "__main__":
    sys.exit(app.worker(concurrency=1, lease=5).run())
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


def run_script(
    file: Path, *, within: float = 20, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; it and all that it started are gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, str(file)],
        cwd=file.parent.parent,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        said, _ = process.communicate(timeout=within)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        said, _ = process.communicate()
        raise AssertionError(f"it did not end:\n{said}") from None
    return subprocess.CompletedProcess(process.args, process.returncode, said)


TASKS = """
import os
from holdfast import Holdfast

app = Holdfast()

@app.task("add")
def add(a: int, b: int) -> int:
    return a + b
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A directory of modules that is not the one the program is started in."""
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "tasks.py").write_text(TASKS)
    return tmp_path


def test_a_program_without_a_guard_that_imports_its_app(place: Path) -> None:
    script = place / "sub" / "script.py"
    script.write_text(
        "from tasks import add, app\n"
        "worker = app.worker(concurrency=1, lease=5)\n"
        "worker.start()\n"
        "print('sum', add.send(1, 2).get(20))\n"
        "worker.stop()\n"
    )
    ended = run_script(script, HOLDFAST_URL=f"sqlite:///{place}/tasks.db")
    assert (ended.returncode, ended.stdout.splitlines()) == (0, ["sum 3"]), ended.stdout


def test_a_program_without_a_guard_that_defines_its_app(place: Path) -> None:
    script = place / "sub" / "script.py"
    script.write_text(
        TASKS + "open('imported', 'a').write('x')\napp.worker(concurrency=1).start()\n"
    )
    ended = run_script(script, HOLDFAST_URL=f"sqlite:///{place}/tasks.db")
    assert ended.returncode == 1
    assert "starts a worker itself when it is imported" in ended.stdout
    assert 'if __name__ == "__main__":' in ended.stdout
    # The program itself, and the one template that refused.
    assert (place / "imported").read_text() == "xx"


def test_a_program_finds_the_modules_beside_it(place: Path) -> None:
    script = place / "sub" / "script.py"
    guarded = "\nif __name__ == '__main__':\n    with app.worker(concurrency=1, lease=5):\n"
    script.write_text(
        f"import tasks\n{TASKS}{guarded}        print('sum', add.send(3, 4).get(20))\n"
    )
    ended = run_script(script, HOLDFAST_URL=f"sqlite:///{place}/tasks.db")
    assert (ended.returncode, ended.stdout.splitlines()) == (0, ["sum 7"]), ended.stdout


def test_a_task_cannot_start_a_worker(place: Path) -> None:
    (place / "sub" / "tasks.py").write_text(
        TASKS + "\n@app.task('nest')\ndef nest() -> None:\n    app.worker().start()\n"
    )
    script = place / "sub" / "script.py"
    script.write_text(
        "from tasks import app, nest\n"
        "with app.worker(concurrency=1, lease=5):\n"
        "    handle = nest.send()\n"
        "    print(handle.wait(20), handle.info().error)\n"
    )
    ended = run_script(script, HOLDFAST_URL=f"sqlite:///{place}/tasks.db")
    assert "FAILED" in ended.stdout
    assert "code that runs inside a worker's process cannot start a worker" in ended.stdout


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


def test_a_reloader_that_is_killed_leaves_nothing_behind(
    reloading: WorkerProcess, tmp_path: Path
) -> None:
    with Holdfast(f"sqlite:///{tmp_path}/tasks.db") as app:
        assert app.send("answer").get(20) == 1
    family = reloading.descendants()
    assert len(family) >= 3
    reloading.signal(signal.SIGKILL)
    until(lambda: not any(map(alive, family)), within=10, what="nothing to be left")


def test_one_ctrl_c_of_a_terminal_is_one_wish_to_stop(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.stopping")
    worker = site.worker("--reload", "-c", "1", "--lease", "5", "--grace", "60").ready()
    handle = site.send("resubmits", "resubmits")
    site.begun("resubmits")
    # A terminal signals everybody in its foreground process group.
    os.killpg(worker.pid, signal.SIGINT)
    until(lambda: "stopping: " in worker.said)
    site.ledger.open_gate("resubmits")
    assert worker.wait(10) == 0
    assert handle.get(1) == 1
    assert "the grace is over" not in worker.said
