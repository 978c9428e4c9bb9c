"""Schedules: what is fired when, what waits, what is dropped, and what code declares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.core.errors import ConfigError
from holdfast.core.moment import from_us
from holdfast.core.records import TaskFilter, TaskRecord
from holdfast.core.schedules.definition import ScheduleDefinition
from holdfast.core.schedules.firing import Missed, Overlap
from holdfast.core.schedules.records import TickStatus
from holdfast.store.verbs import declarations, inspect, schedules, ticks, workers, workflows
from holdfast.store.verbs.declarations import Declared
from holdfast.store.verbs.ticks import Fired
from tests.support.schedules import call, register, schedule
from tests.support.stores import MORNING, SECOND, Lab, on_each_engine

pytestmark = on_each_engine

MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
# MORNING is 20 seconds before a whole minute.
FIRST = MORNING + 20 * SECOND


def sent(lab: Lab) -> list[TaskRecord]:
    """Every task, in the order in which they will run."""
    page = lab.run(inspect.list_tasks(TaskFilter(), limit=500))
    return sorted(page.tasks, key=lambda task: (task.enqueued_at, task.id))


def fired(lab: Lab) -> list[int]:
    return [task.schedule_tick or 0 for task in sent(lab)]


def fire(lab: Lab, name: str = "s") -> Fired:
    done = lab.run(ticks.fire(name))
    assert done is not None
    return done


def end_all(lab: Lab) -> None:
    lab.sql(
        "UPDATE holdfast_tasks SET status = 'COMPLETED', ready = :no, finished_at = :now"
        " WHERE finished_at IS NULL",
        no=False,
    )


def statuses(lab: Lab, name: str = "s") -> dict[int, str]:
    return {each.tick: each.cause.value for each in lab.run(ticks.history(name, limit=500))}


def test_a_tick_is_fired_once_with_all_its_options(lab: Lab) -> None:
    lab.run(schedules.add(schedule(sends=call(kwargs='{"a":1}')), by="ann"))
    assert lab.run(ticks.due()).next_us == FIRST
    lab.clock.move_to(FIRST)
    assert lab.run(ticks.due()).names == ["s"]
    done = fire(lab)
    (task,) = sent(lab)
    assert [(run.tick, run.id) for run in done.runs] == [(FIRST, task.id)]
    assert (task.schedule_name, task.schedule_tick, task.kwargs) == ("s", FIRST, '{"a":1}')
    assert fire(lab).runs == []
    record = lab.run(schedules.show("s"))
    assert (record.last_run_at, record.last_tick, record.next_run_at) == (
        FIRST,
        FIRST,
        FIRST + MINUTE,
    )
    assert (record.last_task_id, record.run_count, record.created_by) == (task.id, 1, "ann")
    assert lab.run(ticks.due()).names == []


@pytest.mark.parametrize("overlap", ["skip", "wait", "allow"])
def test_one_tick_on_time_while_the_prior_run_is_live(lab: Lab, overlap: Overlap) -> None:
    lab.run(schedules.add(schedule(overlap=overlap)))
    for number in range(3):
        lab.clock.move_to(FIRST + number * MINUTE)
        fire(lab)
    second, third = FIRST + MINUTE, FIRST + 2 * MINUTE
    record = lab.run(schedules.show("s"))
    if overlap == "allow":
        assert fired(lab) == [FIRST, second, third]
        return
    assert fired(lab) == [FIRST]
    assert record.dropped_count == (2 if overlap == "skip" else 1)
    assert record.has_waiting == (overlap == "wait")
    # It waits for long, and never turns late. To look at it writes nothing.
    lab.clock.advance(1)
    fire(lab)
    assert lab.run(schedules.show("s")).updated_at == third
    lab.clock.move_to(third + 59 * SECOND)
    end_all(lab)
    fire(lab)
    assert fired(lab) == ([FIRST] if overlap == "skip" else [FIRST, third])
    assert lab.run(schedules.show("s")).has_waiting is False


@pytest.mark.parametrize(
    ("missed", "overlap", "is_live", "expected"),
    [
        ("skip", "skip", False, []),
        ("skip", "wait", False, []),
        ("skip", "allow", True, []),
        ("latest", "skip", False, ["newest"]),
        ("latest", "wait", False, ["newest"]),
        ("latest", "allow", False, ["newest"]),
        ("latest", "skip", True, []),
        ("latest", "wait", True, ["later"]),
        ("latest", "allow", True, ["newest"]),
        ("all", "wait", False, ["one by one"]),
        ("all", "wait", True, ["one by one"]),
        ("all", "allow", True, ["all"]),
    ],
)
def test_the_table_of_late_ticks(
    lab: Lab, missed: Missed, overlap: Overlap, is_live: bool, expected: list[str]
) -> None:
    """Three ticks, ten minutes apart, all late."""
    definition = schedule(
        timedelta(minutes=10),
        missed=missed,
        overlap=overlap,
    )
    lab.run(schedules.add(definition))
    first = lab.run(schedules.show("s")).next_run_at
    assert first is not None
    late = [first + number * 600 * SECOND for number in range(3)]
    if is_live:
        lab.run(ticks.run_now("s"))
    lab.clock.move_to(late[-1] + 61 * SECOND)

    def now_sent() -> list[int]:
        return sorted(tick for tick in fired(lab) if tick in late)

    done = fire(lab)
    if expected == ["newest"]:
        assert (now_sent(), done.dropped) == (late[-1:], 2)
    elif expected == ["all"]:
        assert (now_sent(), done.dropped) == (late, 0)
    elif expected == ["later"]:
        assert now_sent() == []
        end_all(lab)
        fire(lab)
        assert now_sent() == late[-1:]
    elif expected == ["one by one"]:
        for number in range(3):
            if is_live or number:
                end_all(lab)
                fire(lab)
            fire(lab)
            assert now_sent() == late[: number + 1]
        assert lab.run(schedules.show("s")).has_waiting is False
    else:
        assert (now_sent(), done.dropped) == ([], 3)
        end_all(lab)
        fire(lab)
        assert now_sent() == []
    assert done.next_us == late[-1] + 600 * SECOND


def test_one_that_is_not_late_is_fired_among_late_ones(lab: Lab) -> None:
    lab.run(schedules.add(schedule(missed="skip")))
    lab.clock.move_to(FIRST + 10 * MINUTE + 5 * SECOND)
    assert (fire(lab).dropped, fired(lab)) == (10, [FIRST + 10 * MINUTE])


def test_all_keeps_the_newest(lab: Lab) -> None:
    lab.run(schedules.add(schedule(missed="all", overlap="allow", max_missed=3)))
    lab.clock.move_to(FIRST + 10 * MINUTE + 5 * SECOND)
    done = fire(lab)
    # The last is not late, and does not count.
    assert fired(lab) == [FIRST + number * MINUTE for number in (6, 7, 8, 9, 10)][-4:]
    assert done.dropped == 7
    causes = statuses(lab)
    assert (causes[FIRST], causes[FIRST + 10 * MINUTE]) == ("missed", "tick")


def test_a_week_of_seconds_is_no_long_transaction(lab: Lab) -> None:
    lab.run(schedules.add(schedule("* * * * * *")))
    lab.clock.advance(7 * 86_400)
    done = fire(lab)
    assert (len(done.runs), done.dropped) == (1, 9_999)
    assert fired(lab) == [lab.clock.now]


def test_a_clock_set_back_fires_nothing_twice(lab: Lab) -> None:
    lab.run(schedules.add(schedule(overlap="allow")))
    for _ in range(2):
        for number in range(3):
            lab.clock.move_to(FIRST + number * MINUTE)
            fire(lab)
    assert fired(lab) == [FIRST, FIRST + MINUTE, FIRST + 2 * MINUTE]


def test_a_changed_definition_goes_on_after_now(lab: Lab) -> None:
    lab.run(schedules.add(schedule("0 * * * *")))
    lab.clock.advance(3 * 3600)
    record = lab.run(schedules.add(schedule("30 * * * *")))
    assert from_us(record.next_run_at or 0).minute == 30
    assert (record.next_run_at or 0) > lab.clock.now
    # The same again changes nothing.
    lab.clock.advance(3600)
    again = lab.run(schedules.add(schedule("30 * * * *")))
    assert again.next_run_at == record.next_run_at


def test_pause_and_resume(lab: Lab) -> None:
    lab.run(schedules.add(schedule()))
    assert lab.run(schedules.pause("s", by="bob")) is True
    assert lab.run(schedules.pause("s", by="eve")) is False
    assert lab.run(schedules.show("s")).paused_by == "bob"
    lab.clock.move_to(FIRST + 10 * MINUTE)
    assert lab.run(ticks.due()).names == []
    assert lab.run(ticks.fire("s")) is None
    assert lab.run(schedules.resume("s")) is True
    assert lab.run(schedules.resume("s")) is False
    assert lab.run(schedules.show("s")).next_run_at == FIRST + 11 * MINUTE
    with pytest.raises(ConfigError, match="no schedule is named 'x'"):
        lab.run(schedules.pause("x"))


def test_what_waits_is_dropped_by_a_resume(lab: Lab) -> None:
    lab.run(schedules.add(schedule(overlap="wait")))
    for number in range(2):
        lab.clock.move_to(FIRST + number * MINUTE)
        fire(lab)
    lab.run(schedules.pause("s"))
    end_all(lab)
    lab.clock.advance(600)
    lab.run(schedules.resume("s"))
    assert statuses(lab)[FIRST + MINUTE] == "changed"
    assert lab.run(schedules.show("s")).dropped_count == 1
    assert lab.run(ticks.due()).names == []


def test_run_now_and_what_it_counts_as(lab: Lab) -> None:
    lab.run(schedules.add(schedule()))
    lab.run(schedules.pause("s"))
    run = lab.run(ticks.run_now("s"))
    again = lab.run(ticks.run_now("s"))
    assert run is not None
    assert again is not None
    assert sorted(fired(lab)) == [MORNING, MORNING + 1]
    lab.run(schedules.resume("s"))
    lab.clock.move_to(FIRST)
    # It is the prior run now, and it is live.
    assert (fire(lab).runs, lab.run(schedules.show("s")).run_count) == ([], 2)


def test_backfill_fires_what_was_not_fired(lab: Lab) -> None:
    lab.run(schedules.add(schedule(overlap="allow")))
    lab.clock.move_to(FIRST)
    fire(lab)
    lab.clock.move_to(FIRST + 4 * MINUTE)
    fire(lab)
    begin = FIRST - 2 * MINUTE
    part = lab.run(ticks.backfill("s", begin, FIRST + 100 * MINUTE, begin))
    assert [run.tick for run in part.runs] == [
        FIRST + number * MINUTE for number in (-2, -1, 1, 2, 3)
    ]
    assert part.next_us is None
    assert lab.run(ticks.backfill("s", begin, FIRST + 100 * MINUTE, begin)).runs == []
    assert sorted(fired(lab)) == [FIRST + number * MINUTE for number in range(-2, 5)]
    assert lab.run(schedules.show("s")).next_run_at == FIRST + 5 * MINUTE
    long_ago = MORNING - 10_000 * MINUTE
    with pytest.raises(ConfigError, match="10,000 ticks or more"):
        lab.run(ticks.backfill("s", long_ago, MORNING, long_ago))


def test_a_tick_that_was_backfilled_before_its_turn_is_not_fired_again(lab: Lab) -> None:
    lab.run(schedules.add(schedule(overlap="allow")))
    lab.clock.move_to(FIRST)
    lab.run(ticks.backfill("s", FIRST, FIRST + 1, FIRST))
    assert fire(lab).runs == []
    assert fired(lab) == [FIRST]


def test_a_taken_unique_key_drops_the_tick(lab: Lab) -> None:
    lab.run(schedules.add(schedule(sends=call(unique="k"), overlap="allow")))
    lab.clock.move_to(FIRST)
    fire(lab)
    lab.clock.move_to(FIRST + MINUTE)
    done = fire(lab)
    assert (done.runs, done.dropped) == ([], 1)
    (task,) = sent(lab)
    newest = lab.run(ticks.history("s"))[0]
    assert (newest.status, newest.cause.value, newest.task_id) == (
        TickStatus.DROPPED,
        "unique",
        task.id,
    )


def test_a_workflow_is_started_with_its_one_step(lab: Lab) -> None:
    lab.run(schedules.add(schedule(sends=call(workflow=True))))
    lab.clock.move_to(FIRST)
    (run,) = fire(lab).runs
    assert run.is_workflow
    assert lab.run(workflows.read([run.id]))[run.id].name == "t"
    (step,) = sent(lab)
    assert (step.workflow_id, step.schedule_name, step.schedule_tick) == (run.id, "s", FIRST)
    lab.clock.move_to(FIRST + MINUTE)
    # The workflow is the prior run, and it is live.
    assert (fire(lab).runs, fired(lab)) == ([], [FIRST])


def test_once(lab: Lab) -> None:
    at = from_us(FIRST)
    lab.run(schedules.add(schedule(at)))
    lab.clock.move_to(FIRST)
    assert (fire(lab).next_us, fired(lab)) == (None, [FIRST])
    assert lab.run(ticks.due()).next_us is None
    with pytest.raises(ConfigError, match="its moment has passed"):
        lab.run(schedules.add(schedule(at, name="again")))


def test_start_and_end(lab: Lab) -> None:
    start, end = from_us(FIRST + HOUR), from_us(FIRST + HOUR + 2 * MINUTE)
    lab.run(schedules.add(schedule(start=start, end=end)))
    assert lab.run(schedules.show("s")).next_run_at == FIRST + HOUR
    assert lab.run(ticks.upcoming("s", 10)) == [FIRST + HOUR, FIRST + HOUR + MINUTE]
    lab.clock.move_to(FIRST + 3 * HOUR)
    assert fire(lab).next_us is None
    assert fired(lab) == [FIRST + HOUR + MINUTE]
    with pytest.raises(ConfigError, match=r"no tick between now and its end, .*never fire"):
        lab.run(schedules.add(schedule(start=start, end=end, name="again")))


def test_delete(lab: Lab) -> None:
    lab.run(schedules.add(schedule()))
    lab.clock.move_to(FIRST)
    fire(lab)
    assert lab.run(schedules.delete("s")) is True
    assert lab.run(schedules.delete("s")) is False
    assert lab.sql("SELECT count(*) FROM holdfast_schedule_ticks") == [(0,)]
    assert lab.run(ticks.fire("s")) is None
    assert fired(lab) == [FIRST]


# What code declares.


def deploy(lab: Lab, worker: str, *definitions: ScheduleDefinition) -> list[Declared]:
    """What a worker does at its start, and every few seconds."""
    register(lab, worker)
    mine = {each.name: each for each in definitions}
    hashes = {name: each.config_hash for name, each in mine.items()}
    lab.run(declarations.announce(worker, hashes))
    return settle(lab, *definitions)


def settle(lab: Lab, *definitions: ScheduleDefinition) -> list[Declared]:
    mine = {each.name: each for each in definitions}
    anew, gone = lab.run(declarations.unsettled(mine))
    found = [lab.run(declarations.declare(mine[name])) for name in anew]
    for name in gone:
        lab.run(declarations.stop(name))
    return found


def test_two_versions_side_by_side_do_not_flap(lab: Lab) -> None:
    old, new = schedule("0 * * * *"), schedule("30 * * * *")
    assert deploy(lab, "w1", old) == [Declared.NEW]
    assert deploy(lab, "w2", old) == []
    assert deploy(lab, "w3", new) == [Declared.CHANGED]
    for _ in range(3):
        assert settle(lab, old) == []
        assert settle(lab, new) == []
        assert lab.run(declarations.declare(old)) is Declared.YIELDED
    assert lab.run(schedules.show("s")).config_hash == new.config_hash
    # A step back: the last worker with the new code goes.
    lab.run(workers.stop("w3"))
    assert settle(lab, old) == [Declared.CHANGED]
    assert lab.run(schedules.show("s")).config_hash == old.config_hash


def test_one_that_no_live_worker_declares_has_stopped(lab: Lab) -> None:
    mine, other = schedule(), schedule(name="other")
    deploy(lab, "w1", mine)
    deploy(lab, "w2", other)
    lab.run(workers.stop("w1"))
    lab.clock.move_to(FIRST)
    # At once, even before anybody has noted it.
    done = lab.run(ticks.fire("s"))
    assert done is not None
    assert done.is_undeclared
    settle(lab, other)
    assert lab.run(schedules.show("s")).stopped_at == FIRST
    assert lab.run(ticks.due()).names == ["other"]
    # After a restart it goes on where it was.
    assert deploy(lab, "w3", mine) == [Declared.RETURNED]
    assert lab.run(ticks.due()).names == ["other", "s"]
    lab.run(workers.stop("w3"))
    settle(lab, other)
    # After a long time it begins anew.
    lab.clock.advance(3600)
    deploy(lab, "w3", mine)
    assert lab.run(schedules.show("s")).next_run_at == FIRST + HOUR + MINUTE


def test_a_dead_worker_declares_nothing(lab: Lab) -> None:
    deploy(lab, "w1", schedule())
    lab.clock.advance(31)
    done = lab.run(ticks.fire("s"))
    assert done is not None
    assert done.is_undeclared
    assert lab.run(ticks.fire("s", declared_here=True)) is not None
    assert fired(lab) == [FIRST]


def test_declared_and_added_ones_do_not_take_each_others_names(lab: Lab) -> None:
    deploy(lab, "w1", schedule())
    with pytest.raises(ConfigError, match="declared by the code"):
        lab.run(schedules.add(schedule("@daily")))
    with pytest.raises(ConfigError, match="would come back"):
        lab.run(schedules.delete("s"))
    lab.run(schedules.add(schedule(name="mine")))
    assert deploy(lab, "w2", schedule("@daily", name="mine")) == [Declared.TAKEN]
    assert lab.run(schedules.show("mine")).definition.pattern == "* * * * *"
    lab.run(workers.stop("w1"))
    assert lab.run(schedules.delete("s")) is True


def test_old_history_is_forgotten_and_not_fired_again(lab: Lab) -> None:
    lab.run(schedules.add(schedule(overlap="allow")))
    for number in range(3):
        lab.clock.move_to(FIRST + number * MINUTE)
        fire(lab)
    assert lab.run(ticks.prune(before=FIRST + MINUTE + 1, batch=1)) == 1
    assert lab.run(ticks.prune(before=FIRST + MINUTE + 1)) == 1
    assert [each.tick for each in lab.run(ticks.history("s"))] == [FIRST + 2 * MINUTE]
    with pytest.raises(ConfigError, match="is forgotten"):
        lab.run(ticks.backfill("s", FIRST, FIRST + HOUR, FIRST))
    later = FIRST + MINUTE + 1
    assert lab.run(ticks.backfill("s", later, FIRST + HOUR, later)).runs == []


def test_a_zone_decides(lab: Lab) -> None:
    lab.run(schedules.add(schedule("30 2 * * *", tz="Europe/Berlin")))
    at = from_us(lab.run(schedules.show("s")).next_run_at or 0)
    assert at == datetime(2030, 3, 18, 1, 30, tzinfo=UTC)
