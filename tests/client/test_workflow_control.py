"""`app.control.workflows` and the verbs of a handle: one workflow, and many."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import uuid4

import pytest

from holdfast import (
    ConfigError,
    Holdfast,
    IllegalTransition,
    TaskNotFound,
    Unique,
    UniqueConflict,
    Workflow,
    WorkflowHandle,
    any_of,
)
from holdfast.core.status import TaskStatus, WorkflowStatus

W = WorkflowStatus


class Plant:
    """Tasks that fail as long as they are told to, and workflows of them."""

    def __init__(self, app: Holdfast) -> None:
        self.app = app
        self.broken = True
        self.ran: list[str] = []

        @app.task("make")
        def make(n: int) -> int:
            self.ran.append("make")
            return n

        @app.task("pack")
        def pack(n: int) -> int:
            self.ran.append("pack")
            if self.broken:
                raise ValueError("no boxes")
            return n + 1

        @app.task("ship")
        def ship(n: int) -> int:
            self.ran.append("ship")
            return n + 1

        @app.task("tell")
        def tell() -> None:
            self.ran.append("tell")

        @app.workflow("order", version=3, tags=["shop"])
        def order(wf: Workflow, n: int) -> int:
            made = wf.step(make, n)
            packed = wf.step(pack, made.result)
            wf.options(after=[packed.failed]).step(tell)
            return wf.step(ship, packed.result).result

        self.order = order
        self.make = make

    def run(self) -> None:
        self.app.worker().run_until_idle()


@pytest.fixture
def plant(app: Holdfast) -> Plant:
    return Plant(app)


def statuses(handle: WorkflowHandle[int]) -> list[TaskStatus]:
    return [step.status() for step in handle.steps()]


def test_what_failed_is_resubmitted_and_handlers_do_not_run_again(plant: Plant) -> None:
    handle = plant.order.send(1)
    plant.run()
    assert handle.status() is W.FAILED
    plant.broken = False
    assert handle.resubmit() is W.RUNNING
    plant.run()
    assert handle.get(timeout=5) == 3
    assert plant.ran == ["make", "pack", "tell", "pack", "ship"]
    with pytest.raises(IllegalTransition, match=r"cannot resubmit workflow .*: it is COMPLETED"):
        handle.resubmit()


def test_a_pause_holds_until_it_is_resumed(plant: Plant) -> None:
    plant.broken = False
    handle = plant.order.send(1)
    assert handle.pause() is W.PAUSED
    assert handle.pause() is W.PAUSED
    plant.run()
    assert plant.ran == []
    assert "was paused by" in str(handle.why())
    assert handle.resume() is W.RUNNING
    with pytest.raises(IllegalTransition, match="cannot resume workflow"):
        handle.resume()
    plant.run()
    assert [info.status for info in handle.follow(timeout=5)] == [W.COMPLETED]
    with pytest.raises(IllegalTransition, match=r"cannot pause workflow .*: it is COMPLETED"):
        handle.pause()


def test_a_list_is_filtered_and_has_pages(plant: Plant) -> None:
    control = plant.app.control.workflows
    sent: list[WorkflowHandle[Any]] = []
    for n in range(3):
        sent.append(plant.order.options(id=uuid4()).send(n))  # noqa: PERF401
    other = Workflow("other")
    other.step(plant.make, 1)
    sent.append(other.send())
    sent[1].cancel()
    page = control.list(limit=3)
    assert [info.id for info in page.workflows] == [h.id for h in sent[:0:-1]]
    rest = control.list(limit=3, before=page.next)
    assert ([info.id for info in rest.workflows], rest.next) == ([sent[0].id], None)
    assert {info.id for info in control.list(name="order", tag="shop").workflows} == {
        h.id for h in sent[:3]
    }
    assert [info.id for info in control.list(status="CANCELLED").workflows] == [sent[1].id]
    assert control.count() == {W.RUNNING: 3, W.CANCELLED: 1}
    info = control.get(sent[0])
    assert (info.name, info.version, info.steps, info.tags) == ("order", 3, 4, ("shop",))
    assert control.find(str(sent[0].id)[:13]) == [sent[0].id]
    with pytest.raises(ConfigError, match="cannot be listed by 'colour'"):
        control.list(colour="red")  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="there are RUNNING"):
        control.list(status="GREEN")
    with pytest.raises(TaskNotFound):
        control.list(before=uuid4())


def test_a_report_has_the_steps_with_what_they_wait_for(plant: Plant) -> None:
    handle = plant.order.send(1)
    plant.run()
    report = plant.app.control.workflows.show(handle.id)
    made, packed, told, shipped = report.steps
    assert [step.name for step in report.steps] == ["make", "pack", "tell", "ship"]
    assert (packed.waits_for, told.waits_for) == ({made.id: "success"}, {packed.id: "failure"})
    assert (told.handler, told.required, shipped.error_code) == (True, True, "UPSTREAM_FAILED")
    text = str(plant.app.control.workflows.why(handle))
    assert "step 'pack' was the first to end badly: ValueError: no boxes" in text
    assert "other steps that did not succeed: 'ship'" in text
    assert plant.app.control.workflows.to_mermaid(handle).count("-->") == 2


@pytest.mark.parametrize("option", ["name", "tag"])
@pytest.mark.parametrize("value", ["a\x00b", "\udcff", 5])
def test_a_filter_that_nothing_can_fit_is_refused(plant: Plant, option: str, value: Any) -> None:
    where: Any = {option: value}
    with pytest.raises(ConfigError, match=option):
        plant.app.control.workflows.list(**where)
    with pytest.raises(ConfigError, match=option):
        plant.app.control.workflows.cancel_all(**where)


def test_many_are_steered_by_a_filter(plant: Plant) -> None:
    control = plant.app.control.workflows
    sent = [plant.order.send(n) for n in range(3)]
    assert control.pause_all(name="order") == {h.id: W.PAUSED for h in sent}
    assert control.resume_all(tag="shop") == {h.id: W.RUNNING for h in sent}
    assert control.cancel_all(name="none") == {}
    plant.run()
    plant.broken = False
    assert control.resubmit_all(name="order") == {h.id: W.RUNNING for h in sent}
    plant.run()
    assert {h.status() for h in sent} == {W.COMPLETED}
    assert control.cancel_all(status="COMPLETED") == {}


def test_what_is_done_is_recorded(plant: Plant) -> None:
    control = plant.app.control
    handle = plant.order.send(1)
    with control.acting(by="ada"):
        control.workflows.pause(handle)
        control.workflows.resume(handle)
        control.workflows.cancel(handle)
        control.workflows.cancel(handle)
        control.workflows.resubmit(handle)
        control.workflows.cancel(handle)
        control.workflows.delete(handle)
    entries = [(e.by, e.verb, e.subject, e.count) for e in control.audit.list().entries]
    verbs = ["pause", "resume", "cancel", "resubmit", "cancel", "delete"]
    assert entries[::-1] == [("ada", verb, f"workflow {handle.id}", 1) for verb in verbs]


def test_a_workflow_is_deleted_whole_when_it_has_ended(plant: Plant) -> None:
    control = plant.app.control

    @plant.app.workflow("outer")
    def outer(wf: Workflow) -> int:
        return wf.step(plant.order, 1).result

    plant.broken = False
    handle = outer.send()
    with pytest.raises(IllegalTransition, match=r"cannot delete workflow .*: it is RUNNING"):
        control.workflows.delete(handle)
    plant.run()
    (part,) = [w for w in control.workflows.list(parts=True).workflows if w.parent_id is not None]
    with pytest.raises(IllegalTransition, match=f"part of workflow {handle.id}"):
        control.workflows.delete(part.id)
    assert control.workflows.delete(handle) is True
    assert control.workflows.delete(handle) is False
    assert control.workflows.list(parts=True).workflows == []
    assert control.tasks.list().tasks == []
    with pytest.raises(TaskNotFound):
        control.workflows.get(handle)


def test_a_resubmit_does_not_take_a_key_that_another_has_by_now(plant: Plant) -> None:
    unique = Unique("one")
    first = plant.order.options(unique=unique).send(1)
    plant.run()
    second = plant.order.options(unique=unique).send(2)
    assert second.created
    other = plant.order.send(9)
    plant.app.control.workflows.cancel(other)
    with pytest.raises(UniqueConflict, match=str(second.id)):
        first.resubmit()
    assert first.status() is W.FAILED
    # It holds up no other.
    again = plant.app.control.workflows.resubmit_all(name="order")
    assert again == {first.id: None, other.id: W.RUNNING}
    second.cancel()
    plant.run()
    assert first.resubmit() is W.RUNNING
    assert plant.order.options(unique=unique).send(3).id == first.id


def test_the_async_twins_do_the_same(plant: Plant) -> None:
    control = plant.app.control.workflows

    async def steer() -> None:
        handle = await plant.order.asend(1)
        assert await handle.apause() is W.PAUSED
        assert await control.aresume(handle) is W.RUNNING
        assert await control.apause_all(name="order") == {handle.id: W.PAUSED}
        assert await control.aresume_all() == {handle.id: W.RUNNING}
        assert (await control.alist()).workflows == control.list().workflows
        assert await control.acount() == {W.RUNNING: 1}
        assert (await control.ashow(handle)).steps == control.show(handle).steps
        assert await control.awhy(handle) is not None
        assert await control.ato_mermaid(handle) == await handle.ato_mermaid()
        assert await handle.acancel() is W.CANCELLED
        assert await handle.aresubmit() is W.RUNNING
        assert await control.acancel_all() == {handle.id: W.CANCELLED}
        assert await control.aresubmit_all() == {handle.id: W.RUNNING}
        with pytest.raises(IllegalTransition):
            await control.aresume(handle)
        assert await control.acancel(handle) is W.CANCELLED
        assert [info.status async for info in handle.afollow(timeout=5)] == [W.CANCELLED]
        assert await control.adelete(handle) is True

    asyncio.run(steer())


def test_why_names_the_steps_that_are_waited_for(plant: Plant) -> None:
    handle = plant.order.send(1)
    why = str(handle.step("pack").why())
    assert "it waits for step 'make' (PENDING) to complete" in why
    assert "step 'pack' (WAITING) to fail" in str(handle.step("tell").why())
    handle.pause()
    assert "its workflow was paused by" in str(handle.step("make").why())
    handle.resume()
    plant.run()
    failed = "step 'pack' (FAILED: UNHANDLED_EXCEPTION)"
    assert f"it was skipped because of {failed}" in str(handle.step("ship").why())


def test_why_names_the_part_that_a_step_ends_with(plant: Plant) -> None:
    inside: list[str] = []

    @plant.app.task("look")
    def look() -> None:
        (part,) = [
            info
            for info in plant.app.control.workflows.list(parts=True).workflows
            if info.parent_id is not None
        ]
        step = plant.app.handle(part.id)
        inside.append(str(step.why()))
        info = step.info()
        assert (info.status, info.handed_over, info.celery_state) == ("WAITING", True, "STARTED")
        plant.app.control.workflows.pause(part.id, by="ada")
        inside.append(str(step.why()))
        plant.app.control.workflows.resume(part.id)

    @plant.app.workflow("inner")
    def inner(wf: Workflow) -> None:
        wf.step(look)

    wf = Workflow("outer")
    wf.step(inner)
    wf.send()
    plant.run()
    first, second = inside
    assert "its code has run, and it ends with workflow" in first
    assert "(inner), which is RUNNING" in first
    assert "that workflow was paused by ada" in second


def test_why_names_some_of_those_that_any_is_waited_for(plant: Plant) -> None:
    wf = Workflow("any")
    tries = [wf.options(name=f"try-{n}").step(plant.make, n) for n in range(3)]
    wf.options(name="first").step(plant.make, any_of(tries))
    wf.options(name="end", after=[wf.ended]).step(plant.make, 1)
    handle = wf.send()
    why = str(handle.step("first").why())
    assert "it waits for any 1 of step 'try-0' (PENDING), step 'try-1' (PENDING) and step" in why
    assert str(handle.step("end").why()).endswith(": it waits for the end of all other steps")
