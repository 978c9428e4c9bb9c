"""Calls that were not sent: then, chain, group, and tasks by name."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast import (
    Call,
    ConfigError,
    Holdfast,
    PayloadError,
    Task,
    TaskFailed,
    Unique,
    Workflow,
    chain,
    group,
)


class Sums:
    """Tasks on an app."""

    def __init__(self, app: Holdfast) -> None:
        self.app = app
        self.told: list[str] = []

        @app.task
        def add(a: int, b: int = 0) -> int:
            return a + b

        @app.task
        def double(a: int) -> int:
            return 2 * a

        @app.task
        def total(numbers: list[int]) -> int:
            return sum(numbers)

        @app.task
        def tell(what: str) -> str:
            self.told.append(what)
            return what

        @app.workflow
        def twice(wf: Workflow, n: int) -> int:
            return wf.step(double, n).result

        self.add, self.double, self.total, self.tell, self.twice = add, double, total, tell, twice

    def run(self) -> None:
        self.app.worker().run_until_idle()


@pytest.fixture
def sums(app: Holdfast) -> Sums:
    return Sums(app)


def test_then_hands_the_value_on(sums: Sums) -> None:
    plan = sums.add.call(1, 2).then(sums.double).then(sums.add, 10).then(sums.twice)
    handle = plan.send(tags=["sum"])
    sums.run()
    assert handle.get(5) == 32
    assert handle.info().tags == ("sum",)
    assert handle.info().name == sums.twice.name
    assert sums.app.workflow_handle(handle.id).get(1) == 32


def test_a_chain_is_the_same(sums: Sums) -> None:
    async def main() -> int:
        handle = await chain(sums.add.call(1, 2), sums.double, sums.double).asend()
        await asyncio.to_thread(sums.run)
        return await handle

    assert asyncio.run(main()) == 12


def test_a_chord(sums: Sums) -> None:
    handle = group(sums.add.call(n, n) for n in range(4)).then(sums.total).send()
    sums.run()
    assert handle.get(5) == 12


def test_groups_of_chains_and_of_groups(sums: Sums) -> None:
    one = sums.add.call(1).then(sums.double)
    inner = group([sums.add.call(3), sums.add.call(4)])
    handle = group([one, sums.add.call(5)]).send()
    nested = group([inner.then(sums.total), one]).send()
    none = group([]).then(sums.total).send()
    sums.run()
    assert handle.get(5) == [2, 5]
    assert handle.info().name == "group"
    assert sums.app.workflow_handle(handle.id).get(1) == [2, 5]
    assert nested.get(5) == [7, 2]
    assert none.get(5) == 0


def test_a_complete_call_ignores_the_value(sums: Sums) -> None:
    failing = sums.app.named("nowhere.at_all")
    done = group([sums.add.call(1), sums.add.call(2)]).then(sums.tell.call("done")).send()
    sums.run()
    assert (done.get(5), sums.told) == ("done", ["done"])
    assert "s0 --> s2" in done.to_mermaid()
    never = sums.tell.call("first").then(failing).then(sums.tell.call("never")).send()
    sums.run()
    assert [step.status() for step in never.steps()] == ["COMPLETED", "PENDING", "WAITING"]


def test_one_call_alone(sums: Sums) -> None:
    call = sums.add.call(20, b=22)
    assert isinstance(call, Call)
    assert call.task is sums.add
    handle = call.send()
    again = call.send()
    assert handle != again
    sums.run()
    assert (handle.get(5), again.get(5)) == (42, 42)


def test_a_workflow_as_a_call(sums: Sums) -> None:
    handle = sums.twice.call(4).then(sums.add, 1).send()
    sums.run()
    assert handle.get(5) == 9


def test_a_long_chain_is_no_deep_one(sums: Sums) -> None:
    plan: Any = sums.add.call(0)
    for _ in range(2000):
        plan = plan.then(sums.add, 1)
    assert len(plan.build().steps) == 2001


def test_a_task_by_its_name(sums: Sums, app: Holdfast) -> None:
    far = app.named("elsewhere.resize", version=2)
    assert isinstance(far, Task)
    assert (far.name, far.version, far.queue, far.priority) == (
        "elsewhere.resize",
        2,
        "default",
        50,
    )
    sent = far.options(queue="images", priority=3).schedule(60, "a.png", width=3).info()
    assert (sent.name, sent.version, sent.queue, sent.priority) == (
        "elsewhere.resize",
        2,
        "images",
        3,
    )
    wf = Workflow("by-name")
    step = wf.step(far, wf.step(sums.add, 1).result, anything="goes")
    handle = wf.send(returns=step)
    assert handle.step("resize").info().version == 2
    with pytest.raises(ConfigError, match="by its name only"):
        _ = far.definition
    with pytest.raises(ConfigError, match="by its name only"):
        _ = far.hooks
    assert app.named(sums.add.name).definition is sums.add.definition


def test_what_is_wrong_is_said_where_it_stands(sums: Sums) -> None:
    odd: Any = sums
    with pytest.raises(PayloadError, match="argument a of task"):
        odd.add.call("one")
    # Until it becomes a step, it may be the call of a schedule.
    unique = sums.add.options(unique=Unique("k")).call(1)
    for plan in (unique, sums.add.call(1).then(unique), group([unique])):
        with pytest.raises(ConfigError, match="unique is not for a step"):
            plan.send()
    with pytest.raises(ConfigError, match="does not begin with a call"):
        chain(odd.add, odd.double)
    with pytest.raises(ConfigError, match="is not usable"):
        odd.add.call(1).then(len)
    with pytest.raises(ConfigError, match="beside those of the call"):
        odd.add.call(1).then(sums.tell.call("a"), 1)
    with pytest.raises(ConfigError, match="group takes calls"):
        group([odd.add])
    with pytest.raises(ConfigError, match="give a list of calls"):
        group(odd.add.call(1))
    with pytest.raises(PayloadError, match="total"):
        odd.add.call(1).then(sums.total).send()


def test_a_chain_that_fails_says_at_which_step(sums: Sums) -> None:
    @sums.app.task
    def broken(n: int) -> int:
        raise RuntimeError("no")

    handle = sums.add.call(1).then(broken).then(sums.double).send()
    sums.run()
    with pytest.raises(TaskFailed) as failed:
        handle.get(5)
    assert failed.value.step == "broken"
