"""Reading: pages, filters and counts, each bounded and the same on every store."""

from __future__ import annotations

import itertools

import pytest

from holdfast.core.identity import new_id
from holdfast.core.options.policy import Policy
from holdfast.core.outcome import Failed
from holdfast.core.records import TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import inspect, operate
from tests.support.stores import MORNING, SECOND, Lab
from tests.support.verbs import BOOM

S = TaskStatus


def listed(lab: Lab, wanted: TaskFilter, limit: int = 50) -> list[bytes]:
    """The ids of all pages, one after another."""
    ids: list[bytes] = []
    before: bytes | None = None
    for _ in range(100):
        page = lab.run(inspect.list_tasks(wanted, before=before, limit=limit))
        assert len(page.tasks) <= limit
        ids += [task.id for task in page.tasks]
        before = page.next
        if before is None:
            return ids
    raise AssertionError("the pages have no end")


def only(*statuses: TaskStatus) -> TaskFilter:
    return TaskFilter(status=frozenset(statuses))


@pytest.fixture
def zoo(lab: Lab) -> dict[TaskStatus, bytes]:
    """One task in each state."""
    return {status: lab.reach(status).id for status in TaskStatus}


# One task, many tasks.


def test_tasks_by_id_leaves_out_what_it_does_not_know(lab: Lab) -> None:
    id = lab.send()
    assert lab.run(inspect.tasks_by_id([id, new_id()])) == {id: lab.task(id)}
    assert lab.run(inspect.tasks_by_id([])) == {}
    assert lab.run(inspect.statuses([id, new_id()])) == {id: S.PENDING}


def test_endings_are_of_what_has_ended(lab: Lab, zoo: dict[TaskStatus, bytes]) -> None:
    found = lab.run(inspect.endings([*zoo.values(), new_id()]))
    assert set(found) == {id for status, id in zoo.items() if status.is_terminal}
    for id, ending in found.items():
        task = lab.task(id)
        assert ending == (
            task.status,
            task.result,
            task.error_code,
            task.failed_reason,
            task.finished_at,
            task.task_name,
            None,
        )


def test_attempts_of_nobody(lab: Lab) -> None:
    assert lab.run(inspect.attempts(new_id())) == []


# Pages.


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8])
def test_pages_go_from_the_newest_to_the_oldest_without_gaps_or_repeats(
    lab: Lab, limit: int
) -> None:
    ids = lab.send_many(7)
    assert listed(lab, TaskFilter(), limit) == sorted(ids, reverse=True)


def test_the_last_page_says_that_it_is_the_last(lab: Lab) -> None:
    lab.send_many(4)
    first = lab.run(inspect.list_tasks(TaskFilter(), limit=2))
    assert first.next is not None
    second = lab.run(inspect.list_tasks(TaskFilter(), before=first.next, limit=2))
    assert (len(second.tasks), second.next) == (2, None)
    assert lab.run(inspect.list_tasks(TaskFilter(), limit=4)).next is None
    assert lab.run(inspect.list_tasks(TaskFilter(), limit=5)).next is None


def test_new_tasks_do_not_shift_the_pages(lab: Lab) -> None:
    ids = sorted(lab.send_many(4), reverse=True)
    first = lab.run(inspect.list_tasks(TaskFilter(), limit=2))
    lab.send_many(3)
    second = lab.run(inspect.list_tasks(TaskFilter(), before=first.next, limit=2))
    assert [task.id for task in (*first.tasks, *second.tasks)] == ids


def test_a_page_has_at_least_one_and_at_most_five_hundred_tasks(lab: Lab) -> None:
    lab.send_many(3)
    assert len(lab.run(inspect.list_tasks(TaskFilter(), limit=0)).tasks) == 1
    assert len(lab.run(inspect.list_tasks(TaskFilter(), limit=10**6)).tasks) == 3


def test_nothing_to_list(lab: Lab) -> None:
    assert lab.run(inspect.list_tasks(TaskFilter())) == inspect.Page([], None)


