"""What a task may cost beside its own work: transactions, and switches of the supervisor.

Counted, not timed, so a busy machine changes little; the budgets are half as much again as a busy
one needed. At a hundredth, a tenth, and all of what two children can do. Owns the recorded budget:
who makes a task dearer has to say so here.
"""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from time import monotonic
from typing import Literal, NamedTuple

import psycopg
import pytest

from tests.support.deadline import passed, until
from tests.support.site import Site
from tests.support.sites import MakeSite
from tests.support.worker import WorkerProcess

PROGRAM = "tests.e2e.programs.reserve"
NAP = 0.01

Load = Literal["1 %", "10 %", "100 %"]


class Budget(NamedTuple):
    """The most for each task."""

    switches: float
    transactions: float


BUDGETS: dict[Load, Budget] = {
    # Most of it is what a worker does by itself, once a second.
    "1 %": Budget(switches=100, transactions=35),
    "10 %": Budget(switches=60, transactions=11),
    "100 %": Budget(switches=6, transactions=1.0),
}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("load", BUDGETS)
def test_a_task_costs_no_more_than_its_budget(fresh_site: MakeSite, load: Load) -> None:
    site = fresh_site(PROGRAM)
    worker = site.worker("-c", "2").ready()
    # Known by now, and the children have run something.
    site.app.wait(site.module.nap.send_many([(number, NAP) for number in range(40)]), 20)
    before = _switches(worker), _transactions(site)
    count = _work(site, load)
    switches = (_switches(worker) - before[0]) / count
    transactions = (_transactions(site) - before[1]) / count
    print(f"{load}: {switches:.2f} switches and {transactions:.2f} transactions a task")
    assert switches <= BUDGETS[load].switches
    assert transactions <= BUDGETS[load].transactions


def _work(site: Site, load: Load) -> int:
    """Have so much done for some seconds; how many tasks that were."""
    if load == "100 %":
        handles = site.module.nap.send_many([(number, NAP) for number in range(800)])
    else:
        pause, until_then, handles = 0.5 if load == "1 %" else 0.05, monotonic() + 6.0, []
        while monotonic() < until_then:
            handles.append(site.module.nap.send(len(handles), NAP))
            passed(pause)
    ended = 40 + len(handles)
    until(lambda: site.ledger.count("ended") >= ended, within=60, what="all to end")
    return len(handles)


def _switches(worker: WorkerProcess) -> int:
    """How often threads of the supervisor were switched to, or away from."""
    found = 0
    for status in Path(f"/proc/{worker.pid}/task").glob("*/status"):
        lines = status.read_text().splitlines()
        found += sum(int(line.split()[1]) for line in lines if "voluntary_ctxt_switches" in line)
    return found


def _transactions(site: Site) -> int:
    """How many transactions the database has seen; of SQLite nobody counts them."""
    if site.url.startswith("sqlite"):
        return 0
    with closing(psycopg.connect(site.url, autocommit=True)) as connection:
        connection.execute("SELECT pg_stat_clear_snapshot()")
        # The server adds up what its processes have told it, a second later at the most.
        passed(1.5)
        row = connection.execute(
            "SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()"
        ).fetchone()
    assert row is not None
    return int(row[0])
