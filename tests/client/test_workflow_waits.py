"""Waiting for whole workflows, and what steps give that leave their value to others."""

from __future__ import annotations

import asyncio
import logging
import re
import threading
from typing import Any
from uuid import uuid4

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    PayloadError,
    PayloadMismatch,
    TaskCancelled,
    TaskFailed,
    TaskNotFound,
    TaskResult,
    Unique,
    UniqueConflict,
    WaitTimeout,
    Workflow,
    current_task,
)
from holdfast.client import wait, waiter
from holdfast.core.status import WorkflowStatus
from holdfast.core.workflows.inputs import Missing
from holdfast.store.op import Statement, Steps, Uuids, reads
from holdfast.store.verbs import step_results
from tests.support.deadline import until

W = WorkflowStatus


class Mill:
    """Tasks and workflows on an app."""

    def __init__(self, app: Holdfast) -> None:
        self.app = app

        @app.task("double")
        def double(n: int) -> int:
            if n < 0:
                raise ValueError("negative")
            return 2 * n

        @app.task("fussy")
        def fussy(n: int) -> int:
            if n == 2:
                raise ValueError(n)
            return n

        @app.task("numbers")
        def numbers(n: int) -> list[int]:
            return list(range(n))

        @app.task("spread")
        def spread(n: int) -> list[int]:
            return current_task().workflow.map(double, range(n)).result

        @app.workflow("part")
        def part(wf: Workflow, n: int) -> list[int]:
            return wf.step(spread, n).result

        self.double, self.fussy, self.numbers = double, fussy, numbers
        self.spread, self.part = spread, part

    def run(self) -> None:
        self.app.worker().run_until_idle()


@pytest.fixture
def mill(app: Holdfast) -> Mill:
    return Mill(app)


def test_the_end_is_heard_of_at_once(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiter, "POLL", 600.0)
    handle = mill.part.send(3)
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(handle.get(timeout=60)))
    thread.start()
    until(lambda: mill.app._access.waiter.watchers(handle.id.bytes) == 1)
    mill.run()
    thread.join(30)
    assert found == [[0, 2, 4]]
    assert mill.app._access.waiter.watchers() == 0


def test_a_part_and_the_step_that_it_is_are_told_apart(mill: Mill) -> None:
    wf = Workflow("whole")
    step = wf.step(mill.part, 2)
    whole = wf.send(returns=step.result)
    of_step = whole.step(step)
    mill.run()
    of_part = mill.app.workflow_handle(of_step.id)
    assert (of_part.wait(5), of_part.get(5)) == (W.COMPLETED, [0, 2])
    assert (of_step.wait(5), of_step.get(5)) == ("COMPLETED", [0, 2])


def test_several_are_waited_for(mill: Mill) -> None:
    handles = [mill.part.send(n) for n in (1, 2)]
    with pytest.raises(WaitTimeout, match=r"workflow .* is RUNNING after 0.02 s"):
        mill.app.wait(handles, timeout=0.02)
    mill.run()
    assert mill.app.wait(handles, timeout=5) == [W.COMPLETED, W.COMPLETED]
    assert {*mill.app.as_completed(handles, timeout=5)} == {*handles}
    with pytest.raises(ConfigError, match="one after the other"):
        mill.app.wait([handles[0], mill.double.send(1)])  # type: ignore[list-item]

    async def wait_for_them() -> None:
        assert await mill.app.await_(handles, timeout=5) == [W.COMPLETED, W.COMPLETED]
        assert {handle async for handle in mill.app.aas_completed(handles)} == {*handles}
        assert await handles[0] == [0]
        assert await handles[1].await_(5) is W.COMPLETED

    asyncio.run(wait_for_them())