@pytest.mark.parametrize(
    "wanted",
    [
        only(S.PENDING),
        only(S.SCHEDULED),
        only(S.CLAIMED),
        only(S.WAITING),
        TaskFilter(status=frozenset({S.FAILED}), dead=True),
        TaskFilter(status=frozenset({S.FAILED}), error_code="BOOM"),
        TaskFilter(),
    ],
    ids=["pending", "scheduled", "leased", "walk", "dead", "failed", "any"],
)
def test_a_long_list_is_complete_although_each_look_at_it_is_short(
    lab: Lab, wanted: TaskFilter, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More tasks than one statement examines, on every way to them."""
    monkeypatch.setattr(inspect, "SCAN", 5)
    (status,) = wanted.status or {S.COMPLETED}
    # The queue's order is not the order of the ids.
    expected = [lab.reach(status, priority=100 - place).id for place in range(12)]
    others = lab.send_many(3, delay_us=SECOND if status is S.PENDING else None)
    if not wanted.status:
        expected += others
    assert listed(lab, wanted, limit=4) == sorted(expected, reverse=True)


# Filters.


def test_by_status(lab: Lab, zoo: dict[TaskStatus, bytes]) -> None:
    for status, id in zoo.items():
        assert listed(lab, only(status)) == [id]
    for pair in itertools.pairwise(TaskStatus):
        assert set(listed(lab, only(*pair))) == {zoo[status] for status in pair}
    assert set(listed(lab, only(*TaskStatus))) == set(zoo.values())


def test_by_queue_and_name(lab: Lab) -> None:
    a = lab.send(queue_name="a", task_name="x")
    b = lab.send(queue_name="b", task_name="x")
    c = lab.send(queue_name="b", task_name="y")
    assert listed(lab, TaskFilter(queue_name="a")) == [a]
    assert listed(lab, TaskFilter(task_name="x")) == [b, a]
    assert listed(lab, TaskFilter(queue_name="b", task_name="y")) == [c]
    assert listed(lab, TaskFilter(queue_name="a", status=frozenset({S.PENDING}))) == [a]
    assert listed(lab, TaskFilter(queue_name="c")) == []


def test_by_tag(lab: Lab) -> None:
    red = lab.send(tags='["red","big"]')
    odd = lab.send(tags='["re\\"d","ünï","%"]')
    lab.send()
    lab.send(tags="[]")
    assert listed(lab, TaskFilter(tag="red")) == [red]
    assert listed(lab, TaskFilter(tag="big")) == [red]
    assert listed(lab, TaskFilter(tag='re"d')) == [odd]
    assert listed(lab, TaskFilter(tag="ünï")) == [odd]
    assert listed(lab, TaskFilter(tag="%")) == [odd]
    assert listed(lab, TaskFilter(tag="re")) == []


def test_by_worker(lab: Lab) -> None:
    lab.send_many(3)
    mine = lab.claim(1, worker="me").tasks[0]
    theirs = lab.claim(1, worker="they").tasks[0]
    lab.start(theirs)
    lab.complete(theirs)
    assert listed(lab, TaskFilter(worker_id="me")) == [mine.id]
    assert listed(lab, TaskFilter(worker_id="they")) == [theirs.id]
    assert listed(lab, TaskFilter(worker_id="they", status=frozenset({S.CLAIMED}))) == []


def test_by_time_from_inclusive_until_exclusive(lab: Lab) -> None:
    ids = []
    for _ in range(4):
        ids.append(lab.send())
        lab.clock.advance(1)
    wanted = TaskFilter(created_from=MORNING + SECOND, created_until=MORNING + 3 * SECOND)
    assert listed(lab, wanted) == [ids[2], ids[1]]
    assert listed(lab, TaskFilter(created_from=MORNING + 3 * SECOND)) == [ids[3]]
    assert listed(lab, TaskFilter(created_until=MORNING + SECOND)) == [ids[0]]


def test_by_error_code_and_dead_letters(lab: Lab, zoo: dict[TaskStatus, bytes]) -> None:
    quiet = lab.running()
    lab.end(quiet, Failed(BOOM), Policy(dead_letter=False))
    assert listed(lab, TaskFilter(error_code="BOOM")) == [quiet.id, zoo[S.FAILED]]
    assert listed(lab, TaskFilter(error_code="TASK_EXPIRED")) == [zoo[S.EXPIRED]]
    dead = {zoo[S.FAILED], zoo[S.STALLED], zoo[S.DROPPED]}
    assert set(listed(lab, TaskFilter(dead=True))) == dead
    assert set(listed(lab, TaskFilter(dead=False))) == {quiet.id, *zoo.values()} - dead
    assert listed(lab, TaskFilter(dead=True, error_code="BOOM")) == [zoo[S.FAILED]]
    lab.run(operate.resubmit([zoo[S.FAILED]]))
    assert listed(lab, TaskFilter(error_code="BOOM")) == [quiet.id]


def test_dead_letters_of_one_queue(lab: Lab) -> None:
    lab.reach(S.FAILED, queue_name="a")
    b = lab.reach(S.FAILED, queue_name="b")
    assert listed(lab, TaskFilter(dead=True, queue_name="b")) == [b.id]


def test_by_workflow(lab: Lab) -> None:
    workflow = new_id()
    ids = lab.send_many(3, workflow_id=workflow)
    lab.send(workflow_id=new_id())
    assert listed(lab, TaskFilter(workflow_id=workflow), 2) == sorted(ids, reverse=True)
    assert listed(lab, TaskFilter(workflow_id=workflow, status=frozenset({S.FAILED}))) == []


def test_by_parent(lab: Lab) -> None:
    parent = new_id()
    ids = lab.send_many(3, parent_id=parent)
    lab.send(parent_id=new_id())
    lab.send()
    assert listed(lab, TaskFilter(parent_id=parent), 2) == sorted(ids, reverse=True)
    assert listed(lab, TaskFilter(parent_id=parent, queue_name="none")) == []
    wanted = TaskFilter(parent_id=parent, status=frozenset({S.PENDING}))
    assert listed(lab, wanted) == sorted(ids, reverse=True)


# Counts.


def test_counts_of_every_state(lab: Lab, zoo: dict[TaskStatus, bytes]) -> None:
    lab.send_many(2)
    found = lab.run(inspect.counts()).by_status
    assert found == {status: 3 if status is S.PENDING else 1 for status in zoo}


def test_counts_of_one_queue(lab: Lab) -> None:
    lab.send_many(2, queue_name="a")
    lab.send(queue_name="b")
    lab.send(queue_name="a", delay_us=SECOND)
    lab.reach(S.COMPLETED, queue_name="c")
    assert lab.run(inspect.counts("a")).by_status == {S.PENDING: 2, S.SCHEDULED: 1}
    assert lab.run(inspect.counts("c")).by_status == {S.COMPLETED: 1}
    assert lab.run(inspect.counts("none")).by_status == {}


def test_counting_stops_at_the_cap_and_says_so(lab: Lab) -> None:
    lab.send_many(5)
    lab.send_many(5, delay_us=SECOND)
    found = lab.run(inspect.counts(cap=3))
    assert found.cap == 3
    assert found.by_status == {S.PENDING: 3, S.SCHEDULED: 3}
    assert found.at_least == {S.PENDING, S.SCHEDULED, S.WAITING, S.COMPLETED}
    whole = lab.run(inspect.counts(cap=11))
    assert whole.by_status == {S.PENDING: 5, S.SCHEDULED: 5}
    assert whole.at_least == frozenset()


def test_old_tasks_that_ended_are_counted_or_there_may_be_more(lab: Lab) -> None:
    """Newer ones stand before them."""
    old = [lab.reach(status) for status in (S.COMPLETED, S.FAILED, S.CANCELLED)]
    assert old
    lab.send_many(5)
    found = lab.run(inspect.counts(cap=5))
    assert found.by_status == {S.PENDING: 5, S.FAILED: 1, S.CANCELLED: 1}
    assert found.at_least == {S.PENDING, S.WAITING, S.COMPLETED}
    lab.cancel(*lab.send_many(4))
    found = lab.run(inspect.counts(cap=5))
    assert found.by_status[S.CANCELLED] >= 4
    assert found.at_least >= {S.FAILED, S.CANCELLED, S.COMPLETED, S.STALLED}


def test_a_task_in_two_lease_rows_is_counted_and_listed_once(lab: Lab) -> None:
    """The row of an earlier claim stays until the keeper cleans it."""
    task = lab.running()
    lab.fail_and_resubmit(task)
    lab.run_again(task.id)
    assert lab.run(inspect.counts()).by_status == {S.RUNNING: 1}
    assert listed(lab, only(S.RUNNING)) == [task.id]
