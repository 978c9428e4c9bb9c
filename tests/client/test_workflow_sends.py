"""Sending workflows: again, after an error, and with ids; each is there once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest

from holdfast import (
    Call,
    ConfigError,
    Holdfast,
    PayloadMismatch,
    StoreUnavailable,
    Task,
    Workflow,
    WorkflowHandle,
)

Double = Task[[int], int]


def double_of(app: Holdfast) -> Double:
    @app.task("double")
    def double(n: int) -> int:
        return 2 * n

    return double


def chosen(double: Double) -> tuple[Workflow, int]:
    wf = Workflow("chosen")
    return wf, wf.step(double, wf.step(double, 1).result).result


def number(app: Holdfast) -> int:
    return sum(app.control.workflows.count().values())


def test_sent_again_it_is_another_one(app: Holdfast) -> None:
    wf, value = chosen(double_of(app))
    first, second = wf.send(returns=value), wf.send(returns=value, tags=["late"])
    third = wf.send()
    app.worker().run_until_idle()
    assert [each.get(5) for each in (first, second, third)] == [4, 4, 4]
    assert (first.created, second.created, number(app)) == (True, True, 3)
    assert len({step.id for each in (first, second, third) for step in each.steps()}) == 6
    assert [each.info().tags for each in (first, second, third)] == [(), ("late",), ()]


def test_with_an_id_it_is_the_same_one(app: Holdfast) -> None:
    wf, value = chosen(double_of(app))
    one, other = uuid4(), uuid4()
    sent = [wf.send(returns=value, id=id) for id in (one, one, other, one)]
    assert [each.created for each in sent] == [True, False, True, False]
    assert [each.id for each in sent] == [one, one, other, one]
    with pytest.raises(PayloadMismatch):
        wf.send(id=one, tags=["other"])


def test_what_was_built_is_sent_with_its_value(app: Holdfast) -> None:
    double = double_of(app)

    @app.workflow("built", tags=["a"])
    def built(wf: Workflow, n: int) -> int:
        return wf.step(double, n).result

    handle: WorkflowHandle[Any] = built.build(3).send()
    call: Call[int] = built.call(4)
    called = [call.send(), call.send()]
    app.worker().run_until_idle()
    assert (handle.get(5), [each.get(5) for each in called]) == (6, [8, 8])


def test_after_an_error_it_is_one_however_often(
    app: Holdfast, open_app: Callable[..., Holdfast]
) -> None:
    away = open_app("postgresql://nobody@127.0.0.1:1/none", send_timeout=0)
    wf, value = chosen(double_of(away))
    with pytest.raises(StoreUnavailable) as caught:
        wf.send(returns=value)
    error = caught.value
    with pytest.raises(ConfigError, match="use resend_workflow"):
        app.resend(error)
    double_of(app)
    first = app.resend_workflow(error)
    second = asyncio.run(app.aresend_workflow(error))
    assert first == second
    with pytest.raises(StoreUnavailable) as caught:
        wf.send(returns=value)
    assert app.resend_workflow(caught.value) == first, "its own next try, too"
    app.worker().run_until_idle()
    assert (first.get(5), number(app)) == (4, 1)
    with pytest.raises(ConfigError, match="does not come from the send of a workflow"):
        app.resend_workflow(ConfigError("x"))
