"""Why a workflow stands where it does, or ended as it did: each reason, made and asked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from holdfast import Holdfast, TaskError, Workflow, WorkflowHandle, any_of, current_task


class Works:
    """Tasks on an app, one of which asks why."""

    def __init__(self, app: Holdfast) -> None:
        self.app = app
        self.asked: list[tuple[str, str]] = []
        """What is said of the whole, and of its first step, while that runs or has handed over."""

        @app.task("good")
        def good(n: int = 1) -> int:
            return n

        @app.task("bad")
        def bad(n: int = 1) -> int:
            raise ValueError(f"no {n}")

        @app.task("adds")
        def adds(n: int) -> list[int]:
            wf = current_task().workflow
            wf.step(asks)
            return wf.map(good, range(n)).result

        @app.task("adds-bad")
        def adds_bad() -> int:
            return current_task().workflow.step(adds_bad_inside).result

        @app.task("adds-bad-inside")
        def adds_bad_inside() -> int:
            wf = current_task().workflow
            return wf.options(name="deep").step(bad, 7).result

        @app.task("asks")
        def asks() -> None:
            info = app.handle(current_task().id).info()
            assert info.workflow_id is not None
            whole = app.workflow_handle(info.workflow_id)
            self.asked.append((str(whole.why()), str(whole.steps()[0].why())))

        @app.task("told")
        def told(error: TaskError) -> None:
            assert error.message

        self.good, self.bad, self.adds, self.asks, self.told = good, bad, adds, asks, told
        self.adds_bad = adds_bad

    def run(self) -> None:
        self.app.worker().run_until_idle()


@pytest.fixture
def works(app: Holdfast) -> Works:
    return Works(app)


def why(handle: WorkflowHandle[Any]) -> list[str]:
    return [*handle.why().reasons]


def test_nobody_works_on_it(works: Works) -> None:
    wf = Workflow("w", deadline=3600)
    first = wf.step(works.good)
    wf.step(works.good, first.result)
    handle = wf.send()
    late, counted, names, nobody = why(handle)
    assert late.startswith("its deadline, ")
    assert late.endswith(", is in 1 h")
    assert counted == "2 of its 2 steps have not ended (1 WAITING, 1 PENDING)"
    assert names == "PENDING: 'good'"
    assert nobody == "step 'good': no worker is running on this database: start one"


def test_it_is_not_to_begin_yet(works: Works) -> None:
    wf = Workflow("w")
    wf.step(works.good)
    at = datetime.now(UTC) + timedelta(hours=2)
    handle = wf.send(run_at=at)
    assert why(handle)[0] == f"it is not to begin before {at.isoformat(timespec='seconds')}"
    assert "step 'good': it is due at" in str(handle.why())


def test_it_waits_for_what_a_limit_lets_through(works: Works) -> None:
    wf = Workflow("w")
    wf.step(works.good.options(queue="still"))
    handle = wf.send()
    works.app.control.queues.pause("still", by="ada")
    assert "step 'good': queue 'still' was paused by ada" in str(handle.why())


def test_tails_say_what_they_wait_for(works: Works) -> None:
    wf = Workflow("w")
    first = wf.step(works.good)
    wf.options(name="join").step(works.good, any_of(first, wf.step(works.good)))
    on_error = wf.step(works.told, wf.error)
    at_end = wf.options(after=[wf.ended], name="end").step(works.good)
    below = wf.options(after=[at_end], name="below").step(works.good)
    handle = wf.send()
    said = {step.name: handle.step(step).why().reasons for step in (on_error, at_end, below)}
    assert said == {
        "told": ("it waits for the first failure of another step",),
        "end": ("it waits for the end of all other steps",),
        "below": ("it waits for step 'end' (WAITING) to complete",),
    }
    joined = handle.step("join").why().reasons
    assert joined == (
        "it waits for any 1 of step 'good' (PENDING) and step 'good-2' (PENDING) to complete",
    )


@pytest.mark.parametrize("by", ["ada", None])
def test_it_is_paused(works: Works, by: str | None) -> None:
    wf = Workflow("w", on_failure="pause")
    first = wf.step(works.bad)
    wf.step(works.good, first.result)
    handle = wf.send()
    if by is None:
        works.run()
        said = "because a step failed: `resume` accepts that, `resubmit` runs it again"
        assert why(handle)[0].endswith(said)
        assert "its workflow paused at" in str(handle.step("good").why())
    else:
        works.app.control.workflows.pause(handle, by=by)
        assert why(handle)[0].startswith("it was paused by ada at ")
        (paused,) = handle.step("bad").why().reasons
        assert paused.startswith("its workflow was paused by ada at ")
    handle.cancel()
    # What had failed before has failed.
    assert why(handle)[0].startswith("it was cancelled by ")


def test_it_waits_for_what_a_step_added(works: Works) -> None:
    wf = Workflow("w")
    wf.step(works.adds, 10)
    handle = wf.send()
    works.run()
    ((whole, adder),) = works.asked
    assert "11 of its 12 steps" not in whole
    assert "RUNNING: 'asks'" in whole
    assert "its code has run, and it ends with step 'asks' (RUNNING), step 'good[0]' (" in adder
    assert adder.endswith(") and 6 more, which it added")
    assert why(handle) == ["all that it required has completed"]


def test_it_winds_down(works: Works) -> None:
    wf = Workflow("w")
    wf.step(works.good)
    wf.options(after=[wf.ended]).step(works.asks)
    handle = wf.send()
    handle.cancel()
    works.run()
    ((whole, _),) = works.asked
    assert "is RUNNING: it is being cancelled by " in whole
    cancelled, first, again = why(handle)
    assert cancelled.startswith("it was cancelled by ")
    assert first == "step 'good' was the first to end badly: cancelled on request"
    assert again == "`resubmit` runs again what ended badly and what was skipped for it"


def test_it_stopped_at_the_first_failure(works: Works) -> None:
    wf = Workflow("w", on_failure="fail_fast")
    wf.step(works.bad)
    wf.options(name="later").step(works.good.options(delay=600))
    wf.options(after=[wf.ended]).step(works.asks)
    handle = wf.send()
    works.run()
    ((whole, _),) = works.asked
    assert "it winds down: a step has failed" in whole
    assert why(handle)[:3] == [
        "it stopped at the first failure",
        "step 'bad' was the first to end badly: ValueError: no 1",
        "other steps that did not succeed: 'later'",
    ]


def test_its_deadline_passed(works: Works) -> None:
    wf = Workflow("w", deadline=0.001)
    wf.step(works.good.options(delay=600))
    wf.options(after=[wf.ended]).step(works.asks)
    handle = wf.send()
    works.run()
    ((whole, _),) = works.asked
    assert "it winds down: its deadline has passed" in whole
    assert why(handle)[0] == "its deadline passed before it had ended"


def test_what_is_behind_a_step_that_was_skipped(works: Works) -> None:
    wf = Workflow("w")
    both = any_of(wf.step(works.bad, 1), wf.step(works.bad, 2))
    wf.step(works.good, both)
    handle = wf.send()
    works.run()
    skipped, because, _ = why(handle)
    assert skipped == "step 'good' was the first to end badly: a step it depends on did not succeed"
    failed = "(FAILED: UNHANDLED_EXCEPTION)"
    assert because == f"it was skipped because of step 'bad' {failed} and step 'bad-2' {failed}"


def test_what_is_behind_a_step_that_added_others(works: Works) -> None:
    wf = Workflow("w")
    wf.step(works.adds_bad)
    handle = wf.send()
    works.run()
    first, within, beside, _ = why(handle)
    assert (
        first == "step 'adds_bad' was the first to end badly: a step that it added did not succeed"
    )
    assert within == (
        "of the steps that it added, step 'deep' (FAILED: UNHANDLED_EXCEPTION) was the first to "
        "end badly: ValueError: no 7"
    )
    assert beside == "other steps that did not succeed: 'adds_bad_inside', 'deep'"
    assert within in handle.step("adds_bad").why().reasons
