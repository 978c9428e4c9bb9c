"""Eight processes on one queue: every task is run once, by one of them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from time import monotonic

import pytest

from tests.support.stores import Kind, Lab, Labs
from tests.support.verbs import submission

PROCESSES = 8
TASKS = 10_000
PATIENCE_S = 90.0
ROOT = Path(__file__).parents[3]


@pytest.mark.alone
@pytest.mark.parametrize("kind", [Kind.SQLITE_FILE, Kind.POSTGRES])
def test_ten_thousand_tasks_are_run_once_each(labs: Labs, kind: Kind) -> None:
    with labs.open(kind) as lab:
        for _ in range(TASKS // 1000):
            lab.submit(*(submission() for _ in range(1000)))
        lists = drain(lab)
        taken = [id for ids in lists for id in ids]
        assert len(taken) == len(set(taken)) == TASKS
        assert sum(map(bool, lists)) > 1, "they were to work at once"
        assert lab.sql(
            "SELECT status, attempt, count(*) FROM holdfast_tasks GROUP BY status, attempt"
        ) == [("COMPLETED", 1, TASKS)]
        assert lab.sql(
            "SELECT outcome, attempt, count(*) FROM holdfast_task_attempts"
            " GROUP BY outcome, attempt"
        ) == [("COMPLETED", 1, TASKS)]


def drain(lab: Lab) -> list[list[str]]:
    """Let the processes loose at the same moment; what each of them ran."""
    settings = lab.store.settings
    url = settings.address if lab.engine == "postgresql" else f"sqlite:///{settings.address}"
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.store.races.drainer", url, settings.schema or ""],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for _ in range(PROCESSES)
    ]
    deadline = monotonic() + PATIENCE_S
    try:
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        lists = [
            process.communicate(timeout=deadline - monotonic())[0].split() for process in processes
        ]
        assert [process.returncode for process in processes] == [0] * PROCESSES
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return lists
