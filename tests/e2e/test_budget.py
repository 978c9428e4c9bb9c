"""What a task may cost beside its own work: statements, transactions, bytes, switches, wake-ups.

Counted, not timed, so a busy machine changes little; the budgets are half as much again as a busy
one needed. At a hundredth, a tenth, and all of what two children can do. Owns the recorded budget:
who makes a task dearer has to say so here.
"""

from __future__ import annotations

from time import monotonic
from typing import Literal

import pytest

from tests.support.costs import CostMeter, Costs
from tests.support.deadline import passed, until
from tests.support.postgres import PostgresServer
from tests.support.site import Engine, Site
from tests.support.sites import MakeSite

PROGRAM = "tests.e2e.programs.reserve"
NAP = 0.01

Load = Literal["1 %", "10 %", "100 %"]

# At low load most of it is what a worker does by itself, once a second.
BUDGETS: dict[Engine, dict[Load, Costs]] = {
    "postgresql": {
        "1 %": Costs(42, 36, 4_000, 100, 80, 6),
        "10 %": Costs(18, 11, 3_600, 57, 40, 6),
        "100 %": Costs(1.0, 0.8, 3_100, 3.3, 2.7, 2.2),
    },
    "sqlite": {
        "1 %": Costs(110, 11, 72_000, 100, 78, 6),
        "10 %": Costs(35, 3.8, 41_000, 48, 36, 6),
        "100 %": Costs(5.9, 0.43, 9_900, 5.6, 4.2, 2.2),
    },
}


@pytest.mark.slow
@pytest.mark.alone
@pytest.mark.parametrize("load", BUDGETS["sqlite"])
def test_a_task_costs_no_more_than_its_budget(
    engine: Engine, fresh_site: MakeSite, postgres_server: PostgresServer, load: Load
) -> None:
    site = fresh_site(PROGRAM)
    meter = CostMeter(site, postgres_server)
    worker = site.worker("-c", "2", **meter.environment).ready()
    # Known by now, and the children have run something.
    site.app.wait(site.module.nap.send_many([(number, NAP) for number in range(40)]), 20)
    before = meter.read(worker)
    count = _work(site, load)
    found = meter.read(worker).each(before, count)
    print(f"{engine} {load}:", *(f"{name} {cost:.2f}" for name, cost in found._asdict().items()))
    budget = BUDGETS[engine][load]
    dearer = {
        name: f"{cost:.2f}, budget {most:g}"
        for name, cost, most in zip(Costs._fields, found, budget, strict=True)
        if cost > most
    }
    assert dearer == {}


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
