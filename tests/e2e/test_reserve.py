"""A deep queue: children have work ahead, and nobody waits for that who should not."""

from __future__ import annotations

from itertools import pairwise

import pytest

from holdfast.core.status import AttemptOutcome
from tests.support.deadline import until
from tests.support.ledger import Line
from tests.support.site import Site
from tests.support.sites import MakeSite

pytestmark = pytest.mark.mostly("postgresql")

PROGRAM = "tests.e2e.programs.reserve"
NAP = 0.01


def naps(site: Site, count: int, seconds: float = NAP, *, first: int = 0) -> None:
    site.module.nap.send_many([(number, seconds) for number in range(first, first + count)])


def have_ended(site: Site, count: int, *, within: float = 40.0) -> None:
    until(
        lambda: site.ledger.count("ended") >= count,
        within=within,
        what=f"{count} tasks to end",
    )


def begun_since(site: Site, moment: float) -> list[Line]:
    return [line for line in site.ledger.lines("begun") if line.at > moment]


@pytest.mark.alone
def test_each_runs_once_and_without_a_pause_between_them(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    naps(site, 300)
    site.worker("-c", "2", "--burst").wait()
    assert site.ledger.tally("ended") == {str(number): 1 for number in range(300)}
    gaps: list[float] = []
    for pid in {line.pid for line in site.ledger.lines()}:
        mine = [line for line in site.ledger.lines() if line.pid == pid]
        pairs = [(a, b) for a, b in pairwise(mine) if a.kind == "ended"]
        gaps += [after.at - before.at for before, after in pairs]
    # A claim and a start between two of them would take some milliseconds.
    assert sorted(gaps)[len(gaps) // 2] < 0.002


@pytest.mark.alone
def test_an_urgent_task_goes_before_what_has_not_begun(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    naps(site, 400)
    site.worker("-c", "2").ready()
    have_ended(site, 80)
    site.options(priority=1).send("other-nap", "urgent", 0.0)
    sent_at = site.ledger.lines("begun")[-1].at
    site.begun("urgent")
    before = [line.key for line in begun_since(site, sent_at)].index("urgent")
    # Each child has twenty ahead.
    assert before < 15
    have_ended(site, 401)
    assert set(site.ledger.tally("ended").values()) == {1}


@pytest.mark.alone
def test_a_queue_that_comes_first_does_not_wait_for_one_that_is_deep(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    naps(site, 400)
    site.worker("-c", "2", "-q", "first,default").ready()
    have_ended(site, 80)
    site.options(queue="first").send("other-nap", "urgent", 0.0)
    sent_at = site.ledger.lines("begun")[-1].at
    site.begun("urgent")
    assert [line.key for line in begun_since(site, sent_at)].index("urgent") < 15


@pytest.mark.alone
def test_the_end_of_a_backlog_is_shared(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    naps(site, 100, 0.1)
    site.worker("-c", "4", "--burst").wait()
    assert site.ledger.tally("ended") == {str(number): 1 for number in range(100)}
    last: dict[int, float] = {line.pid: line.at for line in site.ledger.lines("ended")}
    assert len(last) == 4
    # None of them still had two when another had nothing to do.
    assert max(last.values()) - min(last.values()) < 0.19


def test_none_waits_behind_one_that_takes_long(fresh_site: MakeSite) -> None:
    """The same task takes a hundred times as long as it did before."""
    site = fresh_site(PROGRAM)
    site.worker("-c", "2").ready()
    naps(site, 60)
    have_ended(site, 60)
    site.module.nap.send_many([(100, 1.5), *((number, NAP) for number in range(101, 141))])
    have_ended(site, 101)
    ends = {line.key: line.at for line in site.ledger.lines("ended")}
    assert max(ends.values()) == ends["100"]


def test_what_a_dead_child_had_not_begun_costs_nothing(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    naps(site, 60)
    crash = site.send("dies", "crash")
    naps(site, 100, first=60)
    handle = site.module.nap.send(160, NAP)
    site.worker("-c", "1", "--burst").wait()
    # What had ended was told before the crash: it does not run again.
    assert site.ledger.tally("ended") == {str(number): 1 for number in range(161)}
    assert crash.info().crash_count > 0
    assert handle.info().crash_count == 0
    interrupted = [
        attempt
        for handle in [handle]
        for attempt in handle.attempts()
        if attempt.outcome is not AttemptOutcome.COMPLETED
    ]
    assert {attempt.outcome for attempt in interrupted} <= {AttemptOutcome.INTERRUPTED}


def test_a_task_that_must_be_alone_finds_a_child(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    naps(site, 100)
    once = site.send("once", "once")
    naps(site, 200, first=100)
    site.worker("-c", "2", "--burst").wait()
    assert set(site.ledger.tally("ended").values()) == {1}
    assert site.ledger.count("ended") == 301
    assert [attempt.outcome for attempt in once.attempts()] == [AttemptOutcome.COMPLETED]
    ends = [line.key for line in site.ledger.lines("ended")]
    # It need not wait for the queue to become shallow.
    assert ends.index("once") < 200


def test_long_tasks_beside_short_ones_keep_no_child_from_work(fresh_site: MakeSite) -> None:
    """Two of three children are in long tasks; the third has the short ones."""
    site = fresh_site(PROGRAM)
    for name in ("one", "two"):
        site.send("gated", name)
        naps(site, 100, 0.001, first=1000 if name == "two" else 0)
    site.worker("-c", "3").ready()
    site.begun("one", "two")
    have_ended(site, 200)
    site.ledger.open_gate("one", "two")
    have_ended(site, 202)
    assert set(site.ledger.tally("ended").values()) == {1}


@pytest.mark.alone
def test_a_paused_queue_begins_nothing_of_what_was_given_ahead(fresh_site: MakeSite) -> None:
    site = fresh_site(PROGRAM)
    naps(site, 300)
    site.worker("-c", "1").ready()
    have_ended(site, 40)
    site.app.control.queues.pause("default")
    paused_at = site.ledger.lines("begun")[-1].at
    site.send("nap", 300, NAP)
    until(
        lambda: not site.app.control.tasks.list(status="RUNNING", limit=1).tasks,
        within=10,
        what="what has begun to end, and the rest to go back",
    )
    assert len(begun_since(site, paused_at)) < 12
    site.app.control.queues.resume("default")
    have_ended(site, 301)
    assert set(site.ledger.tally("ended").values()) == {1}
