"""The audit: what no verb leaves behind, and what a broken disk or a bad hand may."""

from __future__ import annotations

from holdfast.core.decide import Change, decide
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Crashed
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import inspect, leases
from holdfast.store.verbs.leases import Abandoned
from tests.support.stores import Lab
from tests.support.verbs import submission


def crashed(task: Abandoned) -> Change:
    return decide(task, Crashed(), Policy.decode(task.task_options), lambda: 0.5)


def status(lab: Lab, id: bytes) -> TaskStatus:
    return lab.run(inspect.statuses([id]))[id]


def test_a_task_in_flight_without_a_lease_is_recovered(lab: Lab) -> None:
    for wanted in (TaskStatus.CLAIMED, TaskStatus.RUNNING):
        task = lab.reach(wanted)
        lab.sql("DELETE FROM holdfast_leases")
        assert lab.run(leases.audit()).adopted == 1
        assert lab.run(leases.audit()).adopted == 0
        lab.clock.advance(1)
        recovery = lab.run(leases.recover(crashed))
        assert recovery is not None
        assert recovery.released + recovery.recovered == 1
        assert status(lab, task.id) is TaskStatus.PENDING
        lab.sql("DELETE FROM holdfast_tasks")


def test_a_task_that_waits_for_nothing_runs(lab: Lab) -> None:
    task = lab.reach(TaskStatus.WAITING)
    lab.sql("UPDATE holdfast_tasks SET deps_needed = 0, deps_open = 0 WHERE status = 'WAITING'")
    lab.sql("DELETE FROM holdfast_task_dependencies")
    assert lab.run(leases.audit()).stuck == 1
    assert status(lab, task.id) is TaskStatus.PENDING


def test_the_walk_goes_on_where_a_page_ended(lab: Lab) -> None:
    from holdfast.store.verbs.submit import submit

    lab.run(submit([submission() for _ in range(5)]))
    first = lab.run(leases.audit(page=3))
    assert first.next is not None
    second = lab.run(leases.audit(first.next, page=3))
    assert (second.adopted, second.stuck, second.next) == (0, 0, None)
