"""A trigger that somebody put on our tables refuses some rows: only these wait."""

from __future__ import annotations

from contextlib import closing

import pytest

from holdfast import TaskStatus
from tests.support.deadline import until
from tests.support.hostile_rows import open_rows
from tests.support.site import Engine, ended
from tests.support.sites import MakeSite

PROGRAM = "tests.faults.programs.plain"
TRIGGERS = {
    "postgresql": """
        CREATE FUNCTION guard() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            IF NEW.args LIKE '%%666%%' AND NEW.status IN ({statuses}) AND NEW.attempt < 2 THEN
                RAISE EXCEPTION 'not this one' USING ERRCODE = '{code}';
            END IF;
            RETURN NEW;
        END $$;
        CREATE TRIGGER guard BEFORE UPDATE ON holdfast_tasks
            FOR EACH ROW EXECUTE FUNCTION guard()
    """,
    "sqlite": """
        CREATE TRIGGER guard BEFORE UPDATE ON holdfast_tasks
        WHEN NEW.args LIKE '%666%' AND NEW.status IN ({statuses}) AND NEW.attempt < 2
        BEGIN SELECT RAISE(ABORT, 'not this one'); END
    """,
}


@pytest.mark.parametrize(("status", "code"), [("CLAIMED", "P0001"), ("RUNNING", "U0001")])
def test_a_row_that_a_trigger_refuses_stops_nobody(
    fresh_site: MakeSite, engine: Engine, status: str, code: str
) -> None:
    site = fresh_site(PROGRAM)
    site.send("good", 0).cancel()
    with closing(open_rows(site.url)) as rows:
        rows.execute(TRIGGERS[engine].format(statuses=f"'{status}'", code=code))
    worker = site.worker("-c", "1").ready()
    handles = [site.send("good", number) for number in (1, 666, 2, 3)]
    others = [handle for handle in handles if handle is not handles[1]]
    for handle in others:
        assert ended(handle, 10.0) is TaskStatus.COMPLETED, worker.said[-5000:]
    until(lambda: "INVALID_ROW" in worker.said, what="the row to be named")
    assert "not this one" in worker.said
    assert "goes on" not in worker.said
    assert ended(site.send("good", 4), 10.0) is TaskStatus.COMPLETED
    assert worker.stop() == 0


@pytest.mark.slow
def test_a_run_whose_end_a_trigger_refuses_is_taken_up_again_when_its_lease_has_run_out(
    fresh_site: MakeSite, engine: Engine
) -> None:
    site = fresh_site(PROGRAM)
    site.send("good", 0).cancel()
    with closing(open_rows(site.url)) as rows:
        rows.execute(TRIGGERS[engine].format(statuses="'COMPLETED', 'FAILED'", code="U0001"))
    worker = site.worker("-c", "1", "--lease", "2").ready()
    handles = [site.send("good", number) for number in (1, 666, 2)]
    for handle in handles:
        assert ended(handle, 20.0) is TaskStatus.COMPLETED, worker.said[-5000:]
    assert [handle.info().attempt for handle in handles] == [1, 2, 1]
    assert worker.stop() == 0
