"""Programs that use `sqlite3` on the file of their tasks: nothing is damaged, nothing is lost."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from holdfast import Holdfast
from tests.support.deadline import until
from tests.support.ledger import Ledger
from tests.support.worker import REPOSITORY, WorkerProcess

KINDS = ("flask", "kept", "threads", "forks", "sqlalchemy", "django", "aiosqlite")
PROGRAM = "tests.faults.programs.beside"
PATIENCE = 90.0


class Running:
    """One of the programs, and what it has acknowledged."""

    def __init__(self, kind: str, file: Path, rounds: int, name: str | None = None) -> None:
        self.kind = kind
        self.acknowledged: list[str] = []
        self._process = subprocess.Popen(
            [sys.executable, "-m", PROGRAM, kind, str(file), name or kind, str(rounds)],
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.endswith("\n"):
                self.acknowledged.append(line.strip())

    def end(self) -> None:
        """Wait for its own end, which must be a good one."""
        assert self._process.stderr is not None
        error = self._process.stderr.read()
        assert self._process.wait(PATIENCE) == 0, f"{self.kind} failed:\n{error}"
        self._reader.join(10)

    def kill(self, after: int) -> None:
        """SIGKILL once it has acknowledged so many."""
        until(lambda: len(self.acknowledged) >= after or self._process.poll() is not None)
        self.close()

    def close(self) -> None:
        if self._process.poll() is None:
            # The group: it may have forked.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait(PATIENCE)
        self._reader.join(10)
        for stream in (self._process.stdout, self._process.stderr):
            assert stream is not None
            stream.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with a table of the programs' own."""
    path = tmp_path / "shop.db"
    with closing(sqlite3.connect(path)) as db:
        db.execute("CREATE TABLE orders (name TEXT)")
        db.commit()
    with closing(Holdfast(f"sqlite:///{path}")) as app:
        app.control.queues.list()
    return path


@pytest.fixture
def running() -> Iterator[list[Running]]:
    started: list[Running] = []
    yield started
    for program in started:
        program.close()


def check(file: Path, acknowledged: list[str]) -> None:
    """The file is sound, and has every order and every task that was acknowledged."""
    with closing(sqlite3.connect(file)) as db:
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        orders = {name.partition(" ")[0] for (name,) in db.execute("SELECT name FROM orders")}
        tasks = {args[2:-2] for (args,) in db.execute("SELECT args FROM holdfast_tasks")}
    assert set(acknowledged) - orders == set()
    assert set(acknowledged) - tasks == set()


def test_a_request_at_a_time(file: Path, running: list[Running]) -> None:
    running.append(Running("flask", file, 40))

    running[0].end()

    assert len(running[0].acknowledged) == 40
    check(file, running[0].acknowledged)


def test_programs_of_every_kind_at_once(file: Path, running: list[Running]) -> None:
    running += [Running(kind, file, 8) for kind in KINDS]
    victim = Running("flask", file, 1_000, name="victim")
    running.append(victim)

    victim.kill(after=5)
    for program in running[:-1]:
        program.end()

    check(file, [name for program in running for name in program.acknowledged])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_program_alone(kind: str, file: Path, running: list[Running]) -> None:
    running.append(Running(kind, file, 400))

    running[0].end()

    assert len(running[0].acknowledged) >= 399
    check(file, running[0].acknowledged)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_kills_among_programs_and_workers(
    file: Path, tmp_path: Path, running: list[Running]
) -> None:
    draw = random.Random(7)
    environment = {"HOLDFAST_URL": f"sqlite:///{file}", "PYTHONPATH": str(REPOSITORY)}
    environment |= Ledger(tmp_path).environment
    workers: list[WorkerProcess] = []
    with ExitStack() as undo:
        for number in range(12):
            for kind in KINDS:
                running.append(Running(kind, file, 60, name=f"{kind}{number}"))
                if draw.random() < 0.5:
                    running[-1].kill(after=draw.randrange(40))
            worker = WorkerProcess(
                tmp_path, "tests.faults.programs.load:app", "-c", "1", environment=environment
            )
            workers.append(undo.enter_context(worker))
            if len(workers) > 2:
                workers.pop(0).kill()
            for program in running:
                program.close()
            check(file, [name for program in running for name in program.acknowledged])