def test_why_nobody_works_on_it_is_said_to_who_waits(
    mill: Mill, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(wait, "REMARK_AFTER", 0.02)
    handle = mill.part.send(1)
    with caplog.at_level(logging.WARNING), pytest.raises(WaitTimeout):
        handle.wait(timeout=0.1)
    (said,) = [each.getMessage() for each in caplog.records if each.levelno == logging.WARNING]
    assert f"still waiting: workflow {handle.id} is RUNNING" in said
    assert "step 'spread': no worker is running on this database" in said


def test_what_steps_give_that_added_others(mill: Mill) -> None:
    wf = Workflow("whole")
    added = wf.step(mill.spread, 2)
    inner = wf.step(mill.part, 3)
    later = wf.map(mill.double, wf.step(mill.numbers, 2).result)
    none = wf.options(name="none").map(mill.double, wf.step(mill.numbers, 0).result)
    whole = wf.send()
    mill.run()
    assert whole.step(added).get(5) == [0, 2]
    assert whole.step(inner).outcome(5) == TaskResult(ok=[0, 2, 4])
    assert [one.get(5) for one in whole.steps(later)] == [0, 2]
    assert whole.step("double").get(5) == [0, 2]
    assert (whole.step("none").get(5), whole.steps(none)) == ([], [])
    again = mill.app.handle(whole.step("double").id)
    assert (again.get(5), again.info().result) == ([0, 2], [0, 2])
    assert asyncio.run(again.aget(5)) == [0, 2]
    assert asyncio.run(again.aoutcome(5)).ok == [0, 2]


def test_errors_name_the_workflow_and_the_step(mill: Mill) -> None:
    nobody = uuid4()
    with pytest.raises(TaskNotFound, match=f"no workflow has the id {nobody}"):
        mill.app.workflow_handle(nobody)
    with pytest.raises(TaskNotFound, match="no workflow has the id 'zz'"):
        mill.app.workflow_handle("zz")
    handle = mill.part.options(id=nobody).send(1)
    with pytest.raises(TaskNotFound, match=r"has no step 'sprad': its steps are spread$"):
        handle.step("sprad")
    with pytest.raises(PayloadMismatch, match=f"workflow {nobody} exists with other steps"):
        mill.part.options(id=nobody).send(2)
    with pytest.raises(WaitTimeout, match=f"workflow {nobody} is RUNNING after"):
        handle.get(timeout=0.01)
    handle.cancel()
    with pytest.raises(TaskCancelled, match=r"workflow part \(.*\) was cancelled at step 'spread'"):
        handle.get(timeout=5)
    held = mill.part.options(unique=Unique("eu")).send(1)
    with pytest.raises(UniqueConflict, match=f"workflow {held.id} .part. is unique for the key 'e"):
        mill.part.options(unique=Unique("eu", on_conflict="raise")).send(1)
    wf = Workflow("fails")
    failing = wf.step(mill.double, -1)
    sent = wf.send(returns=failing.result)
    mill.run()
    with pytest.raises(TaskFailed, match=r"workflow fails \(.*\) failed at step 'double': Value"):
        sent.get(timeout=5)
    mill.app.control.workflows.delete(sent.id)
    with pytest.raises(TaskNotFound, match=f"no workflow has the id {sent.id}"):
        sent.get(timeout=5)


def test_steps_of_parts_have_the_name_of_the_part(mill: Mill) -> None:
    @mill.app.workflow("outer")
    def outer(wf: Workflow) -> list[int]:
        ended = wf.options(name="inner").step(mill.part, 2)
        failing = wf.options(name="fails").step(mill.double, -1)
        wf.options(name="late", after=[failing]).step(mill.part, 1)
        return ended.result

    wf = Workflow("whole")
    whole = wf.send(returns=wf.step(outer).result)
    mill.run()
    assert whole.step("outer/inner/spread").get(5) == [0, 2]
    assert whole.step("outer/inner/double[1]").get(5) == 2
    assert asyncio.run(whole.astep("outer/fails")).status() == "FAILED"
    for absent in ("outer/nothing", "inner/spread", "outer/late/spread", "outer/", "/"):
        with pytest.raises(TaskNotFound, match=f"has no step '{absent}': its steps are outer$"):
            whole.step(absent)
    with pytest.raises(TaskFailed, match="failed at step 'outer/fails': ValueError") as failed:
        whole.get(5)
    assert failed.value.step == "outer/fails"
    chart = whole.to_mermaid()
    assert re.search(r'"outer/inner/double\[1\]<br/>.*COMPLETED"', chart)
    assert re.search(r'"outer/late<br/>.*CANCELLED', chart)
    shown = mill.app.control.workflows.show(whole.id, parts=True)
    names = {step.id: step.name for step in shown.steps}
    assert [(step.name, names.get(step.added_by)) for step in shown.steps if step.added_by] == [
        ("outer/inner", "outer"),
        ("outer/fails", "outer"),
        ("outer/late", "outer"),
        ("outer/inner/spread", "outer/inner"),
        ("outer/inner/double[0]", "outer/inner/spread"),
        ("outer/inner/double[1]", "outer/inner/spread"),
    ]
    assert [step.name for step in mill.app.control.workflows.show(whole.id).steps] == ["outer"]


def test_a_step_that_failed_by_what_it_added_is_told_by_that(mill: Mill) -> None:
    wf = Workflow("whole")
    found = wf.step(mill.numbers, 3)
    handle = wf.send(returns=wf.map(mill.fussy, found.result).result)
    mill.run()
    with pytest.raises(TaskFailed, match=r"failed at step 'fussy\[2\]': ValueError: 2"):
        handle.get(5)


def test_a_value_that_is_gone_is_an_error_of_the_payload(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    wf = Workflow("whole")
    added = wf.step(mill.spread, 2)
    handle = wf.send(returns=added.result)
    mill.run()

    @reads
    def gone(scope_id: bytes) -> Steps[str]:
        yield Statement("read_scopes", {"ids": Uuids([scope_id])})
        raise Missing("a step is gone")

    monkeypatch.setattr(step_results, "result", gone)
    with pytest.raises(PayloadError, match=f"the value of workflow {handle.id} is gone: a step is"):
        handle.get(timeout=5)
    step = handle.step(added)
    with pytest.raises(PayloadError, match=f"the value of task {step.id} is gone: a step is gone"):
        step.get(timeout=5)
    assert step.info().result is None
