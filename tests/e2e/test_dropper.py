"""Tasks that no worker knows: a real worker drops them when it is told to."""

from __future__ import annotations

from holdfast import ErrorCode, TaskStatus
from tests.support.deadline import until
from tests.support.sites import MakeSite


def test_what_no_worker_knows_is_dropped(fresh_site: MakeSite) -> None:
    site = fresh_site("tests.e2e.programs.timing")

    @site.app.task("retired", queue="elsewhere")
    def retired() -> None: ...

    stray, known = retired.send(), site.options(delay=3600).send("stamp")
    unserved = site.options(queue="nobodys").send("stamp")
    worker = site.worker("-c", "1", "--lease", "1", "--drop-unknown-after", "1.5").ready()
    assert stray.wait(30) is TaskStatus.DROPPED
    info = stray.info()
    assert (info.error_code, info.attempt, info.dead) == (ErrorCode.TASK_DROPPED, 0, True)
    assert [known.status(), unserved.status()] == [TaskStatus.SCHEDULED, TaskStatus.PENDING]
    until(lambda: "1 of retired@1" in worker.said)
    assert worker.stop() == 0


def test_a_time_that_makes_no_sense_is_refused(fresh_site: MakeSite) -> None:
    worker = fresh_site("tests.e2e.programs.timing").worker("--drop-unknown-after", "0")
    assert worker.wait() == 2
    assert "drop_unknown_after=0.0 is not usable" in worker.said
