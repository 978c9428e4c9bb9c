"""Steps of workflows that a verb does not apply to: what is said, and what becomes of them."""

from __future__ import annotations

import pytest

from holdfast import ConfigError, Holdfast, IllegalTransition, TaskStatus, Workflow, current_task
from holdfast.client.workflow_handle import WorkflowHandle

S = TaskStatus


def sent(app: Holdfast, *, optional: bool = False) -> WorkflowHandle[None]:
    """A workflow of a step that fails and one below it."""

    @app.task("bad")
    def bad() -> int:
        raise ValueError("no")

    @app.task("good")
    def good(n: int = 1) -> int:
        return n

    wf = Workflow("nightly")
    first = wf.options(optional=optional).step(bad)
    wf.options(after=[first.ended]).step(good)
    handle = wf.send()
    app.worker().run_until_idle()
    return handle


def test_a_step_is_deleted_with_its_workflow_only(app: Holdfast) -> None:
    handle = sent(app)
    bad, good = (step.id for step in handle.steps())
    assert app.control.tasks.delete(bad, good) == {bad: False, good: False}
    (why,) = app.control.tasks.why_not("delete", bad).values()
    assert why == (
        f"it is a step of workflow {handle.id} (nightly), and goes with that: delete the workflow"
    )
    assert app.control.workflows.delete(handle.id)
    assert app.control.tasks.statuses(bad, good) == {}


def test_a_dead_letter_that_is_a_step_is_listed_no_more(app: Holdfast) -> None:
    handle = sent(app)
    (bad, _) = handle.steps()
    dead = app.control.dead_letters
    assert [task.id for task in dead.list().tasks] == [bad.id]
    assert dead.delete(bad.id) == {bad.id: True}
    assert (dead.list().tasks, bad.status(), bad.info().dead) == ([], S.FAILED, False)
    assert dead.delete(bad.id) == {bad.id: False}
    handle.resubmit()
    app.worker().run_until_idle()
    assert dead.delete_all().done == 1
    assert (len(handle.steps()), bad.info().attempt) == (2, 2)


def test_a_step_of_one_that_has_completed_is_not_resubmitted(app: Holdfast) -> None:
    handle = sent(app, optional=True)
    assert handle.status() == "COMPLETED"
    with pytest.raises(IllegalTransition, match=r"\(nightly\), which has completed without it"):
        handle.step("bad").resubmit()
    assert app.control.tasks.resubmit(handle.step("bad")) == {handle.step("bad").id: False}


def test_a_step_of_one_that_winds_down_is_not_resubmitted(app: Holdfast) -> None:
    said: list[str] = []

    @app.task("asks")
    def asks() -> None:
        info = app.handle(current_task().id).info()
        assert info.workflow_id is not None
        with pytest.raises(IllegalTransition) as caught:
            app.workflow_handle(info.workflow_id).step("bad").resubmit()
        said.append(str(caught.value))

    @app.task("bad")
    def bad() -> None: ...

    wf = Workflow("nightly")
    wf.step(bad)
    wf.options(after=[wf.ended]).step(asks)
    handle = wf.send()
    handle.cancel()
    app.worker().run_until_idle()
    assert said[0].endswith("(nightly), which winds down (cancel): wait until that has ended")


def test_other_tasks_are_in_the_wrong_status(app: Holdfast) -> None:
    @app.task("good")
    def good() -> None: ...

    handle = good.send()
    why = app.control.tasks.why_not("resubmit", handle, "0197f3c2-5b1e-7d44-9a01-3c5e6f708192")
    assert list(why.values()) == ["it is PENDING", "there is no such task"]
    with pytest.raises(ConfigError, match="'eat' is no verb: there are submit, "):
        app.control.tasks.why_not("eat", handle)
