"""Schedules with real workers: on time, changed while they run, and gone with their code."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from functools import partial
from statistics import median

import pytest

from tests.support.deadline import until
from tests.support.site import Site
from tests.support.sites import MakeSite

BOUND = 0.1
WORST = 0.5


@pytest.fixture(scope="module")
def site(make_site: MakeSite) -> Site:
    site = make_site("tests.e2e.programs.scheduled")
    site.worker("-c", "2", "--lease", "5").ready()
    until(lambda: site.ledger.lines("declared"), what="a first tick")
    return site


@pytest.mark.alone
def test_a_tick_starts_at_its_time(site: Site) -> None:
    seen = len(site.ledger.lines("declared"))
    lines = until(
        lambda: site.ledger.lines("declared")[seen:][4:] and site.ledger.lines("declared")
    )
    ahead = time.time() - time.monotonic()
    late = sorted(line.at + ahead - float(line.key) for line in lines[seen:])
    assert late[0] > -0.05
    # The machine may hold up one of them.
    assert late[-2] < BOUND, late
    assert late[-1] < WORST, late


@pytest.mark.alone
def test_a_schedule_that_is_added_wakes_an_idle_worker(site: Site) -> None:
    stamp = site.module.stamp
    # What has to be imported is, so that the time until then is that of the worker.
    site.app.control.schedules.list()
    late = []
    for name in ("soon", "soon-again", "soon-at-last"):
        at = datetime.now(UTC) + timedelta(seconds=0.7)
        site.app.control.schedules.add(name, at, stamp.call(name))
        (line,) = until(partial(site.ledger.lines, name), within=5)
        late.append(line.at + time.time() - time.monotonic() - at.timestamp())
        assert float(line.key) == pytest.approx(at.timestamp(), abs=1e-4)
    assert min(late) > -0.05
    assert median(late) < BOUND, late
    assert max(late) < WORST, late


def test_a_pause_and_what_the_history_says(site: Site) -> None:
    s = site.app.control.schedules
    assert s.pause("every-second", by="ann")
    shown = s.show("every-second")
    assert (shown.declared, shown.paused_by) == (True, "ann")
    number = shown.run_count
    # On a busy machine some may have been dropped, because a newer one was due, too.
    assert {tick.cause for tick in s.history("every-second")} <= {"tick", "missed"}
    assert s.show("every-second").run_count == number
    s.resume("every-second")
    until(lambda: s.show("every-second").run_count > number, what="it to go on")


def test_one_whose_code_is_gone_has_stopped(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.scheduled")
    first = site.worker("-c", "1", "--lease", "2").ready()
    s = site.app.control.schedules
    until(lambda: s.list(), what="the schedule to be declared")
    assert s.show("every-second").state == "active"
    assert first.stop() == 0
    assert s.show("every-second").state == "stopped"
    # Other code on the same database fires nothing of it.
    site.program = "tests.e2e.programs.timing"
    other = site.worker("-c", "1", "--lease", "2").ready()
    until(lambda: s.show("every-second").stopped_at is not None, what="it to be noted")
    until(lambda: "has stopped: no live worker declares it" in other.said)
    runs = s.show("every-second").run_count
    assert s.show("every-second").run_count == runs
    assert other.stop() == 0


@pytest.mark.alone
def test_a_tick_that_waits_begins_when_the_prior_run_ends(fresh_site: MakeSite) -> None:
    """It is woken by that end, and does not wait for the next look, every quarter of a second."""
    site = fresh_site("tests.e2e.programs.waits")
    site.worker("-c", "2").ready()
    ended = until(lambda: site.ledger.lines("ended")[3:] and site.ledger.lines("ended"), within=30)
    begun = site.ledger.lines("begun")
    gaps = [begin.at - end.at for begin, end in zip(begun[1:], ended, strict=False)]
    assert min(gaps) > 0
    assert median(gaps) < BOUND, gaps
