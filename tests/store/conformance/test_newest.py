"""Lists, the newest first, whoever made the ids."""

from __future__ import annotations

import random
from uuid import NAMESPACE_URL, UUID, uuid4, uuid5

import pytest

from holdfast.core.errors import TaskNotFound
from holdfast.core.identity import uuid7
from holdfast.core.records import TaskFilter
from holdfast.core.status import TaskStatus
from holdfast.store.verbs import inspect, newest, operate
from tests.support.stores import Lab

EVERYTHING = TaskFilter()


def send(lab: Lab, *, own: bool, **fields: object) -> bytes:
    """A task, a second after the last one, under an id of either kind."""
    lab.clock.advance(1)
    made = uuid7(lab.clock.now // 1000, random.randbytes(10))
    return lab.send(id=uuid4().bytes if own else made, **fields)


def walk(lab: Lab, wanted: TaskFilter = EVERYTHING, limit: int = 3) -> list[bytes]:
    """All pages of a list, one after the other."""
    ids: list[bytes] = []
    before: bytes | None = None
    for _ in range(100):
        page = lab.run(newest.newest(wanted, before=before, limit=limit))
        ids += [task.id for task in page.tasks]
        before = page.next
        if before is None:
            return ids
    raise AssertionError("the list has no end")


def test_ids_that_callers_made_stand_at_their_time(lab: Lab) -> None:
    sent = [send(lab, own=n % 3 != 1) for n in range(20)]
    for limit in (1, 2, 3, 7, 20, 50):
        assert walk(lab, limit=limit) == sent[::-1]


def test_only_own_ids_and_none(lab: Lab) -> None:
    assert walk(lab) == []
    own = [send(lab, own=True) for _ in range(7)]
    assert walk(lab, limit=7) == own[::-1]
    assert walk(lab, limit=3) == own[::-1]


def test_filters_apply_to_both(lab: Lab) -> None:
    sent = [send(lab, own=n % 2 == 0, queue_name="ab"[n // 2 % 2]) for n in range(12)]
    wanted = TaskFilter(queue_name="b")
    assert walk(lab, wanted) == [id for n, id in enumerate(sent) if n // 2 % 2][::-1]
    since = TaskFilter(created_from=lab.task(sent[9]).created_at)
    assert walk(lab, since) == sent[9:][::-1]
    lab.cancel(sent[0])
    lab.cancel(sent[1])
    done = TaskFilter(status=frozenset({TaskStatus.CANCELLED, TaskStatus.COMPLETED}))
    assert walk(lab, done) == [sent[1], sent[0]]


def test_a_scan_that_finds_little_goes_on(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inspect, "SCAN", 2)
    monkeypatch.setattr(newest, "SCAN", 2)
    sent = [send(lab, own=n % 2 == 0, queue_name="ab"[n in (3, 4, 20)]) for n in range(24)]
    assert walk(lab, TaskFilter(queue_name="b")) == [sent[20], sent[4], sent[3]]
    assert walk(lab, limit=5) == sent[::-1]


def test_many_of_one_moment(lab: Lab) -> None:
    ids = {lab.send(id=uuid5(NAMESPACE_URL, str(n)).bytes) for n in range(9)}
    found = walk(lab, limit=2)
    assert len(found) == 9
    assert set(found) == ids


def test_a_page_after_a_task_that_is_gone(lab: Lab) -> None:
    sent = [send(lab, own=own) for own in (True, False, True)]
    for id in sent:
        lab.cancel(id)
    lab.run(operate.delete(sent[1:]))
    page = lab.run(newest.newest(EVERYTHING, before=sent[1]))
    assert [task.id for task in page.tasks] == [sent[0]]
    with pytest.raises(TaskNotFound, match=str(UUID(bytes=sent[2]))):
        lab.run(newest.newest(EVERYTHING, before=sent[2]))


def test_the_narrow_paths_are_as_they_were(lab: Lab) -> None:
    own = [send(lab, own=True) for _ in range(3)]
    wanted = TaskFilter(status=frozenset({TaskStatus.PENDING}))
    assert walk(lab, wanted, limit=2) == sorted(own, reverse=True)
