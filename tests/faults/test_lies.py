"""Children that say what no child may say: they end, their task is charged, nobody else is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from time import monotonic

import pytest

from holdfast import ErrorCode, TaskHandle, TaskStatus
from tests.support.deadline import until
from tests.support.site import Site, only_attempt
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess, alive

pytestmark = pytest.mark.mostly("sqlite")


@pytest.fixture(scope="module", params=["sqlite"])
def engine(request: pytest.FixtureRequest) -> str:
    """One will do: between a child and its supervisor there is no database."""
    found: str = request.param
    return found


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    return make_site("tests.faults.programs.liar")


@pytest.fixture(scope="module")
def worker(site: Site) -> WorkerProcess:
    return site.worker("-c", "2", "--kill-grace", "0.5").ready()


@pytest.fixture(autouse=True)
def lives(site: Site, worker: WorkerProcess) -> Iterator[None]:
    """It is the same worker before and after, and neighbours are served."""
    yield
    handles = site.module.neighbour.send_many([(n,) for n in range(4)])
    assert [handle.get(20) for handle in handles] == list(range(4))
    assert worker.process.poll() is None, worker.said


def caught(handle: TaskHandle[None], within: float = 10.0) -> str:
    """Wait until a lie is found out; what the task is told about it."""
    assert handle.wait(within) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.WORKER_CRASHED
    assert only_attempt(handle).exit_signal == 9
    return handle.info().failed_reason or ""


@pytest.mark.parametrize(
    "how",
    [
        "garbage",
        "oversized",
        "too_large_for_a_child",
        "malformed",
        "unknown_ending",
        "malformed_error",
        "large_numbers",
        "large_delay",
        "seen_from_outside",
        "nested",
        "no_such_slot",
        "unstorable_note",
        "twice_under_a_ticket",
        "cut_page",
        "no_socket",
    ],
)
def test_what_cannot_be_believed_ends_the_child(site: Site, how: str) -> None:
    reason = caught(site.send("lies", how))
    assert reason.startswith("its process was killed: it ")


def test_a_loop_of_many_tasks_is_no_shelter(site: Site) -> None:
    assert "cannot be read" in caught(site.send("lies-in-a-loop", "garbage"))


@pytest.mark.parametrize("how", ["forged_outcome", "forged_withdrawal", "foreign_note"])
def test_a_neighbours_task_is_its_own(site: Site, tmp_path: Path, how: str) -> None:
    go = tmp_path / "go"
    patient = site.send("patient", str(go))
    site.begun(go)
    slot = site.ledger.lines("begun", str(go))[0].data
    assert f"slot {slot}" in caught(site.send("lies", how, slot))
    go.touch()
    assert patient.get(10) == "its own"
    assert (patient.info().attempt, patient.info().progress) == (1, None)


def test_a_pid_is_not_taken_from_a_child(site: Site) -> None:
    bystander = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True
    )
    try:
        caught(site.send("lies", "another_pid", bystander.pid))
        assert alive(bystander.pid)
    finally:
        bystander.kill()
        bystander.wait()


@pytest.mark.parametrize(
    ("statement", "params"),
    [
        ("clean_leases", {"tokens": "x"}),
        ("stop_worker", {"worker_id": "x"}),
        ("write_meta", {"name": "clock", "value": 1}),
        ("read_checkpoint", {"key": 1, "token": "x", "name": "y"}),
        ("list_tasks", {"limit": 10**9}),
    ],
)
def test_what_a_task_has_no_business_with_is_refused(
    site: Site, worker: WorkerProcess, statement: str, params: dict[str, object]
) -> None:
    answer = site.send("asks", statement, params).get(10)
    assert statement in answer
    until(lambda: f"refused: {answer}" in worker.said, within=5, what="the refusal to be logged")


@pytest.mark.alone
@pytest.mark.parametrize("what", ["hello", "said"])
def test_a_flood_leaves_the_supervisor_time_for_others(
    site: Site, worker: WorkerProcess, what: str
) -> None:
    handle = site.send("floods", what)
    site.begun("floods")
    before, since = _cpu_seconds(worker.pid), monotonic()
    neighbours = site.module.neighbour.send_many([(n,) for n in range(50)])
    assert set(site.app.wait(neighbours, timeout=10)) == {TaskStatus.COMPLETED}
    assert handle.wait(20) is TaskStatus.FAILED
    assert handle.info().error_code == ErrorCode.TASK_TIMEOUT
    assert (_cpu_seconds(worker.pid) - before) / (monotonic() - since) < 0.6


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.alone
def test_what_a_task_leaves_running_does_not_keep_the_supervisor_busy(
    site: Site, worker: WorkerProcess
) -> None:
    left: int = site.send("leaves-yes-running").get(10)
    before = _cpu_seconds(worker.pid)
    deadline = monotonic() + 1.5
    until(lambda: monotonic() > deadline, within=5)
    assert _cpu_seconds(worker.pid) - before < 0.5
    assert alive(left)
