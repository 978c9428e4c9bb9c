"""How a fleet stands, read at once."""

from __future__ import annotations

from holdfast.store.verbs import fleet, queues, statistics, workers
from holdfast.store.verbs.statistics import Tally
from tests.support.stores import SECOND, Lab
from tests.support.verbs import QUEUE


def register(lab: Lab, worker_id: str, lease: int) -> None:
    lab.run(
        workers.register(
            worker_id,
            hostname="here",
            pid=1,
            version="1",
            lease_us=lease,
            queues="[]",
            known="[]",
            settings="{}",
        )
    )


def test_an_empty_store(lab: Lab) -> None:
    found = lab.run(fleet.reading())
    assert (found.totals, found.depths) == ([], {})
    assert found.workers == {"alive": 0, "silent": 0}
    assert (found.leases, found.lease_overdue_us, found.schedule_lag_us) == (0, 0, 0)


def test_depths_workers_and_leases(lab: Lab) -> None:
    lab.running()
    lab.send_many(2)
    lab.run(queues.pause("other"))
    lab.run(statistics.add_tallies([Tally.of("w", QUEUE, "t", completed=2)]))
    register(lab, "w-1", 30 * SECOND)
    register(lab, "w-2", 300 * SECOND)
    register(lab, "w-3", 10**18)
    lab.clock.advance(100)
    found = lab.run(fleet.reading())
    assert found.totals[0][:2] == (QUEUE, "t")
    assert (found.depths[QUEUE].pending, found.depths[QUEUE].running) == (2, 1)
    assert found.depths["other"].paused
    assert found.depths[QUEUE].oldest_us >= 100 * SECOND
    assert found.workers == {"alive": 2, "silent": 1}
    assert found.leases == 1
    assert 0 < found.lease_overdue_us < 100 * SECOND


def test_a_schedule_that_is_overdue(lab: Lab) -> None:
    lab.clock.advance(1000)
    assert lab.run(fleet.reading()).schedules == 0
    sql = (
        "INSERT INTO holdfast_schedules (schedule_name, pattern, timezone, overlap, missed,"
        " max_missed, task_name, version, payload, declared, config_hash, seen_hashes, next_run_at,"
        " created_at, updated_at)"
        " SELECT 's', '* * * * *', 'UTC', 'skip', 'latest', 1, 't', 1, '{}', true, 'h', '[]',"
        " seen_at, seen_at, seen_at FROM holdfast_workers"
    )
    register(lab, "w-1", SECOND)
    lab.sql(sql)
    lab.clock.advance(60)
    found = lab.run(fleet.reading())
    assert (found.schedules, found.schedule_lag_us) == (1, 60 * SECOND)
