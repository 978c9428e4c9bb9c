"""Workers that cannot start: what they say, and with which status they end."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Protocol

import pytest

from tests.support.deadline import until
from tests.support.postgres import PostgresServer
from tests.support.worker import WorkerProcess, alive

GOOD = """
from holdfast import Holdfast
app = Holdfast()
number = 7

@app.task
def add(a: int, b: int) -> int:
    return a + b
"""


class Start(Protocol):
    def __call__(self, target: str, *arguments: str, url: str = "") -> WorkerProcess: ...


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    with ExitStack() as undo:

        def run(target: str, *arguments: str, url: str = "") -> WorkerProcess:
            environment = {"HOLDFAST_URL": url or f"sqlite:///{tmp_path}/tasks.db"}
            worker = WorkerProcess(tmp_path, target, *arguments, environment=environment)
            return undo.enter_context(worker)

        yield run


def write(directory: Path, **modules: str) -> None:
    for name, text in modules.items():
        (directory / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("nowhere:app", "there is no module 'nowhere'"),
        ("good", "MODULE:APP"),
        ("good.py:app", "good:app"),
        ("good:ap", "it has app"),
        ("good:number", "is not an application but a int"),
    ],
)
def test_an_application_that_is_not_there(
    start: Start, tmp_path: Path, target: str, words: str
) -> None:
    write(tmp_path, good=GOOD)
    worker = start(target)
    assert worker.wait() == 2
    assert words in worker.said
    assert "Traceback" not in worker.said


def test_an_application_that_raises_when_it_is_imported(start: Start, tmp_path: Path) -> None:
    write(tmp_path, broken="import helper\n", helper="def f():\n    return 1 / 0\nf()\n")
    worker = start("broken:app")
    assert worker.wait() == 2
    # The author's own traceback, and none of our frames in it.
    assert "ZeroDivisionError: division by zero" in worker.said
    assert "helper.py" in worker.said
    assert "return 1 / 0" in worker.said
    assert "holdfast/" not in worker.said
    assert "importlib" not in worker.said


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def f(:\n", "SyntaxError"),
        ("import sys\nsys.exit(5)\n", "SystemExit"),
        ("import no_such_library\n", "no_such_library"),
        ("import os\nos._exit(5)\n", "exit status 5"),
        ("import os\nos.kill(os.getpid(), 9)\n", "killed by SIGKILL"),
        ("from holdfast import Holdfast\napp = Holdfast(lease=-1)\n", "lease"),
    ],
)
def test_an_application_that_cannot_be_imported(
    start: Start, tmp_path: Path, text: str, words: str
) -> None:
    write(tmp_path, broken=text)
    worker = start("broken:app")
    assert worker.wait() == 2
    assert words in worker.said


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "0"),
        ("-c", "many"),
        ("--lease", "0.1"),
        ("-q", "a:5,b"),
        ("-q", "a,a"),
        ("-q", ""),
        ("--no-such-flag",),
        ("--listen-url", "nonsense"),
        ("--listen-url", "postgresql://localhost/tasks"),
    ],
)
def test_wrong_flags(start: Start, tmp_path: Path, arguments: tuple[str, ...]) -> None:
    write(tmp_path, good=GOOD)
    worker = start("good:app", *arguments)
    assert worker.wait() == 2
    assert arguments[0].strip("-").replace("-", "_") in worker.said.replace("-", "_")
    assert "Traceback" not in worker.said


def test_a_database_that_cannot_be_reached(start: Start, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    worker = start("good:app", url="postgresql://me:secret@127.0.0.1:1/nothing?connect_timeout=1")
    assert worker.wait() == 3
    assert "127.0.0.1" in worker.said
    assert "secret" not in worker.said
    assert "Traceback" not in worker.said


def test_a_database_that_the_server_does_not_have(
    start: Start, tmp_path: Path, postgres_server: PostgresServer
) -> None:
    write(tmp_path, good=GOOD)
    worker = start("good:app", url=f"{postgres_server.url.rpartition('/')[0]}/nowhere")
    assert worker.wait() == 3
    assert "does not exist" in worker.said
    assert "Traceback" not in worker.said


def test_a_file_that_is_no_database(start: Start, tmp_path: Path) -> None:
    write(tmp_path, good=GOOD)
    (tmp_path / "other.db").write_bytes(b"something else entirely" * 1000)
    worker = start("good:app", url=f"sqlite:///{tmp_path}/other.db")
    assert worker.wait() == 3
    assert "Traceback" not in worker.said
    assert (tmp_path / "other.db").read_bytes().startswith(b"something else")


LONG = """
import pathlib
import time

pathlib.Path("importing").touch()
time.sleep(60)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_stopped_while_the_application_is_imported(
    start: Start, tmp_path: Path, number: signal.Signals
) -> None:
    write(tmp_path, long=LONG)
    worker = start("long:app")
    until((tmp_path / "importing").exists, what="the import to begin")
    family = worker.descendants()
    assert family
    worker.signal(number)
    assert worker.wait(5) == 0
    assert "stopped before it was at work" in worker.said
    assert not any(map(alive, family))


def test_an_application_without_tasks(start: Start, tmp_path: Path) -> None:
    write(tmp_path, empty="from holdfast import Holdfast\napp = Holdfast()\n")
    worker = start("empty:app").ready()
    assert "empty:app has no task" in worker.said
    assert worker.stop() == 0


def test_stopped_before_its_children_are_ready_no_death_is_reported(
    start: Start, tmp_path: Path
) -> None:
    write(tmp_path, good=GOOD)
    worker = start("good:app", "-c", "2", "--burst")
    assert worker.wait(20) == 0
    assert "is at work" in worker.said
    assert "died" not in worker.said
