"""Workflows run: values by reference, joins, handlers, steps that add steps, sub-workflows."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import uuid4

import pytest

from holdfast import (
    Holdfast,
    PayloadMismatch,
    Retry,
    TaskCancelled,
    TaskError,
    TaskFailed,
    TaskNotFound,
    TaskResult,
    TaskStatus,
    WaitTimeout,
    Workflow,
    any_of,
    at_least,
    current_task,
)
from holdfast.store.op import Mode, Op
from holdfast.store.verbs.operate import remove
from tests.client.conftest import Hands


@dataclass
class Raw:
    rows: list[int]


class Shop:
    """Tasks and workflows on an app."""

    def __init__(self, app: Holdfast) -> None:
        self.app = app
        self.done: list[object] = []

        @app.task
        def extract(n: int) -> Raw:
            return Raw(list(range(n)))

        @app.task
        def double(a: int) -> int:
            if a < 0:
                raise ValueError("negative")
            return 2 * a

        @app.task
        async def total(numbers: list[int]) -> int:
            return sum(numbers)

        @app.task
        def note(what: str = "noted", error: TaskError | None = None) -> None:
            self.done.append(what if error is None else f"{what}: {error.message}")

        @app.task
        def judge(results: list[TaskResult[int, TaskError]]) -> list[str]:
            return [str(one.ok) if one.is_ok else str(one.err_value.error_code) for one in results]

        @app.task
        def split(n: int) -> int:
            wf = current_task().workflow
            parts = wf.map(double, range(n))
            return wf.step(total, parts.result).result

        self.extract, self.double, self.total = extract, double, total
        self.note, self.judge, self.split = note, judge, split

    def run(self) -> None:
        self.app.worker().run_until_idle()


@pytest.fixture
def shop(app: Holdfast) -> Shop:
    return Shop(app)


def test_a_fan_out_and_in(shop: Shop) -> None:
    wf = Workflow("sums")
    raw = wf.step(shop.extract, 4)
    parts = wf.map(shop.double, [raw.result.rows[2], 5])
    whole = wf.step(shop.total, parts.result)
    handle = wf.send(returns={"all": whole.result, "raw": raw.result}, tags=["a"])
    assert handle.created
    assert handle.status() == "RUNNING"
    with pytest.raises(WaitTimeout):
        handle.wait(0)
    shop.run()
    assert handle.get(5) == {"all": 14, "raw": {"rows": [0, 1, 2, 3]}}
    assert handle.step(raw).get(1) == Raw([0, 1, 2, 3])
    assert [one.get(1) for one in handle.steps(parts)] == [4, 10]
    assert handle.step("total").status() is TaskStatus.COMPLETED
    assert len(handle.steps()) == 4
    info = handle.info()
    assert (info.name, info.steps, info.tags, info.status) == ("sums", 4, ("a",), "COMPLETED")
    assert "COMPLETED" in handle.to_mermaid()
    assert "s0 --> s1" in handle.to_mermaid()
    with pytest.raises(TaskNotFound):
        handle.step("nobody")
    assert shop.app.workflow_handle(handle.id) == handle


def test_a_saga_is_compensated(shop: Shop) -> None:
    wf = Workflow("saga")
    paid = wf.step(shop.double, 1)
    sent = wf.options(name="ship", after=[paid]).step(shop.double, -1)
    wf.options(after=[paid, sent.failed]).step(shop.note, "refund")
    wf.options(after=[sent.succeeded]).step(shop.note, "thank")
    wf.step(shop.note, "alert", wf.error)
    wf.options(after=[wf.ended]).step(shop.note, "closed")
    handle = wf.send()
    shop.run()
    with pytest.raises(TaskFailed, match="negative") as failed:
        handle.get(5)
    assert failed.value.step == "ship"
    assert handle.status() == "FAILED"
    assert sorted(map(str, shop.done)) == ["alert: negative", "closed", "refund"]
    outcome = handle.outcome(1)
    assert outcome.err is not None
    assert outcome.err.message == "negative"


def test_joins_and_outcomes(shop: Shop) -> None:
    wf = Workflow("joins")
    mixed = wf.map(shop.double, [-1, 2, 3])
    first = wf.step(shop.double, any_of(mixed))
    some = wf.step(shop.total, at_least(2, mixed))
    judged = wf.step(shop.judge, mixed.outcome)
    handle = wf.send(returns=(first.result, some.result, judged.result))
    shop.run()
    one, two, told = handle.get(5)
    assert one in (8, 12)
    assert two == 10
    assert told == ["UNHANDLED_EXCEPTION", "4", "6"]


def test_a_map_over_a_result(shop: Shop) -> None:
    wf = Workflow("mapped")
    raw = wf.step(shop.extract, 5)
    parts = wf.map(shop.double, raw.result.rows)
    none = wf.map(shop.double, wf.step(shop.extract, 0).result.rows)
    handle = wf.send(returns=[wf.step(shop.total, parts.result).result, none.result])
    shop.run()
    assert handle.get(5) == [20, []]
    assert [one.get(1) for one in handle.steps(parts)] == [0, 2, 4, 6, 8]


def test_a_step_that_adds_steps(shop: Shop) -> None:
    wf = Workflow("adding")
    found = wf.step(shop.split, 4)
    handle = wf.send(returns=wf.step(shop.double, found.result))
    shop.run()
    assert handle.get(5) == 24


def test_adding_steps_needs_a_workflow(shop: Shop) -> None:
    handle = shop.split.send(2)
    shop.run()
    with pytest.raises(TaskFailed, match="is not a step of a workflow"):
        handle.get(1)


def test_a_workflow_function_and_a_sub_workflow(shop: Shop) -> None:
    app = shop.app

    @app.workflow("inner")
    def inner(wf: Workflow, n: int) -> int:
        return wf.step(shop.total, wf.map(shop.double, range(n)).result).result

    @app.workflow("outer", deadline=600)
    def outer(wf: Workflow, n: int) -> tuple[int, list[int]]:
        once = wf.step(inner, n)
        return once.result, wf.map(inner, [1, 2]).result

    handle = outer.send(3)
    shop.run()
    assert handle.get(5) == (6, [0, 2])
    assert handle.info().arguments == {"args": [3], "kwargs": {}}


def test_the_same_id_is_the_same_workflow(shop: Shop) -> None:
    app, id = shop.app, uuid4()

    @app.workflow
    def small(wf: Workflow, n: int) -> int:
        return wf.step(shop.double, n).result

    first = small.options(id=id).send(1)
    again = small.options(id=id).send(1)
    assert (first.created, again.created, first == again) == (True, False, True)
    with pytest.raises(PayloadMismatch):
        small.options(id=id).send(2)
    shop.run()
    assert again.get(5) == 2
    with pytest.raises(TaskNotFound):
        app.workflow_handle(uuid4())


def test_cancel(shop: Shop) -> None:
    wf = Workflow("stopped")
    wf.options(name="late").step(shop.double, 1)
    wf.options(after=[wf.ended]).step(shop.note, "cleaned")
    handle = wf.send()
    assert handle.cancel() == "RUNNING"
    shop.run()
    with pytest.raises(TaskCancelled):
        handle.get(5)
    assert shop.done == ["cleaned"]


def test_too_large_values_fail_the_step_that_takes_them(shop: Shop) -> None:
    @shop.app.task
    def large() -> str:
        return "x" * 600_000

    @shop.app.task
    def both(a: str, b: str) -> int:
        return len(a + b)

    wf = Workflow("large")
    one = wf.step(large)
    handle = wf.send(returns=wf.step(both, one.result, one.result))
    shop.run()
    with pytest.raises(TaskFailed) as failed:
        handle.get(5)
    assert failed.value.error is not None
    assert failed.value.error.error_code == "PAYLOAD_TOO_LARGE"


def test_a_value_that_is_gone_fails_the_step_that_takes_it(shop: Shop, hands: Hands) -> None:
    """There is none at the next try either."""

    @shop.app.task(retry=Retry(3))
    def tries(a: int) -> int:
        return a

    wf = Workflow("gone")
    handle = wf.send(returns=wf.step(tries, wf.step(shop.double, 1).result))
    first, second = handle.steps()
    run = hands.take(first)
    hands.complete(run, "2")
    hands.run(Op(remove([(run.key, run.id)]), Mode.WRITE, "remove"))
    shop.run()
    found = hands.task(second.id.bytes)
    assert (found.status, found.error_code, found.attempt) == ("FAILED", "UPSTREAM_MISSING", 1)
    assert handle.status() == "FAILED"
